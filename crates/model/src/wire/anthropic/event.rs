//! The shapes of streamed events, read without copying what is only passed on.

use std::borrow::Cow;

use codespar_protocol::Usage;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Any event: all the fields that some kind has. One struct instead of an enum by kind, because
/// serde's tagged enums buffer their content and would lose raw JSON.
#[derive(Deserialize, Default)]
pub(super) struct Event<'a> {
    #[serde(rename = "type", default)]
    pub(super) kind: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(super) index: u32,
    #[serde(borrow, default)]
    pub(super) message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) content_block: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) delta: Option<&'a RawValue>,
    #[serde(default)]
    pub(super) usage: Option<WireUsage>,
}

/// All fields are optional; local servers leave some out.
#[derive(Deserialize)]
pub(super) struct MessageStart {
    pub(super) id: Option<String>,
    pub(super) model: Option<String>,
    pub(super) usage: Option<WireUsage>,
}

/// An answer that is no stream.
#[derive(Deserialize)]
pub(super) struct WholeMessage<'a> {
    pub(super) id: Option<String>,
    pub(super) model: Option<String>,
    #[serde(borrow)]
    pub(super) content: Vec<&'a RawValue>,
    pub(super) stop_reason: Option<String>,
    pub(super) usage: Option<WireUsage>,
}

#[derive(Deserialize)]
pub(super) struct MessageDelta {
    pub(super) stop_reason: Option<String>,
}

/// The `delta` of `content_block_delta`: all the fields that some kind has.
#[derive(Deserialize)]
pub(super) struct BlockDelta<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) text: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) thinking: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) signature: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) partial_json: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) citation: Option<&'a RawValue>,
}

/// Tokens so far. Counts are cumulative; what is absent has not changed.
#[derive(Deserialize, Clone, Copy)]
pub(super) struct WireUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation: Option<CacheCreation>,
    server_tool_use: Option<ServerToolUse>,
}

/// Uses of tools that the provider runs, beside the tokens.
#[derive(Deserialize, Clone, Copy)]
struct ServerToolUse {
    web_search_requests: Option<u64>,
}

/// The provider splits the writes to the cache by lifetime; the five-minute part follows from the
/// total.
#[derive(Deserialize, Clone, Copy)]
struct CacheCreation {
    ephemeral_1h_input_tokens: Option<u64>,
}

impl WireUsage {
    /// Takes over what is given here.
    pub(super) fn update(self, usage: &mut Usage) {
        let take = |to: &mut u64, given: Option<u64>| *to = given.unwrap_or(*to);
        take(&mut usage.input_tokens, self.input_tokens);
        take(&mut usage.output_tokens, self.output_tokens);
        take(
            &mut usage.cache_creation_input_tokens,
            self.cache_creation_input_tokens,
        );
        take(
            &mut usage.cache_read_input_tokens,
            self.cache_read_input_tokens,
        );
        take(
            &mut usage.cache_creation_1h_input_tokens,
            self.cache_creation
                .and_then(|creation| creation.ephemeral_1h_input_tokens),
        );
        take(
            &mut usage.web_search_requests,
            self.server_tool_use
                .and_then(|uses| uses.web_search_requests),
        );
    }
}
