//! A request as a Messages body. The history is written straight from where it lies: what came from
//! the provider goes back byte for byte.
//!
//! Cache marks (`cache_control`) tell the provider up to where a prefix can be kept. They go on the
//! system prompt, the last tool and the last blocks of the two latest user messages. Marks are
//! added while writing; the history itself is never changed, so that the next request has the same
//! prefix.

use std::sync::Arc;

use codespar_protocol::{ContentBlock, Message, RawObject, Role, ToolUse};
use serde::{
    Serialize, Serializer,
    ser::{Error as _, SerializeMap, SerializeSeq},
};
use serde_json::value::RawValue;

use crate::{Request, ThinkingChoice, ToolSpec, wire::sendable_input};

/// The provider takes no more marks than this in one request.
const MOST_MARKS: usize = 4;
/// This many of the latest user messages are marked, so that the cache is found again even when
/// one turn adds many blocks.
const MARKED_TURNS: usize = 2;

/// The body of a streaming call.
pub(crate) fn body(request: &Request) -> Result<Vec<u8>, serde_json::Error> {
    let marks = marks(request);
    serde_json::to_vec(&Body {
        model: &request.model,
        max_tokens: request.max_tokens,
        system: (!request.system.is_empty()).then_some([SystemBlock {
            kind: "text",
            text: &request.system,
            cache_control: EPHEMERAL,
        }]),
        tools: Tools {
            specs: &request.tools,
            web_searches: request.web_searches,
        },
        messages: Messages {
            messages: &request.messages,
            marks: &marks,
        },
        stop_sequences: &request.stop_sequences,
        temperature: request.temperature,
        output_config: request.effort.map(|effort| OutputConfig {
            effort: effort.as_str(),
        }),
        thinking: thinking(request),
        stream: true,
    })
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<[SystemBlock<'a>; 1]>,
    #[serde(skip_serializing_if = "Tools::is_empty")]
    tools: Tools<'a>,
    messages: Messages<'a>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop_sequences: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<ThinkingConfig>,
    stream: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum ThinkingConfig {
    Adaptive,
    Enabled { budget_tokens: u32 },
    Disabled,
}

/// The thoughts are part of the answer, so their budget has to be below the limit on it. Where that
/// leaves too little, nothing is sent and the model does as it does by itself.
fn thinking(request: &Request) -> Option<ThinkingConfig> {
    const LEAST: u32 = 1_024;
    match request.thinking? {
        ThinkingChoice::Adaptive => Some(ThinkingConfig::Adaptive),
        ThinkingChoice::Disabled => Some(ThinkingConfig::Disabled),
        ThinkingChoice::Enabled { budget_tokens } => {
            let budget_tokens = budget_tokens.min(request.max_tokens.saturating_sub(1));
            (budget_tokens >= LEAST).then_some(ThinkingConfig::Enabled { budget_tokens })
        }
    }
}

#[derive(Serialize)]
struct OutputConfig {
    effort: &'static str,
}

#[derive(Serialize)]
struct CacheControl {
    #[serde(rename = "type")]
    kind: &'static str,
}

const EPHEMERAL: CacheControl = CacheControl { kind: "ephemeral" };

#[derive(Serialize)]
struct SystemBlock<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    text: &'a str,
    cache_control: CacheControl,
}

/// Schemas are raw JSON, so the bytes are the same in every call and the cached prefix holds.
struct Tools<'a> {
    specs: &'a [ToolSpec],
    web_searches: u32,
}

impl Tools<'_> {
    fn is_empty(&self) -> bool {
        self.specs.is_empty() && self.web_searches == 0
    }
}

/// The search of the provider. It comes first, so that the cache mark stays on the last tool.
#[derive(Serialize)]
struct WebSearchTool {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'static str,
    max_uses: u32,
}

impl Serialize for Tools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Tool<'a> {
            name: &'a str,
            description: &'a str,
            input_schema: &'a RawValue,
            #[serde(skip_serializing_if = "Option::is_none")]
            cache_control: Option<CacheControl>,
        }
        let last = self.specs.len().saturating_sub(1);
        let mut seq = serializer.serialize_seq(None)?;
        if self.web_searches > 0 {
            seq.serialize_element(&WebSearchTool {
                kind: "web_search_20250305",
                name: "web_search",
                max_uses: self.web_searches,
            })?;
        }
        for (at, tool) in self.specs.iter().enumerate() {
            seq.serialize_element(&Tool {
                name: &tool.name,
                description: &tool.description,
                input_schema: &tool.input_schema,
                cache_control: (at == last).then_some(EPHEMERAL),
            })?;
        }
        seq.end()
    }
}

