//! The lines of a cassette file.

use codespar_protocol::{ContentBlock, Message, StopReason, Usage};
use serde::{Deserialize, Serialize};

use crate::{ModelEvent, Response};

/// The version of the format that this code writes and reads.
pub(super) const FORMAT: u32 = 1;

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    pub(super) cassette: u32,
    #[serde(rename = "match", default)]
    pub(super) matching: Matching,
}

/// How a request finds its answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Matching {
    /// By the digest of its messages.
    #[default]
    Messages,
    /// By the number of answers before it.
    Turn,
}

/// Any other line. Unknown fields are refused, so that a typing error in a cassette written by hand
/// is reported and not ignored.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) turn: Option<usize>,
    /// In lower case, once it was read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) contains: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) request: Option<Asked>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) events: Option<Vec<Piece>>,
    pub(super) response: Answered,
}

/// For the reader of the file; replay does not look at it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Asked {
    pub(super) model: String,
    pub(super) messages: usize,
    pub(super) last: String,
}

/// A piece of an answer as it was streamed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Piece {
    Text(String),
    Thinking(String),
}

impl From<Piece> for ModelEvent {
    fn from(piece: Piece) -> Self {
        match piece {
            Piece::Text(text) => Self::TextDelta(text),
            Piece::Thinking(text) => Self::ThinkingDelta(text),
        }
    }
}

/// A whole answer. Apart from [`Response`] because a hand-written line may leave most of it out.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Answered {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    content: Vec<ContentBlock>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_reason: Option<StopReason>,
    #[serde(default)]
    usage: Usage,
}

impl From<Response> for Answered {
    fn from(response: Response) -> Self {
        Self {
            id: response.id,
            model: Some(response.model),
            content: response.message.content,
            stop_reason: Some(response.stop_reason),
            usage: response.usage,
        }
    }
}

impl Answered {
    /// The answer to a request for `model`; what a hand-written line leaves out follows from
    /// the rest.
    pub(super) fn into_response(self, model: String) -> Response {
        let message = Message::assistant(self.content);
        let calls = message.tool_uses().next().is_some();
        let stop_reason = self.stop_reason.unwrap_or(if calls {
            StopReason::ToolUse
        } else {
            StopReason::EndTurn
        });
        Response {
            id: self.id,
            model: self.model.unwrap_or(model),
            message,
            stop_reason,
            usage: self.usage,
        }
    }
}

impl Line {
    /// What a replay yields.
    pub(super) fn into_events(self, model: String) -> Vec<ModelEvent> {
        let response = self.response.into_response(model);
        let mut events: Vec<ModelEvent> = match self.events {
            Some(pieces) => pieces.into_iter().map(Into::into).collect(),
            None => {
                let blocks = response.message.content.iter();
                blocks.filter_map(whole_piece).map(Into::into).collect()
            }
        };
        events.push(ModelEvent::Finished(response));
        events
    }
}

fn whole_piece(block: &ContentBlock) -> Option<Piece> {
    match block {
        ContentBlock::Text(block) => Some(Piece::Text(block.text.clone())),
        ContentBlock::Thinking(block) => Some(Piece::Thinking(block.thinking.clone())),
        _ => None,
    }
}
