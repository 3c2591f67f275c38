//! Reads OpenAI chat completion requests and holds them to the rules of the real API.
//!
//! The rules are fewer than those of the other format: a key, a model, at least one message; roles
//! that exist; content unless there are calls; arguments as a text; and a result for every call
//! before anything else is said. Order of roles and tools are not checked.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    asked::{Asked, Content, Delivery, Refused, decode},
    http::Headers,
};

#[derive(Deserialize)]
pub(crate) struct ChatRequest<'a> {
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    stream: Option<bool>,
    /// Token counts of a stream come only if this asks for them.
    stream_options: Option<StreamOptions>,
    #[serde(borrow, default)]
    messages: Vec<Message<'a>>,
}

#[derive(Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    role: Cow<'a, str>,
    #[serde(borrow)]
    content: Option<Content<'a, Part<'a>>>,
    #[serde(borrow)]
    tool_calls: Option<Vec<ToolCall<'a>>>,
    #[serde(borrow)]
    tool_call_id: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ToolCall<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    function: Option<Function<'a>>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

impl Message<'_> {
    /// Parts without a text, such as pictures, are left out.
    fn text(&self) -> String {
        match &self.content {
            None => String::new(),
            Some(Content::Text(text)) => text.to_string(),
            Some(Content::Blocks(parts)) => {
                let texts: Vec<String> = parts
                    .iter()
                    .filter_map(|part| part.text)
                    .map(decode)
                    .collect();
                texts.join("\n")
            }
        }
    }

    /// Empty for a message without calls.
    fn calls(&self) -> &[ToolCall<'_>] {
        self.tool_calls.as_deref().unwrap_or_default()
    }
}

impl<'a> ChatRequest<'a> {
    pub(crate) fn read(body: &'a [u8]) -> Result<Self, Refused> {
        serde_json::from_slice(body).map_err(|error| {
            Refused::invalid(format!("The request body could not be read: {error}"))
        })
    }

    /// System prompts are messages here, of the role `system` or `developer`, wherever they stand.
    pub(crate) fn asked(&self, bytes: usize) -> Asked {
        let of = |role: &'static str| move |message: &&Message| message.role == role;
        let all = |role| self.messages.iter().filter(of(role));
        let system: Vec<String> = self
            .messages
            .iter()
            .filter(|message| matches!(message.role.as_ref(), "system" | "developer"))
            .map(Message::text)
            .collect();
        Asked {
            model: self.model.map_or_else(String::new, decode),
            system: system.join("\n"),
            first_user: all("user").next().map_or_else(String::new, Message::text),
            turn: all("assistant").count(),
            last_tool_result: all("tool")
                .next_back()
                .map_or_else(String::new, Message::text),
            last_user_text: all("user")
                .next_back()
                .map_or_else(String::new, Message::text),
            delivery: Delivery::of(self.stream),
            stream_usage: self
                .stream_options
                .as_ref()
                .is_some_and(|options| options.include_usage),
            bytes,
        }
    }

    /// The first rule that is broken is reported.
    pub(crate) fn check(&self, headers: &Headers) -> Result<(), Refused> {
        if headers.get("x-api-key").is_none() && headers.get("authorization").is_none() {
            return Err(Refused::unauthenticated(
                "You didn't provide an API key in an Authorization header.",
            ));
        }
        if self.model.map(decode).unwrap_or_default().is_empty() {
            return Err(Refused::invalid("you must provide a model parameter"));
        }
        if self.messages.is_empty() {
            return Err(Refused::invalid(
                "messages: at least one message is required",
            ));
        }
        for (index, message) in self.messages.iter().enumerate() {
            message.check(index)?;
        }
        check_tool_pairs(&self.messages)
    }
}

impl Message<'_> {
    fn check(&self, index: usize) -> Result<(), Refused> {
        let known = ["system", "developer", "user", "assistant", "tool"];
        if !known.contains(&self.role.as_ref()) {
            return Err(Refused::invalid(format!(
                "messages[{index}].role: `{}` is not one of {}",
                self.role,
                known.join(", ")
            )));
        }
        let calls_only = self.role == "assistant" && !self.calls().is_empty();
        if self.content.is_none() && !calls_only {
            return Err(Refused::invalid(format!(
                "messages[{index}].content: expected a string or a list, got null"
            )));
        }
        if self.tool_calls.as_ref().is_some_and(Vec::is_empty) {
            return Err(Refused::invalid(format!(
                "messages[{index}].tool_calls: the list is empty; leave it out instead"
            )));
        }
        let is_text = |raw: &RawValue| raw.get().starts_with('"');
        for (at, call) in self.calls().iter().enumerate() {
            let arguments = call
                .function
                .as_ref()
                .and_then(|function| function.arguments);
            if !arguments.is_some_and(is_text) {
                return Err(Refused::invalid(format!(
                    "messages[{index}].tool_calls[{at}].function.arguments: expected a string"
                )));
            }
        }
        Ok(())
    }
}

/// Results may come in any order, and an id may be used again in a later turn.
fn check_tool_pairs(messages: &[Message<'_>]) -> Result<(), Refused> {
    let mut open: Vec<String> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        if message.role == "tool" {
            let id = message.tool_call_id.map(decode).unwrap_or_default();
            let Some(place) = open.iter().position(|waiting| *waiting == id) else {
                return Err(Refused::invalid(format!(
                    "messages[{index}]: messages with role 'tool' must be a response to a \
                     preceding message with 'tool_calls', but nothing waits for `{id}`"
                )));
            };
            open.remove(place);
            continue;
        }
        if !open.is_empty() {
            break;
        }
        let ids = message
            .calls()
            .iter()
            .filter_map(|call| call.id)
            .map(decode);
        open.extend(ids);
    }
    if open.is_empty() {
        return Ok(());
    }
    Err(Refused::invalid(format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to \
         each 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
        open.join(", ")
    )))
}