/// Written one by one from the shared history; nothing of it is copied.
struct Messages<'a> {
    messages: &'a [Arc<Message>],
    marks: &'a [Mark],
}

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(None)?;
        for (at, message) in self.messages.iter().enumerate() {
            // The provider refuses messages without content.
            if message.content.is_empty() {
                continue;
            }
            let mark = self.marks.iter().find(|mark| mark.message == at);
            seq.serialize_element(&WireMessage {
                message,
                marked_block: mark.map(|mark| mark.block),
            })?;
        }
        seq.end()
    }
}

struct WireMessage<'a> {
    message: &'a Message,
    marked_block: Option<usize>,
}

impl Serialize for WireMessage<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("role", &self.message.role)?;
        map.serialize_entry("content", &Content(self))?;
        map.end()
    }
}

/// Blank text is left out unless it is all there is.
struct Content<'a>(&'a WireMessage<'a>);

impl Serialize for Content<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Marked<'a> {
            #[serde(flatten)]
            block: WireBlock<'a>,
            cache_control: CacheControl,
        }
        let blocks = &self.0.message.content;
        let blank_alone = blocks.iter().all(is_blank);
        let mut seq = serializer.serialize_seq(None)?;
        for (at, block) in blocks.iter().enumerate() {
            if self.0.marked_block == Some(at) {
                seq.serialize_element(&Marked {
                    block: WireBlock(block),
                    cache_control: EPHEMERAL,
                })?;
            } else if blank_alone || !is_blank(block) {
                seq.serialize_element(&WireBlock(block))?;
            }
        }
        seq.end()
    }
}

/// Models write blank text beside other blocks now and then; the provider refuses it back.
fn is_blank(block: &ContentBlock) -> bool {
    block.as_text().is_some_and(|text| text.trim().is_empty())
}

/// A call whose input was cut off is the only block that is not written as it is stored.
struct WireBlock<'a>(&'a ContentBlock);

impl Serialize for WireBlock<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            ContentBlock::ToolUse(call) if !call.input.get().starts_with('{') => {
                let input = sendable_input(call).into_owned();
                let call = ToolUse {
                    input: RawValue::from_string(input).map_err(S::Error::custom)?,
                    ..call.clone()
                };
                ContentBlock::ToolUse(call).serialize(serializer)
            }
            block => block.serialize(serializer),
        }
    }
}

/// A block that the cache reaches up to.
#[derive(Debug, PartialEq, Eq)]
struct Mark {
    message: usize,
    block: usize,
}

/// Where to put marks: the last fitting block of the latest user messages, as many as the system
/// prompt, the tools and marks that are already there leave room for. Marks that came with the
/// history count against the limit. The latest message has priority when there is room for one
/// only.
fn marks(request: &Request) -> Vec<Mark> {
    let blocks = request.messages.iter().flat_map(|message| &message.content);
    let taken = usize::from(!request.system.is_empty())
        + usize::from(!request.tools.is_empty())
        + blocks.filter(|block| has_mark(block)).count();
    let room = MOST_MARKS.saturating_sub(taken);
    let latest = request.messages.iter().enumerate().rev();
    latest
        .filter(|(_, message)| message.role == Role::User && !message.content.is_empty())
        .take(MARKED_TURNS)
        .filter_map(|(at, message)| {
            let block = message.content.iter().rposition(can_be_marked)?;
            (!has_mark(&message.content[block])).then_some(Mark { message: at, block })
        })
        .take(room)
        .collect()
}

/// The provider refuses marks on reasoning blocks.
fn can_be_marked(block: &ContentBlock) -> bool {
    let reasoning = matches!(
        block,
        ContentBlock::Thinking(_) | ContentBlock::RedactedThinking(_)
    );
    !reasoning && !is_blank(block)
}

fn has_mark(block: &ContentBlock) -> bool {
    extra(block).get("cache_control").is_some()
}

/// Fields that came with a block and that this version does not know. They are sent back as they
/// came, so a mark among them counts.
fn extra(block: &ContentBlock) -> &RawObject {
    match block {
        ContentBlock::Text(block) => &block.extra,
        ContentBlock::ToolUse(block) => &block.extra,
        ContentBlock::ToolResult(block) => &block.extra,
        ContentBlock::Image(block) => &block.extra,
        ContentBlock::Thinking(block) => &block.extra,
        ContentBlock::RedactedThinking(block) => &block.extra,
        ContentBlock::Unknown(block) => block,
    }
}
