//! One scripted answer of the model: its blocks, its pace and the faults that come before it.
//!
//! A turn says what the model answers, not how it goes over the wire: the same turn is sent as
//! Anthropic events, as OpenAI chunks or in one piece. What the request does not decide (ids, token
//! counts, the stop reason) is computed so that it is the same on every run.

use std::time::Duration;

use codespar_protocol::{StopReason, Usage};
use serde::Deserialize;
use serde_json::Value;

use crate::{Fault, Gate};

/// How many characters a delta carries when a turn does not say.
const DEFAULT_CHUNK: usize = 64;

/// One answer of the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    pub(crate) content: Vec<Block>,
    /// As set; `None` is worked out from the content when the turn is played.
    pub(crate) stop_reason: Option<StopReason>,
    pub(crate) usage: TurnUsage,
    /// Before the first byte, of a fault as well.
    pub(crate) latency: Duration,
    pub(crate) gate: Option<Gate>,
    /// Before the delta of this number, from 0, of a streamed answer.
    pub(crate) hold: Option<(Gate, usize)>,
    /// Before each delta of a streamed answer; one in a piece ignores it.
    pub(crate) delay: Duration,
    /// Characters in each delta.
    pub(crate) chunk: usize,
    /// One for each attempt, in order.
    pub(crate) faults: Vec<Fault>,
}

/// A content block of an answer. Text, thinking, ids and inputs may hold templates.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Block {
    Text(String),
    Thinking {
        thinking: String,
        signature: String,
    },
    RedactedThinking {
        data: String,
    },
    ToolUse {
        /// None: made from the conversation and the place, so that it is the same on every run.
        id: Option<String>,
        name: String,
        /// Sent as it stands: JSON as a rule, anything when the model is to write nonsense.
        input: String,
    },
    /// A JSON object of a kind this crate knows nothing about. Sent as it stands, with templates
    /// filled in. Only the Anthropic format has room for it.
    Raw(String),
}

/// Tokens to report; what is not set is computed from sizes, cache counts are zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TurnUsage {
    pub(crate) input_tokens: Option<u64>,
    pub(crate) output_tokens: Option<u64>,
    pub(crate) cache_creation_input_tokens: u64,
    pub(crate) cache_read_input_tokens: u64,
    pub(crate) cache_creation_1h_input_tokens: u64,
    pub(crate) web_search_requests: u64,
}

impl TurnUsage {
    /// Four bytes a token, about what real tokenizers give. Never 0 where it is computed: clients
    /// take a count of 0 for one that is missing.
    pub(crate) fn resolve(&self, request_bytes: usize, answer_bytes: usize) -> Usage {
        let tokens = |bytes: usize| (bytes as u64).div_ceil(4).max(1);
        Usage {
            web_search_requests: self.web_search_requests,
            input_tokens: self.input_tokens.unwrap_or_else(|| tokens(request_bytes)),
            output_tokens: self.output_tokens.unwrap_or_else(|| tokens(answer_bytes)),
            cache_creation_input_tokens: self.cache_creation_input_tokens,
            cache_read_input_tokens: self.cache_read_input_tokens,
            cache_creation_1h_input_tokens: self.cache_creation_1h_input_tokens,
        }
    }
}

impl Default for Turn {
    fn default() -> Self {
        Self {
            content: Vec::new(),
            stop_reason: None,
            usage: TurnUsage::default(),
            latency: Duration::ZERO,
            gate: None,
            hold: None,
            delay: Duration::ZERO,
            chunk: DEFAULT_CHUNK,
            faults: Vec::new(),
        }
    }
}

impl Turn {
    /// An empty answer, to add blocks to.
    pub fn new() -> Self {
        Self::default()
    }

