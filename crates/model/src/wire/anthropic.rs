//! The Anthropic Messages format: request body and streamed events.

mod answer;
mod block;
mod body;
mod event;

pub(crate) use answer::AnthropicAnswer;
pub(crate) use body::body;

/// What this provider is called in errors.
pub(crate) const PROVIDER: &str = "anthropic";

#[cfg(test)]
mod tests;
