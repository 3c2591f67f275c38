//! Pieces of answers as the events of the provider's stream, for `--include-partial-messages`.
//!
//! ```text
//! message_start
//!   content_block_start, content_block_delta …, content_block_stop     for each block
//! message_delta, message_stop
//! ```
//!
//! They are made from our own events, so that every provider has them. The calls of tools come whole
//! at the end of the answer. An answer that is begun anew after a failure begins with another
//! `message_start`.

use std::collections::HashMap;

use codespar_protocol::{ContentBlock, EntryId, Event, SessionId, ToolUseId};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// Which kind of block is open.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Text,
    Thinking,
}

/// The answer under way of one agent.
#[derive(Default)]
struct Answer {
    id: Option<String>,
    index: usize,
    open: Option<Open>,
}

/// Turns events into pieces. The answers of several agents may be under way at once.
#[derive(Default)]
pub(crate) struct Partials {
    answers: Mutex<HashMap<Option<ToolUseId>, Answer>>,
}

impl Partials {
    /// The lines that an event comes to, before its own.
    pub(crate) fn lines(&self, event: &Event, session: SessionId, model: &str) -> Vec<String> {
        let (parent, event) = match event {
            Event::Subagent {
                parent_tool_use_id,
                event,
                ..
            } => (Some(parent_tool_use_id.clone()), &**event),
            event => (None, event),
        };
        let mut answers = self.answers.lock();
        let answer = answers.entry(parent.clone()).or_default();
        let pieces = match event {
            Event::TextDelta { text } => answer.piece(
                Open::Text,
                &json!({ "type": "text_delta", "text": text }),
                model,
            ),
            Event::ThinkingDelta { text } => {
                let delta = json!({ "type": "thinking_delta", "thinking": text });
                answer.piece(Open::Thinking, &delta, model)
            }
            Event::Assistant {
                message,
                stop_reason,
                usage,
                ..
            } => {
                let mut pieces = answer.start(model);
                pieces.extend(answer.close());
                for block in &message.content {
                    if matches!(block, ContentBlock::Text(_) | ContentBlock::Thinking(_)) {
                        continue;
                    }
                    pieces.extend(answer.whole(block));
                }
                pieces.push(json!({
                    "type": "message_delta",
                    "delta": { "stop_reason": stop_reason, "stop_sequence": null },
                    "usage": { "input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens },
                }));
                pieces.push(json!({ "type": "message_stop" }));
                *answer = Answer::default();
                pieces
            }
            // What came of the failed attempt is void.
            Event::Retrying { .. } | Event::Finished(_) => {
                *answer = Answer::default();
                Vec::new()
            }
            _ => Vec::new(),
        };
        let line = |piece: Value| {
            json!({
                "type": "stream_event", "event": piece, "parent_tool_use_id": parent,
                "session_id": session, "uuid": EntryId::new(),
            })
            .to_string()
        };
        pieces.into_iter().map(line).collect()
    }
}

impl Answer {
    /// Nothing if it has begun.
    fn start(&mut self, model: &str) -> Vec<Value> {
        if self.id.is_some() {
            return Vec::new();
        }
        let id = format!("msg_{}", EntryId::new());
        self.id = Some(id.clone());
        vec![json!({
            "type": "message_start",
            "message": {
                "id": id, "type": "message", "role": "assistant", "model": model, "content": [],
                "stop_reason": null, "stop_sequence": null,
                "usage": { "input_tokens": 0, "output_tokens": 0 },
            },
        })]
    }

    fn close(&mut self) -> Option<Value> {
        self.open.take()?;
        let piece = json!({ "type": "content_block_stop", "index": self.index });
        self.index += 1;
        Some(piece)
    }

    fn piece(&mut self, kind: Open, delta: &Value, model: &str) -> Vec<Value> {
        let mut pieces = self.start(model);
        if self.open != Some(kind) {
            pieces.extend(self.close());
            let block = match kind {
                Open::Text => json!({ "type": "text", "text": "" }),
                Open::Thinking => json!({ "type": "thinking", "thinking": "", "signature": "" }),
            };
            pieces.push(json!({ "type": "content_block_start", "index": self.index, "content_block": block }));
            self.open = Some(kind);
        }
        pieces.push(json!({ "type": "content_block_delta", "index": self.index, "delta": delta }));
        pieces
    }

    /// A block that was not streamed.
    fn whole(&mut self, block: &ContentBlock) -> Vec<Value> {
        let index = self.index;
        self.index += 1;
        let stop = json!({ "type": "content_block_stop", "index": index });
        let ContentBlock::ToolUse(call) = block else {
            let block = json!(block);
            let start =
                json!({ "type": "content_block_start", "index": index, "content_block": block });
            return vec![start, stop];
        };
        let start = json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": {} });
        let delta = json!({ "type": "input_json_delta", "partial_json": call.input.get() });
        vec![
            json!({ "type": "content_block_start", "index": index, "content_block": start }),
            json!({ "type": "content_block_delta", "index": index, "delta": delta }),
            stop,
        ]
    }
}
