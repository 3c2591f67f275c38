//! Requests as they came, for tests to look at.
//!
//! A request is kept as it came, bytes and headers, and parsed only when a test asks for something
//! in it. The helpers (`tool_results`, `system_text` and so on) read both formats and give empty
//! values for what is not there: a test that expects something fails on its assertion, not in a
//! helper.

use std::{
    collections::VecDeque,
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use serde_json::Value;

use crate::http::Request;

/// How many requests are kept. All are counted in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RequestCapture {
    /// Every one.
    #[default]
    All,
    /// The last few. 0 is the same as `Off`.
    Last(usize),
    /// None.
    Off,
}

/// A request that the server received. Cheap to clone.
#[derive(Debug, Clone)]
pub struct CapturedRequest {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    order: u64,
    at: Duration,
    request: Request,
    /// Filled at the first use.
    json: OnceLock<Value>,
}

/// A tool's answer as the model would see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenToolResult {
    /// The call it answers.
    pub tool_use_id: String,
    /// Its text; pictures are left out.
    pub text: String,
    /// Marked as failed. The OpenAI format has no such mark: always `false` there.
    pub is_error: bool,
}

impl CapturedRequest {
    pub(crate) fn new(order: u64, at: Duration, request: Request) -> Self {
        Self {
            inner: Arc::new(Inner {
                order,
                at,
                request,
                json: OnceLock::new(),
            }),
        }
    }

    /// Its place among all requests, from 1.
    pub fn order(&self) -> u64 {
        self.inner.order
    }

    /// When it had arrived whole, counted from the start of the server.
    pub fn at(&self) -> Duration {
        self.inner.at
    }

    pub fn method(&self) -> &str {
        &self.inner.request.method
    }

    /// The path with its query.
    pub fn path(&self) -> &str {
        &self.inner.request.path
    }

    /// All header fields in order; names are in lower case.
    pub fn headers(&self) -> &[(String, String)] {
        &self.inner.request.headers.0
    }

    /// The first header field of this name, whatever its case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.inner.request.headers.get(name)
    }

    /// The exact bytes of the body.
    pub fn body(&self) -> &Bytes {
        &self.inner.request.body
    }

    /// The body as JSON; `null` if it is none.
    pub fn json(&self) -> &Value {
        let parse = || serde_json::from_slice(self.body()).unwrap_or_default();
        self.inner.json.get_or_init(parse)
    }

    /// The model asked for.
    pub fn model(&self) -> &str {
        self.json()["model"].as_str().unwrap_or_default()
    }

    pub fn messages(&self) -> &[Value] {
        list(&self.json()["messages"])
    }

    pub fn last_message(&self) -> &Value {
        self.messages().last().unwrap_or(&Value::Null)
    }

    /// The number of assistant messages.
    pub fn assistant_messages(&self) -> usize {
        let of_assistant = |message: &&Value| message["role"] == "assistant";
        self.messages().iter().filter(of_assistant).count()
    }

    /// All tool results of the conversation, in order. Every request carries the whole
    /// conversation, so these are all results so far.
    pub fn tool_results(&self) -> Vec<SeenToolResult> {
        self.messages().iter().flat_map(results_of).collect()
    }

    /// The tool results after the last assistant message. What the client adds with this request.
    pub fn newest_tool_results(&self) -> Vec<SeenToolResult> {
        let messages = self.messages();
        let after = messages
            .iter()
            .rposition(|message| message["role"] == "assistant")
            .map_or(0, |index| index + 1);
        messages[after..].iter().flat_map(results_of).collect()
    }

    /// The names of the tools on offer, in order.
    pub fn tool_names(&self) -> Vec<&str> {
        list(&self.json()["tools"])
            .iter()
            .filter_map(|tool| tool["name"].as_str().or(tool["function"]["name"].as_str()))
            .collect()
    }

    /// The text of the system prompt; several parts are joined by line breaks.
    pub fn system_text(&self) -> String {
        let json = self.json();
        if !json["system"].is_null() {
            return text_of(&json["system"]);
        }
        let is_system =
            |message: &&Value| matches!(message["role"].as_str(), Some("system" | "developer"));
        let systems = self.messages().iter().filter(is_system);
        let texts: Vec<String> = systems
            .map(|message| text_of(&message["content"]))
            .collect();
        texts.join("\n")
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// A `tool` message of the OpenAI format is one result; a user message of the other may hold
/// several.
fn results_of(message: &Value) -> Vec<SeenToolResult> {
    if message["role"] == "tool" {
        return vec![SeenToolResult {
            tool_use_id: text_of(&message["tool_call_id"]),
            text: text_of(&message["content"]),
            is_error: false,
        }];
    }
    list(&message["content"])
        .iter()
        .filter(|block| block["type"] == "tool_result")
        .map(|block| SeenToolResult {
            tool_use_id: text_of(&block["tool_use_id"]),
            text: text_of(&block["content"]),
            is_error: block["is_error"] == true,
        })
        .collect()
}

/// A text as it is, or the texts of a list joined by line breaks.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts
                .iter()
                .filter_map(|part| part["text"].as_str())
                .collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}

/// The requests kept so far. `count` goes on where requests are not kept.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    count: u64,
    requests: VecDeque<CapturedRequest>,
}

impl Kept {
    /// Counts the request and keeps it if it is to be kept; returns its order.
    pub(crate) fn add(&mut self, capture: RequestCapture, at: Duration, request: &Request) -> u64 {
        self.count += 1;
        let limit = match capture {
            RequestCapture::All => usize::MAX,
            RequestCapture::Last(limit) => limit,
            RequestCapture::Off => 0,
        };
        if limit > 0 {
            while self.requests.len() >= limit {
                self.requests.pop_front();
            }
            let captured = CapturedRequest::new(self.count, at, request.clone());
            self.requests.push_back(captured);
        }
        self.count
    }

    pub(crate) fn all(&self) -> Vec<CapturedRequest> {
        self.requests.iter().cloned().collect()
    }

    pub(crate) fn last(&self) -> Option<CapturedRequest> {
        self.requests.back().cloned()
    }
}
