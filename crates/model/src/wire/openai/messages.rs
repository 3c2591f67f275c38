//! Our messages as chat messages. Reasoning and blocks that this format has no word for stay
//! behind; everything else is borrowed where it lies.
//!
//! ```text
//! our user message      tool messages, one for each result, then one user message
//! our assistant message one assistant message: text and tool_calls
//! system prompt         the first message
//! ```

use std::borrow::Cow;

use codespar_protocol::{ContentBlock, Image, Message, Role, ToolResult, ToolResultContent};
use serde::{Deserialize, Serialize};

use crate::{Request, wire::sendable_input};

#[derive(Serialize)]
pub(super) struct ChatMessage<'a> {
    role: &'static str,
    content: Content<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

/// `Nothing` is written as `null`.
#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    /// Plain text, which every server understands.
    Text(Cow<'a, str>),
    /// Needed for pictures.
    Parts(Vec<Part<'a>>),
    /// An assistant that only calls tools.
    Nothing,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text { text: Cow<'a, str> },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
struct Call<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: CalledFunction<'a>,
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: &'a str,
    arguments: Cow<'a, str>,
}

/// The system prompt and the conversation.
pub(super) fn chat_messages(request: &Request) -> Vec<ChatMessage<'_>> {
    let mut out = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.is_empty() {
        out.push(said(
            "system",
            Content::Text(Cow::Borrowed(&request.system)),
        ));
    }
    for message in &request.messages {
        match message.role {
            Role::User => user(message, &mut out),
            Role::Assistant => out.push(assistant(message)),
        }
    }
    out
}

fn said<'a>(role: &'static str, content: Content<'a>) -> ChatMessage<'a> {
    ChatMessage {
        role,
        content,
        tool_calls: Vec::new(),
        tool_call_id: None,
    }
}

/// All text blocks become one text. An assistant message without text and calls has an empty text,
/// not `null`.
fn assistant(message: &Message) -> ChatMessage<'_> {
    let calls = message.tool_uses().map(|call| Call {
        id: &call.id.0,
        kind: "function",
        function: CalledFunction {
            name: &call.name,
            arguments: sendable_input(call),
        },
    });
    let tool_calls: Vec<_> = calls.collect();
    let texts = message.content.iter().filter_map(ContentBlock::as_text);
    let text = texts.fold(Cow::Borrowed(""), |before, next| before + next);
    ChatMessage {
        content: if text.is_empty() && !tool_calls.is_empty() {
            Content::Nothing
        } else {
            Content::Text(text)
        },
        tool_calls,
        ..said("assistant", Content::Nothing)
    }
}

/// Tool results must follow their calls directly, so they come first, each as a message of its
/// own. A tool message holds only text: pictures in results move to the user message after them.
fn user<'a>(message: &'a Message, out: &mut Vec<ChatMessage<'a>>) {
    let mut parts = Vec::new();
    for block in &message.content {
        if let ContentBlock::ToolResult(result) = block {
            out.push(tool_result(result));
            result_images(result, &mut parts);
        }
    }
    for block in &message.content {
        match block {
            ContentBlock::Text(block) => parts.push(Part::Text {
                text: Cow::Borrowed(&block.text),
            }),
            ContentBlock::Image(image) => parts.push(picture(image)),
            _ => {}
        }
    }
    if !parts.is_empty() {
        out.push(said("user", one_text(parts)));
    }
}

/// Parts as one text, unless there are pictures among them.
fn one_text(parts: Vec<Part<'_>>) -> Content<'_> {
    if !parts.iter().all(|part| matches!(part, Part::Text { .. })) {
        return Content::Parts(parts);
    }
    let texts = parts.into_iter().filter_map(|part| match part {
        Part::Text { text } => Some(text),
        Part::ImageUrl { .. } => None,
    });
    let joined = texts.reduce(|before, next| Cow::Owned(format!("{before}\n\n{next}")));
    Content::Text(joined.unwrap_or_default())
}

fn tool_result(result: &ToolResult) -> ChatMessage<'_> {
    let text = match &result.content {
        ToolResultContent::Text(text) => Cow::Borrowed(text.as_str()),
        ToolResultContent::Blocks(_) => Cow::Owned(result.content.text()),
    };
    // The format has no word for failure, and the model must not take one for success.
    let text = if result.is_error {
        Cow::Owned(format!("Error: {text}"))
    } else if text.is_empty() && images(result).next().is_some() {
        Cow::Borrowed("(a picture, shown in the next message)")
    } else {
        text
    };
    ChatMessage {
        tool_call_id: Some(&result.tool_use_id.0),
        ..said("tool", Content::Text(text))
    }
}

fn images(result: &ToolResult) -> impl Iterator<Item = &Image> {
    let blocks = match &result.content {
        ToolResultContent::Text(_) => &[],
        ToolResultContent::Blocks(blocks) => blocks.as_slice(),
    };
    blocks.iter().filter_map(|block| match block {
        ContentBlock::Image(image) => Some(image),
        _ => None,
    })
}

/// Each picture is preceded by a text that names the call, since it no longer stands beside its
/// result.
fn result_images<'a>(result: &'a ToolResult, parts: &mut Vec<Part<'a>>) {
    for image in images(result) {
        let label = format!("Picture from the result of call {}:", result.tool_use_id);
        parts.push(Part::Text {
            text: Cow::Owned(label),
        });
        parts.push(picture(image));
    }
}

/// A source of an unknown kind becomes a text that says so; the request is not refused for it.
fn picture(image: &Image) -> Part<'_> {
    #[derive(Deserialize)]
    #[serde(tag = "type", rename_all = "snake_case")]
    enum Source {
        Base64 { media_type: String, data: String },
        Url { url: String },
    }
    let url = match serde_json::from_str(image.source.get()) {
        Ok(Source::Base64 { media_type, data }) => format!("data:{media_type};base64,{data}"),
        Ok(Source::Url { url }) => url,
        Err(_) => {
            return Part::Text {
                text: Cow::Borrowed("(a picture in a form that cannot be sent to this provider)"),
            };
        }
    };
    Part::ImageUrl {
        image_url: ImageUrl { url },
    }
}
