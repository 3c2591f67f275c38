//! Writes answers in the format of Anthropic Messages, streamed and whole.
//!
//! A stream has these events, as the real API sends them:
//!
//! ```text
//! message_start           usage with one output token, all input counts
//! content_block_start     the block, empty; a redacted or unknown one whole
//! content_block_delta     text_delta | thinking_delta | signature_delta | input_json_delta
//! content_block_stop
//! ping                    once, after the first block
//! message_delta           stop reason and final usage, cumulative
//! message_stop
//! ```
//!
//! Block events repeat for each block. A signature comes in one piece after the thinking, and the
//! input of a tool begins with an empty delta. Inputs and unknown blocks go out as the script has
//! them, without being parsed and written again.

use std::io::Write;

use codespar_protocol::Usage;
use serde_json::{Value, json, value::RawValue};

use crate::{
    answer::{Answer, Ready},
    sse::{EventKind, Events, pieces, quote},
};

/// The whole stream; faults cut it afterwards by counting these events.
pub(crate) fn events(answer: &Answer) -> Events {
    let mut events = Events::default();
    let begun = Usage {
        output_tokens: 1,
        ..answer.usage
    };
    frame(
        &mut events,
        "message_start",
        &json!({
            "type": "message_start",
            "message": {
                "id": answer.id, "type": "message", "role": "assistant", "model": answer.model,
                "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage(&begun),
            },
        }),
    );
    for (index, block) in answer.blocks.iter().enumerate() {
        push_block(&mut events, index, block, answer.chunk);
        if index == 0 {
            frame(&mut events, "ping", &json!({"type": "ping"}));
        }
    }
    frame(
        &mut events,
        "message_delta",
        &json!({
            "type": "message_delta",
            "delta": {"stop_reason": answer.stop_reason, "stop_sequence": null},
            "usage": usage(&answer.usage),
        }),
    );
    frame(
        &mut events,
        "message_stop",
        &json!({"type": "message_stop"}),
    );
    events
}

fn frame(events: &mut Events, name: &str, data: &Value) {
    events.push(Some(name), EventKind::Frame, |out| {
        // Writing into a Vec cannot fail.
        let _ = write!(out, "{data}");
    });
}

/// `chunk` cuts texts, thinking and inputs into deltas. A block without deltas has its content in
/// the start event.
fn push_block(events: &mut Events, index: usize, block: &Ready, chunk: usize) {
    let start = match block {
        Ready::Text(_) => json!({"type": "text", "text": ""}).to_string(),
        Ready::Thinking { .. } => {
            json!({"type": "thinking", "thinking": "", "signature": ""}).to_string()
        }
        Ready::RedactedThinking { data } => {
            json!({"type": "redacted_thinking", "data": data}).to_string()
        }
        Ready::ToolUse { id, name, .. } => {
            json!({"type": "tool_use", "id": id, "name": name, "input": {}}).to_string()
        }
        Ready::Raw(block) => block.clone(),
    };
    events.push(Some("content_block_start"), EventKind::Frame, |out| {
        let _ = write!(
            out,
            r#"{{"type":"content_block_start","index":{index},"content_block":{start}}}"#
        );
    });
    match block {
        Ready::Text(text) => deltas(events, index, ("text_delta", "text"), pieces(text, chunk)),
        Ready::Thinking {
            thinking,
            signature,
        } => {
            let name = ("thinking_delta", "thinking");
            deltas(events, index, name, pieces(thinking, chunk));
            if !signature.is_empty() {
                let name = ("signature_delta", "signature");
                deltas(events, index, name, std::iter::once(signature.as_str()));
            }
        }
        Ready::ToolUse { input, .. } => {
            let name = ("input_json_delta", "partial_json");
            // The real API starts with an empty piece.
            deltas(
                events,
                index,
                name,
                std::iter::once("").chain(pieces(input, chunk)),
            );
        }
        Ready::RedactedThinking { .. } | Ready::Raw(_) => {}
    }
    let stop = json!({"type": "content_block_stop", "index": index});
    frame(events, "content_block_stop", &stop);
}

fn deltas<'a>(
    events: &mut Events,
    index: usize,
    (kind, field): (&str, &str),
    pieces: impl Iterator<Item = &'a str>,
) {
    for piece in pieces {
        events.push(Some("content_block_delta"), EventKind::Delta, |out| {
            let _ = write!(
                out,
                r#"{{"type":"content_block_delta","index":{index},"delta":{{"type":"{kind}","{field}":"#
            );
            quote(out, piece);
            out.extend_from_slice(b"}}");
        });
    }
}

/// The message as one object, for requests without `stream`.
pub(crate) fn whole(answer: &Answer) -> Vec<u8> {
    let content: Vec<String> = answer.blocks.iter().map(whole_block).collect();
    let mut body = Vec::new();
    let _ = write!(
        body,
        r#"{{"id":{},"type":"message","role":"assistant","model":{},"content":[{}],"stop_reason":{},"stop_sequence":null,"usage":{}}}"#,
        json!(answer.id),
        json!(answer.model),
        content.join(","),
        json!(answer.stop_reason),
        usage(&answer.usage),
    );
    body
}

fn whole_block(block: &Ready) -> String {
    match block {
        Ready::Text(text) => json!({"type": "text", "text": text}).to_string(),
        Ready::Thinking {
            thinking,
            signature,
        } => json!({"type": "thinking", "thinking": thinking, "signature": signature}).to_string(),
        Ready::RedactedThinking { data } => {
            json!({"type": "redacted_thinking", "data": data}).to_string()
        }
        Ready::ToolUse { id, name, input } => {
            // Input that is not JSON can only be sent whole as a string.
            let input = match serde_json::from_str::<&RawValue>(input) {
                Ok(raw) => raw.get().to_owned(),
                Err(_) => json!(input).to_string(),
            };
            format!(
                r#"{{"type":"tool_use","id":{},"name":{},"input":{input}}}"#,
                json!(id),
                json!(name)
            )
        }
        Ready::Raw(block) => block.clone(),
    }
}

/// The counts of the two cache lifetimes add up to the whole that was written to the cache.
fn usage(usage: &Usage) -> Value {
    let searches = usage.web_search_requests;
    let mut value = tokens(usage);
    if searches > 0 {
        value["server_tool_use"] = json!({ "web_search_requests": searches });
    }
    value
}

fn tokens(usage: &Usage) -> Value {
    let hour = usage.cache_creation_1h_input_tokens;
    json!({
        "input_tokens": usage.input_tokens,
        "cache_creation_input_tokens": usage.cache_creation_input_tokens,
        "cache_read_input_tokens": usage.cache_read_input_tokens,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_creation_input_tokens.saturating_sub(hour),
            "ephemeral_1h_input_tokens": hour,
        },
        "output_tokens": usage.output_tokens,
    })
}
