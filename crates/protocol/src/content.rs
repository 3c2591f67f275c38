//! Content blocks: typed where we act on them, raw where we do not, replayed exactly.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _, ser::SerializeMap};
use serde_json::value::RawValue;

use crate::{RawObject, ToolUseId};

/// One block of a message. Fields we do not know stay in `extra` and go back out as they came.
#[derive(Debug, Clone, PartialEq)]
pub enum ContentBlock {
    /// Plain text.
    Text(Text),
    /// The model asks for a tool.
    ToolUse(ToolUse),
    /// What the tool answered.
    ToolResult(ToolResult),
    Image(Image),
    /// Reasoning, signed by the provider; never modified.
    Thinking(Thinking),
    /// Reasoning the provider keeps to itself.
    RedactedThinking(RedactedThinking),
    /// A kind this version does not know.
    Unknown(RawObject),
}

/// Plain text.
#[derive(Debug, Clone, PartialEq)]
pub struct Text {
    pub text: String,
    /// Fields kept as they came (citations and the like).
    pub extra: RawObject,
}

#[derive(Debug, Clone)]
pub struct ToolUse {
    /// Names the call; its result carries the same id.
    pub id: ToolUseId,
    /// The tool's name.
    pub name: String,
    /// The input exactly as the model wrote it: key order and spacing kept. An input that was
    /// cut off in the stream is not JSON; it is kept as the JSON *string* of what arrived.
    pub input: Box<RawValue>,
    /// Fields kept as they came.
    pub extra: RawObject,
}

impl PartialEq for ToolUse {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
            && self.name == other.name
            && self.input.get() == other.input.get()
            && self.extra == other.extra
    }
}

/// The answer to a tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// The call this answers.
    pub tool_use_id: ToolUseId,
    /// What came out.
    pub content: ToolResultContent,
    /// The tool failed, was refused or was interrupted.
    pub is_error: bool,
    /// Fields kept as they came.
    pub extra: RawObject,
}

/// A tool result is text, or blocks when there are pictures in it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ToolResultContent {
    /// Text alone.
    Text(String),
    /// Text and images.
    Blocks(Vec<ContentBlock>),
}

impl ToolResultContent {
    /// The text in it, pictures left out.
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Blocks(blocks) => {
                let texts: Vec<&str> = blocks.iter().filter_map(ContentBlock::as_text).collect();
                texts.join("\n")
            }
        }
    }
}

// By hand: the derived form buffers, and buffering loses raw JSON.
impl<'de> Deserialize<'de> for ToolResultContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let parsed = if raw.get().starts_with('[') {
            serde_json::from_str(raw.get()).map(Self::Blocks)
        } else {
            serde_json::from_str(raw.get()).map(Self::Text)
        };
        parsed.map_err(D::Error::custom)
    }
}

/// A picture; `source` is kept as it came.
#[derive(Debug, Clone)]
pub struct Image {
    /// `{"type":"base64","media_type":…,"data":…}` or another form the provider knows.
    pub source: Box<RawValue>,
    /// Fields kept as they came.
    pub extra: RawObject,
}

impl Image {
    /// A picture from bytes already encoded in base64.
    pub fn base64(media_type: &str, data: &str) -> Result<Self, serde_json::Error> {
        let source = serde_json::value::to_raw_value(
            &serde_json::json!({"type": "base64", "media_type": media_type, "data": data}),
        )?;
        Ok(Self {
            source,
            extra: RawObject::default(),
        })
    }
}

impl PartialEq for Image {
    fn eq(&self, other: &Self) -> bool {
        self.source.get() == other.source.get() && self.extra == other.extra
    }
}

/// Signed reasoning.
#[derive(Debug, Clone, PartialEq)]
pub struct Thinking {
    /// The reasoning, possibly empty.
    pub thinking: String,
    /// Proof of origin; absent while a local server sends none.
    pub signature: Option<String>,
    /// Fields kept as they came.
    pub extra: RawObject,
}

/// Encrypted reasoning.
#[derive(Debug, Clone, PartialEq)]
pub struct RedactedThinking {
    /// Opaque.
    pub data: String,
    /// Fields kept as they came.
    pub extra: RawObject,
}

impl ContentBlock {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(Text {
            text: text.into(),
            extra: RawObject::default(),
        })
    }

    /// A tool result of plain text.
    pub fn tool_result(id: ToolUseId, text: impl Into<String>, is_error: bool) -> Self {
        Self::ToolResult(ToolResult {
            tool_use_id: id,
            content: ToolResultContent::Text(text.into()),
            is_error,
            extra: RawObject::default(),
        })
    }

    /// The text, if this is a text block.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(block) => Some(&block.text),
            _ => None,
        }
    }

    /// The call, if this is one.
    pub fn as_tool_use(&self) -> Option<&ToolUse> {
        match self {
            Self::ToolUse(call) => Some(call),
            _ => None,
        }
    }
}

