//! One content block as its pieces come in.
//!
//! Text grows in place. The input of a tool is collected as text and parsed once at the end, byte
//! for byte as it was sent. Blocks of unknown kinds keep all their fields.

use codespar_protocol::{ContentBlock, RawObject};
use serde_json::value::RawValue;

use super::event::BlockDelta;
use crate::{
    ModelEvent,
    wire::{empty_object, raw_input},
};

/// A block under construction.
pub(super) struct Building {
    block: ContentBlock,
    /// Pieces of a tool's input, parsed once when the block is whole.
    input: String,
    citations: Vec<Box<RawValue>>,
}

impl Building {
    /// The block of `content_block_start`. Local servers leave out fields that are empty.
    pub(super) fn start(raw: &RawValue) -> Result<Self, serde_json::Error> {
        let mut object: RawObject = serde_json::from_str(raw.get())?;
        let kind: Option<String> = match object.get("type") {
            Some(kind) => serde_json::from_str(kind.get())?,
            None => None,
        };
        match kind.as_deref() {
            Some(field @ ("text" | "thinking")) if object.get(field).is_none() => {
                object.push(field, &"")?;
            }
            Some("tool_use") if object.get("input").is_none() => {
                object.push("input", &empty_object())?;
            }
            _ => {}
        }
        Ok(Self {
            block: ContentBlock::from_raw(object)?,
            input: String::new(),
            citations: Vec::new(),
        })
    }

    /// What the block held from the start, for those who show text as it comes. `None` for blocks
    /// that start empty, as the provider's own do.
    pub(super) fn opening(&self) -> Option<ModelEvent> {
        match &self.block {
            ContentBlock::Text(block) if !block.text.is_empty() => {
                Some(ModelEvent::TextDelta(block.text.clone()))
            }
            ContentBlock::Thinking(block) if !block.thinking.is_empty() => {
                Some(ModelEvent::ThinkingDelta(block.thinking.clone()))
            }
            _ => None,
        }
    }

    /// Adds a piece; `Err` says which kind of piece this block cannot take. Kinds of pieces that
    /// we do not know are passed over.
    pub(super) fn add(&mut self, delta: &BlockDelta<'_>) -> Result<Option<ModelEvent>, String> {
        match (&mut self.block, &*delta.kind) {
            (ContentBlock::Text(block), "text_delta") => {
                block.text.push_str(&delta.text);
                return Ok(non_empty(&delta.text).map(ModelEvent::TextDelta));
            }
            (ContentBlock::Thinking(block), "thinking_delta") => {
                block.thinking.push_str(&delta.thinking);
                return Ok(non_empty(&delta.thinking).map(ModelEvent::ThinkingDelta));
            }
            (ContentBlock::Thinking(block), "signature_delta") => {
                let signature = block.signature.get_or_insert_default();
                signature.push_str(&delta.signature);
            }
            (ContentBlock::Text(_), "citations_delta") => {
                self.citations.extend(delta.citation.map(ToOwned::to_owned));
            }
            (ContentBlock::ToolUse(_) | ContentBlock::Unknown(_), "input_json_delta") => {
                self.input.push_str(&delta.partial_json);
            }
            // A kind of block that we do not know may take pieces that we do know.
            (ContentBlock::Unknown(_), _) => {}
            (
                _,
                kind @ ("text_delta" | "thinking_delta" | "signature_delta" | "input_json_delta"),
            ) => return Err(kind.to_owned()),
            _ => {}
        }
        Ok(None)
    }

    /// The whole block.
    pub(super) fn finish(self) -> Result<ContentBlock, serde_json::Error> {
        let mut block = self.block;
        match &mut block {
            // Without pieces the input of the start stands, unless it is none.
            ContentBlock::ToolUse(call)
                if !self.input.trim().is_empty() || matches!(call.input.get(), "\"\"" | "null") =>
            {
                call.input = raw_input(&self.input);
            }
            ContentBlock::Unknown(object) if !self.input.is_empty() => {
                object.take::<Box<RawValue>>("input")?;
                object.push("input", &raw_input(&self.input))?;
            }
            ContentBlock::Text(text) if !self.citations.is_empty() => {
                let earlier: Option<Option<Vec<Box<RawValue>>>> = text.extra.take("citations")?;
                let mut citations = earlier.flatten().unwrap_or_default();
                citations.extend(self.citations);
                text.extra.push("citations", &citations)?;
            }
            _ => {}
        }
        Ok(block)
    }
}

fn non_empty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}
