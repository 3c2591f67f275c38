//! Streamed events into a whole answer. Nothing but `message_stop` makes it whole.
//!
//! ```text
//! message_start
//!   content_block_start 0, content_block_delta 0 …, content_block_stop 0
//!   content_block_start 1, …
//! message_delta      stop reason, final token counts
//! message_stop       the answer is whole
//! ```
//!
//! Blocks are addressed by index and kept in that order. Events of unknown kinds are skipped, as
//! the provider may add more. A block that starts twice or a piece for a block that never started
//! makes the answer malformed: a guess could run a tool with the wrong input.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use codespar_protocol::{Message, StopReason, Usage};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    PROVIDER,
    block::Building,
    event::{BlockDelta, Event, MessageDelta, MessageStart, WholeMessage},
};
use crate::{
    ModelError, ModelEvent, Response,
    estimate::tokens_at_most,
    failure::ErrorBody,
    wire::{Accumulator, WHOLE_BODY, no_answer, repeated_id},
};

/// An answer as its events come in.
#[derive(Default)]
pub(crate) struct AnthropicAnswer {
    /// The model that was asked, in case the server does not say which one answers.
    asked: String,
    started: Option<MessageStart>,
    blocks: BTreeMap<u32, Building>,
    stop_reason: Option<StopReason>,
    usage: Usage,
    /// Output by what came, for when the provider's count does not.
    written: u64,
    /// The conversation it answers.
    earlier: Vec<Arc<Message>>,
}

impl AnthropicAnswer {
    /// For the answer of this model to these messages.
    pub(crate) fn new(asked: String, earlier: Vec<Arc<Message>>) -> Self {
        Self {
            asked,
            earlier,
            ..Self::default()
        }
    }

    fn start(&mut self, event: &Event<'_>) -> Result<(), ModelError> {
        let mut start: MessageStart = part("message_start", "message", event.message)?;
        if let Some(usage) = start.usage.take() {
            usage.update(&mut self.usage);
        }
        self.started = Some(start);
        Ok(())
    }

    /// An answer that came whole has the fields of `message_start` beside its blocks and its end.
    fn take_whole(&mut self, data: &str, out: &mut VecDeque<ModelEvent>) -> Result<(), ModelError> {
        let whole: WholeMessage<'_> =
            serde_json::from_str(data).map_err(|error| malformed("message", error))?;
        if let Some(usage) = whole.usage {
            usage.update(&mut self.usage);
        }
        self.stop_reason = whole.stop_reason.as_deref().map(StopReason::from);
        self.started = Some(MessageStart {
            id: whole.id,
            model: whole.model,
            usage: None,
        });
        for (index, raw) in (0..).zip(whole.content) {
            let opened = Event {
                index,
                content_block: Some(raw),
                ..Event::default()
            };
            out.extend(self.open(&opened)?);
        }
        out.push_back(ModelEvent::Finished(self.finish()?));
        Ok(())
    }

    /// The raw text of the block counts as output, so that a block that comes whole is counted too.
    fn open(&mut self, event: &Event<'_>) -> Result<Option<ModelEvent>, ModelError> {
        const NAME: &str = "content_block_start";
        let raw = event
            .content_block
            .ok_or_else(|| malformed(NAME, "missing field `content_block`"))?;
        let building = Building::start(raw).map_err(|error| malformed(NAME, error))?;
        let opening = building.opening();
        self.written += tokens_at_most(raw.get());
        if self.blocks.insert(event.index, building).is_some() {
            let message = format!("block {} starts twice", event.index);
            return Err(malformed(NAME, message));
        }
        Ok(opening)
    }

    fn add(&mut self, event: &Event<'_>) -> Result<Option<ModelEvent>, ModelError> {
        const NAME: &str = "content_block_delta";
        let delta: BlockDelta<'_> = part(NAME, "delta", event.delta)?;
        let at = event.index;
        let block = self
            .blocks
            .get_mut(&at)
            .ok_or_else(|| malformed(NAME, format!("block {at} never started")))?;
        for piece in [&delta.text, &delta.thinking, &delta.partial_json] {
            self.written += tokens_at_most(piece);
        }
        block
            .add(&delta)
            .map_err(|kind| malformed(NAME, format!("`{kind}` for block {at} of another kind")))
    }

