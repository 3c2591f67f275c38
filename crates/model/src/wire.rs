//! Wire formats, apart from transport: a request into a body, events into an answer.
//!
//! Nothing here knows about HTTP, time or retries. A format is a function that writes the body and
//! an [`Accumulator`] that reads the events, which makes both testable with plain text.

use std::{borrow::Cow, collections::VecDeque};

use codespar_protocol::{ToolUse, ToolUseId, Usage};
use serde_json::value::RawValue;

use crate::{ModelError, ModelEvent, failure::excerpt};

pub(crate) mod anthropic;
pub(crate) mod openai;

/// The name of the one event that an answer becomes which came as a JSON body and not as a stream.
/// Some gateways and local servers do not stream, whatever they are asked for.
pub(crate) const WHOLE_BODY: &str = "body";

/// Makes an answer of the events of one stream.
///
/// One is made for each try and thrown away with it. After an error or `Finished` it is not used
/// again.
pub(crate) trait Accumulator: Send {
    /// Takes one event; what it amounts to goes to `out`, a whole answer as `Finished`.
    fn accept(
        &mut self,
        name: Option<&str>,
        data: &str,
        out: &mut VecDeque<ModelEvent>,
    ) -> Result<(), ModelError>;

    /// Tokens so far: as the provider counted them, and at least what the pieces come to. It
    /// changes with every event that carries content.
    fn counted(&self) -> Usage;

    /// The stream ended. That is an error unless the answer was whole by then.
    fn end(&mut self) -> Result<ModelEvent, ModelError>;
}

/// A JSON body that is neither an answer nor an error. It is worth another try, like a stream that
/// broke off: gateways answer so while what is behind them starts.
pub(crate) fn no_answer(provider: &'static str, body: &str) -> ModelError {
    ModelError::BrokenStream {
        provider,
        message: format!("JSON that is no answer: {}", excerpt(body)),
    }
}

/// A call whose id another call has: results could not be told apart, and providers refuse such
/// a conversation for ever.
pub(crate) fn repeated_id<'a>(
    calls: impl Iterator<Item = &'a ToolUse>,
    earlier: impl Iterator<Item = &'a ToolUse>,
) -> Option<&'a ToolUseId> {
    let calls: Vec<&ToolUseId> = calls.map(|call| &call.id).collect();
    let within = calls
        .iter()
        .enumerate()
        .find(|(at, id)| calls[..*at].contains(id));
    if let Some((_, id)) = within {
        return Some(id);
    }
    if calls.is_empty() {
        return None;
    }
    earlier.map(|call| &call.id).find(|id| calls.contains(id))
}

/// The input of a call as the model wrote it: empty becomes `{}`; what is not JSON (the answer
/// was cut off) is kept as the JSON string of what arrived.
pub(crate) fn raw_input(text: &str) -> Box<RawValue> {
    if text.trim().is_empty() {
        return empty_object();
    }
    match serde_json::from_str::<&RawValue>(text) {
        Ok(raw) => raw.to_owned(),
        Err(_) => serde_json::value::to_raw_value(text).unwrap_or_default(),
    }
}

pub(crate) fn empty_object() -> Box<RawValue> {
    RawValue::from_string("{}".to_owned()).unwrap_or_default()
}

/// The input of a call as providers accept it back: they insist on an object, so what is none (a
/// call that was cut off) goes inside one. Objects go out byte for byte.
pub(crate) fn sendable_input(call: &ToolUse) -> Cow<'_, str> {
    let text = call.input.get();
    if text.starts_with('{') {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("{{\"cut_off_input\":{text}}}"))
    }
}
