//! A turn made ready to be sent: templates filled in, ids and token counts decided.
//!
//! What comes out is the same for both formats, which `anthropic_answer` and `openai_answer` then
//! write. Nothing in it depends on time or chance, so the same request is answered with the same
//! bytes on every run.

use codespar_protocol::{StopReason, Usage};
use serde_json::Value;

use crate::{
    Turn, anthropic_answer,
    asked::{Asked, digest, tool_use_id},
    openai_answer,
    sse::Events,
    template::{Within, fill},
    turn::Block,
};

/// The formats the server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    Anthropic,
    OpenAi,
}

/// What is sent.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Made from the turn and the first user message.
    pub(crate) id: String,
    /// The one that was asked for.
    pub(crate) model: String,
    pub(crate) blocks: Vec<Ready>,
    pub(crate) stop_reason: StopReason,
    pub(crate) usage: Usage,
    /// Characters in each delta of a stream.
    pub(crate) chunk: usize,
    /// Whether a stream in the OpenAI format ends with a chunk of token counts.
    pub(crate) stream_usage: bool,
}

/// A block without templates.
#[derive(Debug)]
pub(crate) enum Ready {
    Text(String),
    Thinking {
        thinking: String,
        signature: String,
    },
    RedactedThinking {
        data: String,
    },
    ToolUse {
        id: String,
        name: String,
        input: String,
    },
    Raw(String),
}

impl Ready {
    /// What output tokens are computed from. Signatures and ids do not count.
    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) | Self::Raw(text) | Self::RedactedThinking { data: text } => {
                text.len()
            }
            Self::Thinking { thinking, .. } => thinking.len(),
            Self::ToolUse { name, input, .. } => name.len() + input.len(),
        }
    }
}

impl Answer {
    pub(crate) fn new(turn: &Turn, asked: &Asked) -> Self {
        let mut calls = 0;
        let blocks: Vec<Ready> = turn
            .content
            .iter()
            .map(|block| ready(block, asked, &mut calls))
            .collect();
        let bytes = blocks.iter().map(Ready::bytes).sum();
        Self {
            id: format!("msg_{}_{:016x}", asked.turn + 1, digest(&asked.first_user)),
            model: asked.model.clone(),
            blocks,
            stop_reason: turn.stop_reason(),
            usage: turn.usage.resolve(asked.bytes, bytes),
            chunk: turn.chunk,
            stream_usage: asked.stream_usage,
        }
    }
}

/// `calls` counts the tool calls of the turn so far, for their ids.
fn ready(block: &Block, asked: &Asked, calls: &mut usize) -> Ready {
    let text = |text: &str| fill(text, asked, Within::Text).into_owned();
    let json = |text: &str| fill(text, asked, Within::Json).into_owned();
    match block {
        Block::Text(content) => Ready::Text(text(content)),
        Block::Thinking {
            thinking,
            signature,
        } => Ready::Thinking {
            thinking: text(thinking),
            signature: signature.clone(),
        },
        Block::RedactedThinking { data } => Ready::RedactedThinking { data: data.clone() },
        Block::ToolUse { id, name, input } => {
            *calls += 1;
            Ready::ToolUse {
                id: match id {
                    Some(id) => text(id),
                    None => tool_use_id(&asked.first_user, asked.turn + 1, *calls),
                },
                name: name.clone(),
                input: json(input),
            }
        }
        Block::Raw(block) => Ready::Raw(json(block)),
    }
}

impl Wire {
    /// The body of a streamed answer.
    pub(crate) fn events(self, answer: &Answer) -> Events {
        match self {
            Self::Anthropic => anthropic_answer::events(answer),
            Self::OpenAi => openai_answer::events(answer),
        }
    }

    pub(crate) fn whole(self, answer: &Answer) -> Vec<u8> {
        match self {
            Self::Anthropic => anthropic_answer::whole(answer),
            Self::OpenAi => openai_answer::whole(answer),
        }
    }

    /// The body of an error answer around its `error` object.
    pub(crate) fn error_body(self, error: &Value) -> Vec<u8> {
        let body = match self {
            Self::Anthropic => serde_json::json!({"type": "error", "error": error}),
            Self::OpenAi => serde_json::json!({"error": error}),
        };
        body.to_string().into_bytes()
    }

    /// Events of the OpenAI format have no names.
    pub(crate) fn event_name(self, name: &str) -> Option<&str> {
        match self {
            Self::Anthropic => Some(name),
            Self::OpenAi => None,
        }
    }
}
