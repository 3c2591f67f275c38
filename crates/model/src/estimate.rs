//! How many tokens a request can come to, before the provider counts them.
//!
//! The estimate must never be too low, or a call could exceed its budget. It is therefore an upper
//! bound by bytes, which is high for most text; the provider's own count replaces it for the part
//! of a conversation that has been counted once.

use std::sync::Arc;

use codespar_protocol::{ContentBlock, Message, ToolResultContent, Usage};

use crate::{Request, ToolSpec};

/// What the frame of a message, a block or a tool comes to.
const FRAME: u64 = 8;
/// What a provider adds to a request that offers tools.
const TOOL_PREAMBLE: u64 = 700;
/// A picture at the largest size that providers keep.
const IMAGE: u64 = 5_000;

/// More tokens than any common tokenizer makes of a text. Each token has at least one byte, and
/// small letters and spaces come at least in pairs.
pub fn tokens_at_most(text: &str) -> u64 {
    let paired = |byte: &u8| byte.is_ascii_lowercase() || *byte == b' ';
    let pairs = text.bytes().filter(paired).count() as u64;
    text.len() as u64 - pairs + pairs.div_ceil(2)
}

/// Measures the requests of one conversation. What was measured is not measured again: only the
/// last message of a conversation still grows.
#[derive(Debug, Default)]
pub struct Meter {
    system: Option<(Arc<str>, u64)>,
    tools: Option<(Arc<[ToolSpec]>, u64)>,
    messages: usize,
    message_tokens: u64,
    /// What the request measured last could come to, and what the provider made of it.
    last: u64,
    counted: Option<(u64, u64)>,
}

impl Meter {
    /// The most tokens that the request's input can come to. Where the provider has counted the
    /// request before, its count stands for that part.
    pub fn measure(&mut self, request: &Request) -> u64 {
        let fixed = self.system(&request.system) + self.tools(&request.tools);
        if request.messages.len() <= self.messages {
            self.messages = 0;
            self.message_tokens = 0;
            self.counted = None;
        }
        let grown = request.messages.get(self.messages..).unwrap_or_default();
        if let Some((last, settled)) = grown.split_last() {
            self.message_tokens += settled.iter().map(|m| message_tokens(m)).sum::<u64>();
            self.messages += settled.len();
            self.last = fixed + self.message_tokens + message_tokens(last);
        } else {
            self.last = fixed;
        }
        match self.counted {
            Some((estimated, counted)) if self.last >= estimated => {
                counted.saturating_add(self.last - estimated)
            }
            _ => self.last,
        }
    }

    /// Takes over the provider's count of the request that was measured last.
    pub fn correct(&mut self, usage: &Usage) {
        if usage.context_tokens() > 0 {
            self.counted = Some((self.last, usage.context_tokens()));
        }
    }

    /// Begins anew: the conversation was rewritten.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    fn system(&mut self, system: &Arc<str>) -> u64 {
        match &self.system {
            Some((known, tokens)) if Arc::ptr_eq(known, system) => *tokens,
            _ => {
                let tokens = tokens_at_most(system);
                self.system = Some((system.clone(), tokens));
                tokens
            }
        }
    }

    fn tools(&mut self, tools: &Arc<[ToolSpec]>) -> u64 {
        match &self.tools {
            Some((known, tokens)) if Arc::ptr_eq(known, tools) => *tokens,
            _ => {
                let each = tools.iter().map(|tool| {
                    let texts = [&tool.name, &tool.description, tool.input_schema.get()];
                    texts.map(tokens_at_most).iter().sum::<u64>() + FRAME
                });
                let preamble = if tools.is_empty() { 0 } else { TOOL_PREAMBLE };
                let tokens = preamble + each.sum::<u64>();
                self.tools = Some((tools.clone(), tokens));
                tokens
            }
        }
    }
}

/// The most tokens that one request's input can come to.
pub fn request_tokens(request: &Request) -> u64 {
    Meter::default().measure(request)
}

/// The most tokens that one message can come to.
pub(crate) fn message_tokens(message: &Message) -> u64 {
    FRAME + message.content.iter().map(block_tokens).sum::<u64>()
}

/// Pictures count at a fixed size, unknown blocks by the byte.
fn block_tokens(block: &ContentBlock) -> u64 {
    let tokens = match block {
        ContentBlock::Text(block) => tokens_at_most(&block.text),
        ContentBlock::ToolUse(call) => {
            tokens_at_most(&call.name) + tokens_at_most(call.input.get())
        }
        ContentBlock::ToolResult(result) => match &result.content {
            ToolResultContent::Text(text) => tokens_at_most(text),
            ToolResultContent::Blocks(blocks) => blocks.iter().map(block_tokens).sum(),
        },
        ContentBlock::Thinking(block) => {
            let signature = block.signature.as_deref().unwrap_or_default();
            tokens_at_most(&block.thinking) + tokens_at_most(signature)
        }
        ContentBlock::Image(_) => IMAGE,
        ContentBlock::RedactedThinking(block) => tokens_at_most(&block.data),
        ContentBlock::Unknown(object) => object.bytes() as u64,
    };
    tokens + FRAME
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(texts: &[&str]) -> Request {
        Request {
            web_searches: 0,
            model: "m".to_owned(),
            system: Arc::from("be brief"),
            messages: texts
                .iter()
                .map(|text| Arc::new(Message::user(*text)))
                .collect(),
            tools: Arc::from([]),
            max_tokens: 10,
            temperature: None,
            effort: None,
            thinking: None,
            stop_sequences: Vec::new(),
        }
    }

    fn counted(tokens: u64) -> Usage {
        Usage {
            input_tokens: tokens,
            ..Usage::default()
        }
    }

    #[test]
    fn text_that_tokenizers_cannot_shorten_counts_by_the_byte() {
        assert_eq!(tokens_at_most("0123456789"), 10);
        assert_eq!(tokens_at_most("{}[]();,"), 8);
        assert_eq!(tokens_at_most("語"), 3);
        assert_eq!(tokens_at_most("plain words"), 6);
        assert_eq!(tokens_at_most(""), 0);
    }

    #[test]
    fn the_providers_count_stands_for_what_it_has_counted() {
        let mut meter = Meter::default();
        let first = request(&["0".repeat(1_000).as_str()]);
        assert!(meter.measure(&first) > 1_000);
        meter.correct(&counted(300));
        let second = request(&["0".repeat(1_000).as_str(), "1234"]);
        assert_eq!(meter.measure(&second), 300 + 4 + 2 * FRAME);
        // The last message may still grow.
        let grown = request(&["0".repeat(1_000).as_str(), "12345678"]);
        assert_eq!(meter.measure(&grown), 300 + 8 + 2 * FRAME);
    }

    #[test]
    fn a_shorter_conversation_is_measured_anew() {
        let mut meter = Meter::default();
        meter.measure(&request(&["one", "two", "three"]));
        meter.correct(&counted(5));
        let short = request(&["0123456789"]);
        assert_eq!(meter.measure(&short), request_tokens(&short));
    }

    #[test]
    fn a_count_of_nothing_teaches_nothing() {
        let mut meter = Meter::default();
        let before = meter.measure(&request(&["some words"]));
        meter.correct(&Usage::default());
        assert!(meter.measure(&request(&["some words", "more"])) > before);
    }
}