impl Serialize for ContentBlock {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let extra = match self {
            Self::Text(block) => {
                map.serialize_entry("type", "text")?;
                map.serialize_entry("text", &block.text)?;
                &block.extra
            }
            Self::ToolUse(call) => {
                map.serialize_entry("type", "tool_use")?;
                map.serialize_entry("id", &call.id)?;
                map.serialize_entry("name", &call.name)?;
                map.serialize_entry("input", &call.input)?;
                &call.extra
            }
            Self::ToolResult(result) => {
                map.serialize_entry("type", "tool_result")?;
                map.serialize_entry("tool_use_id", &result.tool_use_id)?;
                map.serialize_entry("content", &result.content)?;
                if result.is_error {
                    map.serialize_entry("is_error", &true)?;
                }
                &result.extra
            }
            Self::Image(image) => {
                map.serialize_entry("type", "image")?;
                map.serialize_entry("source", &image.source)?;
                &image.extra
            }
            Self::Thinking(block) => {
                map.serialize_entry("type", "thinking")?;
                map.serialize_entry("thinking", &block.thinking)?;
                if let Some(signature) = &block.signature {
                    map.serialize_entry("signature", signature)?;
                }
                &block.extra
            }
            Self::RedactedThinking(block) => {
                map.serialize_entry("type", "redacted_thinking")?;
                map.serialize_entry("data", &block.data)?;
                &block.extra
            }
            Self::Unknown(object) => object,
        };
        for (key, value) in extra.iter() {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for ContentBlock {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = RawObject::deserialize(deserializer)?;
        Self::from_raw(object).map_err(D::Error::custom)
    }
}

impl ContentBlock {
    /// Reads a block; a kind we do not know is kept whole.
    pub fn from_raw(mut object: RawObject) -> Result<Self, serde_json::Error> {
        let kind: String = match object.get("type") {
            Some(kind) => serde_json::from_str(kind.get())?,
            None => return Err(serde_json::Error::custom("content block without `type`")),
        };
        let known = matches!(
            kind.as_str(),
            "text" | "tool_use" | "tool_result" | "image" | "thinking" | "redacted_thinking"
        );
        if !known {
            return Ok(Self::Unknown(object));
        }
        object.take::<String>("type")?;
        Ok(match kind.as_str() {
            "text" => Self::Text(Text {
                text: object.require("text")?,
                extra: object,
            }),
            "tool_use" => Self::ToolUse(ToolUse {
                id: object.require("id")?,
                name: object.require("name")?,
                input: object.require("input")?,
                extra: object,
            }),
            "tool_result" => Self::ToolResult(ToolResult {
                tool_use_id: object.require("tool_use_id")?,
                content: object
                    .take("content")?
                    .unwrap_or_else(|| ToolResultContent::Text(String::new())),
                is_error: object.take("is_error")?.unwrap_or(false),
                extra: object,
            }),
            "image" => Self::Image(Image {
                source: object.require("source")?,
                extra: object,
            }),
            "thinking" => Self::Thinking(Thinking {
                thinking: object.require("thinking")?,
                signature: object.take("signature")?,
                extra: object,
            }),
            _ => Self::RedactedThinking(RedactedThinking {
                data: object.require("data")?,
                extra: object,
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comes_back_as_it_went(json: &str) {
        let block: ContentBlock = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&block).unwrap(), json);
    }

    #[test]
    fn every_known_block_is_replayed_byte_for_byte() {
        comes_back_as_it_went(r#"{"type":"text","text":"a","citations":[{"b": 1,"a":2.50}]}"#);
        comes_back_as_it_went(
            r#"{"type":"tool_use","id":"t1","name":"Edit","input":{"z": 1, "a" :"é\u00e9"},"caller":{"type":"direct"}}"#,
        );
        comes_back_as_it_went(
            r#"{"type":"tool_result","tool_use_id":"t1","content":"no","is_error":true}"#,
        );
        comes_back_as_it_went(
            r#"{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"x"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}]}"#,
        );
        comes_back_as_it_went(r#"{"type":"thinking","thinking":"","signature":"c2ln/+="}"#);
        comes_back_as_it_went(r#"{"type":"redacted_thinking","data":"x"}"#);
    }

    #[test]
    fn an_unknown_block_is_kept_whole() {
        comes_back_as_it_went(
            r#"{"type":"server_tool_use","id":"s1","name":"web_search","input":{"q": [1,  2]}}"#,
        );
    }

    #[test]
    fn a_known_block_without_its_field_names_the_field() {
        let error = serde_json::from_str::<ContentBlock>(r#"{"type":"text"}"#).unwrap_err();
        assert!(
            error.to_string().contains("missing field `text`"),
            "{error}"
        );
    }
}