    /// An answer of text alone.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new().and_text(text)
    }

    /// An answer that calls one tool.
    pub fn tool(name: impl Into<String>, input: &Value) -> Self {
        Self::new().and_tool(name, input)
    }

    pub fn and_text(self, text: impl Into<String>) -> Self {
        self.and(Block::Text(text.into()))
    }

    /// Adds a tool call; its id is made by [`crate::tool_use_id`].
    pub fn and_tool(self, name: impl Into<String>, input: &Value) -> Self {
        self.and_tool_written(None, name, input.to_string())
    }

    /// Adds a tool call with an id of its own.
    pub fn and_tool_with_id(
        self,
        id: impl Into<String>,
        name: impl Into<String>,
        input: &Value,
    ) -> Self {
        self.and_tool_written(Some(id.into()), name, input.to_string())
    }

    /// Adds a tool call whose input is sent exactly as written, JSON or not.
    pub fn and_tool_written(
        self,
        id: Option<String>,
        name: impl Into<String>,
        input: impl Into<String>,
    ) -> Self {
        self.and(Block::ToolUse {
            id,
            name: name.into(),
            input: input.into(),
        })
    }

    /// Adds signed reasoning.
    pub fn and_thinking(self, thinking: impl Into<String>, signature: impl Into<String>) -> Self {
        self.and(Block::Thinking {
            thinking: thinking.into(),
            signature: signature.into(),
        })
    }

    /// Adds encrypted reasoning.
    pub fn and_redacted_thinking(self, data: impl Into<String>) -> Self {
        self.and(Block::RedactedThinking { data: data.into() })
    }

    /// Adds a block of any kind, sent as it stands. The OpenAI format has no place for it.
    pub fn and_raw(self, block: &Value) -> Self {
        self.and(Block::Raw(block.to_string()))
    }

    /// Says why the model stopped; by default `tool_use` if it calls a tool, else `end_turn`.
    pub fn stop(mut self, reason: StopReason) -> Self {
        self.stop_reason = Some(reason);
        self
    }

    /// Sets the tokens reported.
    pub fn usage(mut self, usage: Usage) -> Self {
        self.usage = TurnUsage {
            input_tokens: Some(usage.input_tokens),
            output_tokens: Some(usage.output_tokens),
            cache_creation_input_tokens: usage.cache_creation_input_tokens,
            cache_read_input_tokens: usage.cache_read_input_tokens,
            cache_creation_1h_input_tokens: usage.cache_creation_1h_input_tokens,
            web_search_requests: usage.web_search_requests,
        };
        self
    }

    /// Waits this long before the first byte of the answer.
    pub fn latency(mut self, latency: Duration) -> Self {
        self.latency = latency;
        self
    }

    /// Waits until the gate is open before the first byte of the answer. The test opens it when it
    /// has seen what it waited for; a client that goes away first counts as dropped.
    pub fn held_by(mut self, gate: &Gate) -> Self {
        self.gate = Some(gate.clone());
        self
    }

    /// Waits until the gate is open after so many deltas of a streamed answer.
    pub fn held_after(mut self, deltas: usize, gate: &Gate) -> Self {
        self.hold = Some((gate.clone(), deltas));
        self
    }

    /// Waits this long before each delta.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Sets how many characters each delta carries (64 by default, at least 1).
    pub fn chunk(mut self, characters: usize) -> Self {
        self.chunk = characters.max(1);
        self
    }

    /// Adds a fault. The first attempt at this turn meets the first fault, and so on; when they
    /// are used up the turn is played well.
    pub fn fault(mut self, fault: Fault) -> Self {
        self.faults.push(fault);
        self
    }

    pub(crate) fn and(mut self, block: Block) -> Self {
        self.content.push(block);
        self
    }

    pub(crate) fn stop_reason(&self) -> StopReason {
        let calls = |block: &Block| matches!(block, Block::ToolUse { .. });
        match &self.stop_reason {
            Some(reason) => reason.clone(),
            None if self.content.iter().any(calls) => StopReason::ToolUse,
            None => StopReason::EndTurn,
        }
    }
}
