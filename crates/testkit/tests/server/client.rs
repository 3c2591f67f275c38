//! A small client: sends a body, reads the answer, takes event streams apart.

use codespar_testkit::ScriptedModel;
use serde_json::{Value, json};

pub(crate) struct Client {
    http: reqwest::Client,
    base: String,
}

pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    /// The body, or what broke while it was read.
    pub(crate) body: Result<Vec<u8>, reqwest::Error>,
}

impl Client {
    pub(crate) fn new(server: &ScriptedModel) -> Self {
        // reqwest wants a provider even when nothing is encrypted; a second one is refused.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self {
            http: reqwest::Client::new(),
            base: server.url(),
        }
    }

    /// A request with all that the Anthropic API requires.
    pub(crate) fn request(&self, path: &str, body: &Value) -> reqwest::RequestBuilder {
        self.bare(path, body)
            .header("x-api-key", "scripted")
            .header("anthropic-version", "2023-06-01")
    }

    /// A request without those headers.
    pub(crate) fn bare(&self, path: &str, body: &Value) -> reqwest::RequestBuilder {
        self.http
            .post(format!("{}{path}", self.base))
            .header("content-type", "application/json")
            .body(body.to_string())
    }

    pub(crate) async fn try_messages(&self, body: &Value) -> Result<Reply, reqwest::Error> {
        read(self.request("/v1/messages", body)).await
    }

    pub(crate) async fn messages(&self, body: &Value) -> Reply {
        self.try_messages(body).await.unwrap()
    }

    pub(crate) async fn chat(&self, body: &Value) -> Reply {
        read(self.request("/v1/chat/completions", body))
            .await
            .unwrap()
    }
}

pub(crate) async fn read(request: reqwest::RequestBuilder) -> Result<Reply, reqwest::Error> {
    let response = request.send().await?;
    Ok(Reply {
        status: response.status().as_u16(),
        headers: response.headers().clone(),
        body: response.bytes().await.map(|bytes| bytes.to_vec()),
    })
}

impl Reply {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.as_ref().unwrap().clone()).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text()).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        Some(self.headers.get(name)?.to_str().unwrap())
    }

    /// The data of its events; `[DONE]` becomes a string.
    pub(crate) fn events(&self) -> Vec<Value> {
        events(&self.text())
    }

    /// The text of the first content block of an answer that was not streamed.
    pub(crate) fn said(&self) -> String {
        let json = self.json();
        let text = json["content"][0]["text"].as_str();
        text.unwrap_or_else(|| panic!("no text in {json}"))
            .to_owned()
    }

    /// The status and message of an error.
    pub(crate) fn refusal(&self) -> (u16, String) {
        let message = self.json()["error"]["message"].as_str().unwrap().to_owned();
        (self.status, message)
    }
}

/// Checks that each event's name is its type, as far as it has a name.
pub(crate) fn events(body: &str) -> Vec<Value> {
    body.split_terminator("\n\n")
        .map(|event| {
            let (name, data) = match event.strip_prefix("event: ") {
                Some(rest) => {
                    let (name, data) = rest.split_once('\n').unwrap();
                    (Some(name), data)
                }
                None => (None, event),
            };
            let data = data.strip_prefix("data: ").unwrap();
            let data = serde_json::from_str(data).unwrap_or_else(|_| json!(data));
            if let (Some(name), Value::Object(_)) = (name, &data) {
                assert_eq!(data["type"], name);
            }
            data
        })
        .collect()
}

/// A request body: these messages, whole answer.
pub(crate) fn ask(messages: Value) -> Value {
    let mut body = json!({"model": "claude-test", "max_tokens": 100});
    body["messages"] = messages;
    body
}

/// The same, streamed.
pub(crate) fn ask_stream(messages: Value) -> Value {
    let mut body = ask(messages);
    body["stream"] = json!(true);
    body
}

pub(crate) fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

pub(crate) fn assistant(text: &str) -> Value {
    json!({"role": "assistant", "content": [{"type": "text", "text": text}]})
}

/// A conversation in which the assistant has spoken so many times.
pub(crate) fn after(first: &str, answers: usize) -> Value {
    let mut messages = vec![user(first)];
    for number in 1..=answers {
        messages.push(assistant(&format!("answer {number}")));
        messages.push(user(&format!("question {number}")));
    }
    Value::from(messages)
}
