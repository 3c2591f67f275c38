//! What the script needs to know of a request, whichever wire format it came in.
//!
//! Both formats are read into this, and everything after it (choosing a conversation, a turn, a
//! fault, filling in templates) is the same for both.

use serde::{Deserialize, Deserializer, de};
use serde_json::value::RawValue;
use std::{borrow::Cow, fmt, marker::PhantomData};

/// The request, reduced to what decides the answer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Asked {
    pub(crate) model: String,
    pub(crate) system: String,
    /// Text of the first user message.
    pub(crate) first_user: String,
    /// The number of assistant messages: the index of the turn to play.
    pub(crate) turn: usize,
    /// Text of the newest one; empty if there is none. For templates.
    pub(crate) last_tool_result: String,
    pub(crate) last_user_text: String,
    pub(crate) delivery: Delivery,
    /// An OpenAI stream reports its tokens only when asked to.
    pub(crate) stream_usage: bool,
    /// Size of the body, from which input tokens are computed.
    pub(crate) bytes: usize,
}

/// How the answer is to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Delivery {
    Streamed,
    #[default]
    Whole,
}

impl Delivery {
    pub(crate) fn of(stream: Option<bool>) -> Self {
        match stream {
            Some(true) => Self::Streamed,
            _ => Self::Whole,
        }
    }
}

/// A request that is turned down. Not a fault: the client, or the test, made a mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) status: u16,
    pub(crate) message: String,
}

impl Refused {
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self {
            status: 400,
            message: message.into(),
        }
    }

    pub(crate) fn unauthenticated(message: impl Into<String>) -> Self {
        Self {
            status: 401,
            message: message.into(),
        }
    }
}

/// Message content: a text or a list. Lists are read in one pass and texts stay undecoded,
/// because histories are long and all of them come with every request.
#[derive(Debug)]
pub(crate) enum Content<'a, B> {
    Text(Cow<'a, str>),
    Blocks(Vec<B>),
}

impl<'de: 'a, 'a, B: Deserialize<'de>> Deserialize<'de> for Content<'a, B> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor(PhantomData))
    }
}

struct ContentVisitor<'a, B>(PhantomData<(&'a (), B)>);

impl<'de: 'a, 'a, B: Deserialize<'de>> de::Visitor<'de> for ContentVisitor<'a, B> {
    type Value = Content<'a, B>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a list of content blocks")
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Content::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Content::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut blocks = Vec::with_capacity(list.size_hint().unwrap_or(1));
        while let Some(block) = list.next_element()? {
            blocks.push(block);
        }
        Ok(Content::Blocks(blocks))
    }
}

/// The text of a raw JSON string; empty if it is none.
pub(crate) fn decode(raw: &RawValue) -> String {
    serde_json::from_str(raw.get()).unwrap_or_default()
}

/// Whether a raw JSON string holds nothing but white space.
pub(crate) fn is_blank(raw: &RawValue) -> bool {
    // Long texts of white space alone do not occur, and decoding them all would cost.
    raw.get().len() < 256 && decode(raw).trim().is_empty()
}

/// A short digest that is the same on every run (FNV-1a), which the hashes of the standard library
/// do not promise: it goes into ids that tests compare.
pub(crate) fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The id of a tool call whose script gives none: the same on every run, and different for
/// conversations that begin differently. `turn` and `index` (of the call in the turn) count from 1.
/// A test computes the id that its script will use, to compare it with the results it captured.
pub fn tool_use_id(first_user_text: &str, turn: usize, index: usize) -> String {
    let digest = digest(first_user_text);
    format!(
        "toolu_{turn}_{index}_{:08x}",
        (digest >> 32) ^ (digest & 0xffff_ffff)
    )
}
