//! Tokens, as providers count them.

use std::ops::{AddAssign, Sub};

use serde::{Deserialize, Serialize};

/// Tokens of one call, or the sum of several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Input that was neither written to nor read from the cache.
    pub input_tokens: u64,
    /// Everything the model wrote.
    pub output_tokens: u64,
    /// Input written to the cache, both lifetimes together.
    pub cache_creation_input_tokens: u64,
    /// Input read from the cache.
    pub cache_read_input_tokens: u64,
    /// The part of `cache_creation_input_tokens` with the one-hour lifetime.
    pub cache_creation_1h_input_tokens: u64,
    /// Searches of the web that the provider made for the answer; each has a price of its own.
    #[serde(skip_serializing_if = "is_zero")]
    pub web_search_requests: u64,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "the form that serde calls"
)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Usage {
    /// What the model had before it when it began: the size of the context.
    pub fn context_tokens(&self) -> u64 {
        self.input_tokens + self.cache_creation_input_tokens + self.cache_read_input_tokens
    }

    /// Everything counted once.
    pub fn total_tokens(&self) -> u64 {
        self.context_tokens() + self.output_tokens
    }
}

impl Sub for Usage {
    type Output = Self;

    /// What was added since `earlier`.
    fn sub(self, earlier: Self) -> Self {
        let less = u64::saturating_sub;
        Self {
            input_tokens: less(self.input_tokens, earlier.input_tokens),
            output_tokens: less(self.output_tokens, earlier.output_tokens),
            cache_creation_input_tokens: less(
                self.cache_creation_input_tokens,
                earlier.cache_creation_input_tokens,
            ),
            cache_read_input_tokens: less(
                self.cache_read_input_tokens,
                earlier.cache_read_input_tokens,
            ),
            cache_creation_1h_input_tokens: less(
                self.cache_creation_1h_input_tokens,
                earlier.cache_creation_1h_input_tokens,
            ),
            web_search_requests: less(self.web_search_requests, earlier.web_search_requests),
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cache_creation_input_tokens += other.cache_creation_input_tokens;
        self.cache_read_input_tokens += other.cache_read_input_tokens;
        self.cache_creation_1h_input_tokens += other.cache_creation_1h_input_tokens;
        self.web_search_requests += other.web_search_requests;
    }
}
