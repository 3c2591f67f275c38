//! The chat completions format: request body and streamed chunks.

mod answer;
mod body;
mod calls;
mod chunk;
mod messages;

pub(crate) use answer::OpenAiAnswer;
pub(crate) use body::{LimitField, body};

/// What this provider is called in errors.
pub(crate) const PROVIDER: &str = "openai";

#[cfg(test)]
mod tests;
