//! The shapes of streamed chunks, and of an answer that comes whole: that is one chunk.
//!
//! Every field is optional: servers differ in what they leave out. Unknown fields are ignored.

use std::borrow::Cow;

use codespar_protocol::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The last one usually has `usage` and no choices.
#[derive(Deserialize)]
pub(super) struct Chunk<'a> {
    pub(super) id: Option<Cow<'a, str>>,
    pub(super) model: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(super) choices: Vec<Choice>,
    pub(super) usage: Option<WireUsage>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
pub(super) struct Choice {
    #[serde(default)]
    pub(super) index: u32,
    /// `message` in an answer that comes whole.
    #[serde(alias = "message")]
    pub(super) delta: Option<Delta>,
    pub(super) finish_reason: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Delta {
    pub(super) content: Option<String>,
    /// Text that takes the place of `content` when the model declines.
    pub(super) refusal: Option<String>,
    pub(super) reasoning_content: Option<String>,
    /// The other name for the same; some servers send both.
    pub(super) reasoning: Option<String>,
    pub(super) tool_calls: Option<Vec<CallPiece>>,
}

/// Id and name come with the first piece of a call, arguments with all of them.
#[derive(Deserialize)]
pub(super) struct CallPiece {
    pub(super) index: Option<u32>,
    pub(super) id: Option<String>,
    pub(super) function: Option<FunctionPiece>,
}

#[derive(Deserialize, Default)]
pub(super) struct FunctionPiece {
    pub(super) name: Option<String>,
    pub(super) arguments: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct WireUsage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
}

#[derive(Deserialize, Default)]
struct PromptDetails {
    cached_tokens: Option<u64>,
    /// Newer models charge for what they put into the cache.
    cache_write_tokens: Option<u64>,
}

impl From<WireUsage> for Usage {
    /// Here the prompt includes what was read from the cache and written to it; we count the three
    /// apart.
    fn from(wire: WireUsage) -> Self {
        let details = wire.prompt_tokens_details.unwrap_or_default();
        let read = details.cached_tokens.unwrap_or(0);
        let written = details.cache_write_tokens.unwrap_or(0);
        let prompt = wire.prompt_tokens.unwrap_or(0);
        Self {
            input_tokens: prompt.saturating_sub(read).saturating_sub(written),
            output_tokens: wire.completion_tokens.unwrap_or(0),
            cache_creation_input_tokens: written,
            cache_read_input_tokens: read,
            ..Self::default()
        }
    }
}
