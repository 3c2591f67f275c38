//! What goes to a model and what comes back, whoever the provider is.

use std::{sync::Arc, time::Duration};

use codespar_protocol::{Message, StopReason, Usage};
use serde_json::value::RawValue;

/// A tool as the model sees it.
#[derive(Debug, Clone)]
pub struct ToolSpec {
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// JSON schema of its input.
    pub input_schema: Arc<RawValue>,
}

/// How hard a reasoning model should think, where the provider has such a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// A little.
    Low,
    /// The middle.
    Medium,
    /// A lot.
    High,
    /// More, where the model knows it.
    ExtraHigh,
    /// Without regard to cost, where the model knows it.
    Max,
}

impl Effort {
    /// The word on the wire, the same for every provider.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::ExtraHigh => "xhigh",
            Self::Max => "max",
        }
    }
}

/// Whether a model thinks before it answers, where the provider has such a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThinkingChoice {
    /// As the model sees fit.
    Adaptive,
    /// For at most this many tokens.
    Enabled {
        budget_tokens: u32,
    },
    Disabled,
}

impl ThinkingChoice {
    /// Providers refuse a smaller budget.
    const LEAST: u32 = 1_024;

    /// By a number of tokens, of which 0 means none.
    pub fn of_tokens(tokens: u32) -> Self {
        match tokens {
            0 => Self::Disabled,
            tokens => Self::Enabled {
                budget_tokens: tokens.max(Self::LEAST),
            },
        }
    }
}

/// One call. Cloning is cheap: the parts that grow are shared.
#[derive(Debug, Clone)]
pub struct Request {
    /// The provider's own id of the model (aliases are already resolved).
    pub model: String,
    /// System prompt; empty for none.
    pub system: Arc<str>,
    /// The conversation so far.
    pub messages: Vec<Arc<Message>>,
    /// Tools on offer.
    pub tools: Arc<[ToolSpec]>,
    /// How many searches of the web the provider may make for the answer; 0 offers none. Only for a
    /// model that [searches](crate::Model::searches_web).
    pub web_searches: u32,
    /// Limit on the answer.
    pub max_tokens: u32,
    /// Sent only when set.
    pub temperature: Option<f32>,
    /// Sent only when set.
    pub effort: Option<Effort>,
    /// Sent only when set, and only where the wire format has it.
    pub thinking: Option<ThinkingChoice>,
    /// Sent only when not empty.
    pub stop_sequences: Vec<String>,
}

/// A piece of what happens during a call.
#[derive(Debug, Clone)]
pub enum ModelEvent {
    /// A try failed; the next one starts after `delay`. Whatever was yielded of the failed try
    /// is void: the answer starts anew.
    Retrying {
        /// The try that failed, from 1.
        attempt: u32,
        /// How long it waits.
        delay: Duration,
        /// What went wrong, in one line.
        reason: String,
        /// Whether the provider may charge for the failed try.
        may_be_charged: bool,
    },
    /// Tokens of the try under way so far. Input is zero until the provider has counted it;
    /// output is estimated on the high side until then. Comes now and then, and before a
    /// failure.
    Counted(Usage),
    /// A piece of text.
    TextDelta(String),
    /// A piece of reasoning.
    ThinkingDelta(String),
    /// The whole answer.
    Finished(Response),
}

/// A whole answer. It is appended to the conversation as it is: later requests send the blocks back
/// unchanged.
#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    /// The provider's id of the message.
    pub id: Option<String>,
    /// The model that answered, as the provider names it.
    pub model: String,
    /// The message, blocks in order and unmodified.
    pub message: Message,
    /// Why it stopped.
    pub stop_reason: StopReason,
    /// Tokens.
    pub usage: Usage,
}
