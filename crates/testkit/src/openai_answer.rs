//! Writes answers in the format of OpenAI chat completions, streamed and whole.
//!
//! Reasoning goes into `reasoning_content`, as local servers have it; blocks the format has no
//! place for (redacted reasoning, unknown kinds) are left out.
//!
//! A stream is a list of chunks without names:
//!
//! ```text
//! {"choices": [{"delta": {"role": "assistant", "content": ""}}]}
//! {"choices": [{"delta": {"content": "…"}}]}
//! {"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "…", "function": {…}}]}}]}
//! {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": "…"}}]}}]}
//! {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}
//! {"choices": [], "usage": {…}}             only if stream_options asks for it
//! [DONE]
//! ```

use std::io::Write;

use codespar_protocol::{StopReason, Usage};
use serde_json::{Value, json};

use crate::{
    answer::{Answer, Ready},
    sse::{EventKind, Events, pieces},
};

/// A fixed moment: answers are the same on every run.
const CREATED: u64 = 1_700_000_000;

pub(crate) fn events(answer: &Answer) -> Events {
    let mut stream = ChunkStream {
        answer,
        events: Events::default(),
    };
    stream.delta(
        EventKind::Frame,
        json!({"role": "assistant", "content": ""}),
    );
    let mut calls = 0;
    for block in &answer.blocks {
        match block {
            Ready::Text(text) => {
                for piece in pieces(text, answer.chunk) {
                    stream.delta(EventKind::Delta, json!({"content": piece}));
                }
            }
            Ready::Thinking { thinking, .. } => {
                for piece in pieces(thinking, answer.chunk) {
                    stream.delta(EventKind::Delta, json!({"reasoning_content": piece}));
                }
            }
            Ready::ToolUse { id, name, input } => {
                stream.call(calls, id, name, input);
                calls += 1;
            }
            Ready::RedactedThinking { .. } | Ready::Raw(_) => {}
        }
    }
    let finish = finish_reason(&answer.stop_reason);
    let last = json!([{"index": 0, "delta": {}, "finish_reason": finish}]);
    stream.chunk(EventKind::Frame, &last, None);
    if answer.stream_usage {
        stream.chunk(EventKind::Frame, &json!([]), Some(&usage(&answer.usage)));
    }
    let mut events = stream.events;
    events.push(None, EventKind::Frame, |out| {
        out.extend_from_slice(b"[DONE]");
    });
    events
}

struct ChunkStream<'a> {
    answer: &'a Answer,
    events: Events,
}

impl ChunkStream<'_> {
    /// The change of the only choice there is.
    fn delta(&mut self, kind: EventKind, delta: Value) {
        let mut choice = json!({"index": 0, "delta": null, "finish_reason": null});
        choice["delta"] = delta;
        self.chunk(kind, &Value::Array(vec![choice]), None);
    }

    /// Name and id first, without arguments; then the arguments in pieces. `index` counts calls,
    /// not blocks.
    fn call(&mut self, index: usize, id: &str, name: &str, input: &str) {
        let first = json!({"tool_calls": [{
            "index": index, "id": id, "type": "function",
            "function": {"name": name, "arguments": ""},
        }]});
        self.delta(EventKind::Frame, first);
        for piece in pieces(input, self.answer.chunk) {
            let more = json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]});
            self.delta(EventKind::Delta, more);
        }
    }

    fn chunk(&mut self, kind: EventKind, choices: &Value, usage: Option<&Value>) {
        let id = json!(self.answer.id);
        let model = json!(self.answer.model);
        self.events.push(None, kind, |out| {
            // Writing into a Vec cannot fail.
            let _ = write!(
                out,
                r#"{{"id":{id},"object":"chat.completion.chunk","created":{CREATED},"model":{model},"choices":{choices}"#
            );
            if let Some(usage) = usage {
                let _ = write!(out, r#","usage":{usage}"#);
            }
            out.push(b'}');
        });
    }
}

/// Texts and reasoning of all blocks are joined: a message has one of each. Content is null where
/// there is no text.
pub(crate) fn whole(answer: &Answer) -> Vec<u8> {
    let mut text = None::<String>;
    let mut reasoning = None::<String>;
    let mut calls = Vec::new();
    for block in &answer.blocks {
        match block {
            Ready::Text(piece) => text.get_or_insert_default().push_str(piece),
            Ready::Thinking { thinking, .. } => {
                reasoning.get_or_insert_default().push_str(thinking);
            }
            Ready::ToolUse { id, name, input } => calls.push(json!({
                "id": id, "type": "function",
                "function": {"name": name, "arguments": input},
            })),
            Ready::RedactedThinking { .. } | Ready::Raw(_) => {}
        }
    }
    let mut message = json!({"role": "assistant", "content": text});
    if let Some(reasoning) = reasoning {
        message["reasoning_content"] = Value::from(reasoning);
    }
    if !calls.is_empty() {
        message["tool_calls"] = Value::from(calls);
    }
    let finish = finish_reason(&answer.stop_reason);
    let body = json!({
        "id": answer.id, "object": "chat.completion", "created": CREATED, "model": answer.model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": usage(&answer.usage),
    });
    body.to_string().into_bytes()
}

/// Stop reasons that this format has no word for become the nearest; unknown ones are sent as they
/// are.
fn finish_reason(reason: &StopReason) -> &str {
    match reason {
        StopReason::EndTurn | StopReason::StopSequence | StopReason::PauseTurn => "stop",
        StopReason::ToolUse => "tool_calls",
        StopReason::MaxTokens | StopReason::ContextWindowExceeded => "length",
        StopReason::Refusal => "content_filter",
        StopReason::Other(word) => word,
    }
}

/// Cached input is part of the prompt tokens here, while the other format counts it apart.
fn usage(usage: &Usage) -> Value {
    json!({
        "prompt_tokens": usage.context_tokens(),
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens(),
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_input_tokens},
    })
}
