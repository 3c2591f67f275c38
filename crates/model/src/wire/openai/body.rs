//! A request as a chat completions body.
//!
//! Optional fields are left out entirely when they are not set. Tool schemas are copied as raw
//! JSON.

use serde::Serialize;
use serde_json::value::RawValue;

use super::messages::{ChatMessage, chat_messages};
use crate::Request;

/// How the limit on the answer is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LimitField {
    /// What local servers and most vendors read.
    MaxTokens,
    /// What the newer models at api.openai.com insist on.
    MaxCompletionTokens,
}

impl LimitField {
    /// Chosen by host: only OpenAI itself refuses the older name.
    pub(crate) fn for_host(host: &str) -> Self {
        if host == "api.openai.com" {
            Self::MaxCompletionTokens
        } else {
            Self::MaxTokens
        }
    }
}

/// The body of a streaming call. `include_usage` is always set: without it streams carry no token
/// counts.
pub(crate) fn body(request: &Request, limit: LimitField) -> Result<Vec<u8>, serde_json::Error> {
    let named = |field| (limit == field).then_some(request.max_tokens);
    let tools = request.tools.iter().map(|tool| Tool {
        kind: "function",
        function: Function {
            name: &tool.name,
            description: &tool.description,
            parameters: &tool.input_schema,
        },
    });
    serde_json::to_vec(&Body {
        model: &request.model,
        messages: chat_messages(request),
        tools: tools.collect(),
        max_tokens: named(LimitField::MaxTokens),
        max_completion_tokens: named(LimitField::MaxCompletionTokens),
        temperature: request.temperature,
        reasoning_effort: request.effort.map(|effort| effort.as_str()),
        stop: &request.stop_sequences,
        stream: true,
        stream_options: StreamOptions {
            include_usage: true,
        },
    })
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<ChatMessage<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop: &'a [String],
    stream: bool,
    stream_options: StreamOptions,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a RawValue,
}
