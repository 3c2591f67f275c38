//! Reads Anthropic Messages requests, no more of them than is needed.
//!
//! Every request carries the whole conversation, and tests make thousands of them. So fields that
//! decide nothing are skipped, texts stay slices of the body until they are needed, and an unknown
//! field is no error here: `anthropic_rules` decides what is.

use std::borrow::Cow;

use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;

use crate::asked::{Asked, Content, Delivery, Refused, decode};

/// Fields that the API requires are optional here, so that the rules can say which one is missing.
#[derive(Deserialize)]
pub(crate) struct MessagesRequest<'a> {
    #[serde(borrow)]
    pub(crate) model: Option<&'a RawValue>,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) stream: Option<bool>,
    #[serde(borrow)]
    pub(crate) system: Option<Content<'a, Block<'a>>>,
    #[serde(borrow, default)]
    pub(crate) messages: Vec<Message<'a>>,
    #[serde(borrow, default)]
    pub(crate) tools: Vec<Tool<'a>>,
}

#[derive(Deserialize)]
pub(crate) struct Message<'a> {
    #[serde(borrow)]
    pub(crate) role: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) content: Content<'a, Block<'a>>,
}

/// One type for all kinds of blocks; which fields are set depends on `kind`.
#[derive(Deserialize)]
pub(crate) struct Block<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) text: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) input: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) tool_use_id: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) content: Option<&'a RawValue>,
    pub(crate) cache_control: Option<IgnoredAny>,
}

/// `kind` is set for tools of the provider, which have no schema.
#[derive(Deserialize)]
pub(crate) struct Tool<'a> {
    #[serde(borrow)]
    pub(crate) name: Option<&'a RawValue>,
    #[serde(rename = "type")]
    pub(crate) kind: Option<IgnoredAny>,
    pub(crate) input_schema: Option<IgnoredAny>,
    pub(crate) cache_control: Option<IgnoredAny>,
}

impl Block<'_> {
    /// Blocks inside a tool result.
    pub(crate) fn nested(&self) -> Vec<Block<'_>> {
        match self.content {
            Some(raw) if raw.get().starts_with('[') => {
                serde_json::from_str(raw.get()).unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }

    /// The texts of a list are joined by line breaks; pictures are left out.
    fn tool_result_text(&self) -> String {
        match self.content {
            Some(raw) if raw.get().starts_with('"') => decode(raw),
            _ => texts(&self.nested()),
        }
    }
}

impl<'a> MessagesRequest<'a> {
    pub(crate) fn read(body: &'a [u8]) -> Result<Self, Refused> {
        serde_json::from_slice(body).map_err(|error| {
            Refused::invalid(format!("The request body could not be read: {error}"))
        })
    }

    /// What the script is matched against. The last user text is that of the latest user message
    /// that has any: one that holds only results is passed over.
    pub(crate) fn asked(&self, bytes: usize) -> Asked {
        let of = |role: &'static str| move |message: &&Message| message.role == role;
        let user = || self.messages.iter().filter(of("user"));
        let last_user_text = user()
            .rev()
            .map(|message| text_of(&message.content))
            .find(|text| !text.is_empty());
        let last_tool_result = user().rev().find_map(|message| match &message.content {
            Content::Blocks(blocks) => blocks.iter().rfind(|block| block.kind == "tool_result"),
            Content::Text(_) => None,
        });
        Asked {
            model: self.model.map_or_else(String::new, decode),
            system: self.system.as_ref().map_or_else(String::new, text_of),
            first_user: user()
                .next()
                .map_or_else(String::new, |m| text_of(&m.content)),
            turn: self.messages.iter().filter(of("assistant")).count(),
            last_tool_result: last_tool_result.map_or_else(String::new, Block::tool_result_text),
            last_user_text: last_user_text.unwrap_or_default(),
            delivery: Delivery::of(self.stream),
            stream_usage: true,
            bytes,
        }
    }
}

fn text_of(content: &Content<'_, Block<'_>>) -> String {
    match content {
        Content::Text(text) => text.to_string(),
        Content::Blocks(blocks) => texts(blocks),
    }
}

fn texts(blocks: &[Block<'_>]) -> String {
    let texts = blocks.iter().filter(|block| block.kind == "text");
    let texts: Vec<String> = texts.filter_map(|block| block.text).map(decode).collect();
    texts.join("\n")
}