    /// Counts replace earlier ones; they are cumulative.
    fn change(&mut self, event: &Event<'_>) -> Result<(), ModelError> {
        if let Some(usage) = event.usage {
            usage.update(&mut self.usage);
        }
        if event.delta.is_some() {
            let delta: MessageDelta = part("message_delta", "delta", event.delta)?;
            if let Some(word) = delta.stop_reason {
                self.stop_reason = Some(StopReason::from(word.as_str()));
            }
        }
        Ok(())
    }

    /// Refuses an answer whose call ids are not unique in the conversation: it could never be sent
    /// back.
    fn finish(&mut self) -> Result<Response, ModelError> {
        const NAME: &str = "message_stop";
        let start = self
            .started
            .take()
            .ok_or_else(|| malformed(NAME, "the message never started"))?;
        let blocks = std::mem::take(&mut self.blocks);
        let content = blocks
            .into_values()
            .map(Building::finish)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| malformed(NAME, error))?;
        let message = Message::assistant(content);
        let earlier = self.earlier.iter().flat_map(|message| message.tool_uses());
        if let Some(id) = repeated_id(message.tool_uses(), earlier) {
            return Err(malformed(
                NAME,
                format!("the call id `{id}` was used before"),
            ));
        }
        // Some local servers end a message without saying why.
        let stop_reason = self.stop_reason.take().unwrap_or_else(|| {
            if message.tool_uses().next().is_some() {
                StopReason::ToolUse
            } else {
                StopReason::EndTurn
            }
        });
        Ok(Response {
            id: start.id,
            model: start.model.unwrap_or_else(|| self.asked.clone()),
            message,
            stop_reason,
            usage: self.usage,
        })
    }
}

impl Accumulator for AnthropicAnswer {
    fn accept(
        &mut self,
        name: Option<&str>,
        data: &str,
        out: &mut VecDeque<ModelEvent>,
    ) -> Result<(), ModelError> {
        if data.is_empty() {
            return Ok(());
        }
        let event: Event<'_> = serde_json::from_str(data)
            .map_err(|error| malformed(name.unwrap_or("event"), error))?;
        match event.kind.as_deref().or(name).unwrap_or_default() {
            "message_start" => self.start(&event)?,
            "content_block_start" => out.extend(self.open(&event)?),
            "content_block_delta" => out.extend(self.add(&event)?),
            "message_delta" => self.change(&event)?,
            "message_stop" => out.push_back(ModelEvent::Finished(self.finish()?)),
            "error" => return Err(ErrorBody::read(data).into_stream_error(PROVIDER)),
            "message" if name == Some(WHOLE_BODY) => self.take_whole(data, out)?,
            _ if name == Some(WHOLE_BODY) => return Err(no_answer(PROVIDER, data)),
            // `ping`, `content_block_stop` (blocks are closed together, at the end) and whatever
            // else the provider may add.
            _ => {}
        }
        Ok(())
    }

    fn counted(&self) -> Usage {
        Usage {
            output_tokens: self.usage.output_tokens.max(self.written),
            ..self.usage
        }
    }

    fn end(&mut self) -> Result<ModelEvent, ModelError> {
        Err(ModelError::BrokenStream {
            provider: PROVIDER,
            message: "the stream ended before the message did".to_owned(),
        })
    }
}

/// Reads a part of an event that must be there. Borrows from the event where the type allows it.
fn part<'a, T: Deserialize<'a>>(
    event: &str,
    field: &str,
    raw: Option<&'a RawValue>,
) -> Result<T, ModelError> {
    let raw = raw.ok_or_else(|| malformed(event, format!("missing field `{field}`")))?;
    serde_json::from_str(raw.get()).map_err(|error| malformed(event, error))
}

fn malformed(event: &str, what: impl std::fmt::Display) -> ModelError {
    ModelError::Malformed {
        provider: PROVIDER,
        message: format!("{event}: {what}"),
    }
}
