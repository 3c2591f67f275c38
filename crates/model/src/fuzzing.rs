//! Entry points for fuzz targets.

use std::collections::VecDeque;

use crate::wire::{Accumulator, anthropic::AnthropicAnswer, openai::OpenAiAnswer};

/// Feeds events, as name and data, to the reader of Anthropic's format.
pub fn anthropic<'a>(events: impl Iterator<Item = (&'a str, &'a str)>) {
    feed(AnthropicAnswer::new("model".to_owned(), Vec::new()), events);
}

/// The same for OpenAI's.
pub fn openai<'a>(events: impl Iterator<Item = (&'a str, &'a str)>) {
    feed(OpenAiAnswer::new("model".to_owned(), Vec::new()), events);
}

fn feed<'a>(mut answer: impl Accumulator, events: impl Iterator<Item = (&'a str, &'a str)>) {
    let mut out = VecDeque::new();
    for (name, data) in events {
        let name = (!name.is_empty()).then_some(name);
        if answer.accept(name, data, &mut out).is_err() {
            return;
        }
        let _ = answer.counted();
    }
    let _ = answer.end();
}
