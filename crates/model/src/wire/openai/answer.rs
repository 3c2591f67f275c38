//! Streamed chunks into a whole answer. Without a finish reason it is not whole.
//!
//! Text, refusals and tool calls are collected from the first choice. The answer is complete at
//! `[DONE]` or at the end of the stream, provided that a finish reason came. Token counts usually
//! come in a last chunk without choices.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
};

use codespar_protocol::{ContentBlock, Message, StopReason, Usage};

use super::{
    PROVIDER,
    calls::Calls,
    chunk::{Chunk, Delta},
};
use crate::{
    ModelError, ModelEvent, Response,
    estimate::tokens_at_most,
    failure::ErrorBody,
    wire::{Accumulator, WHOLE_BODY, no_answer, repeated_id},
};

/// An answer as its chunks come in. Reasoning is passed on as it comes but is no part of the
/// message: this format has no place to send it back to.
#[derive(Default)]
pub(crate) struct OpenAiAnswer {
    id: Option<String>,
    model: String,
    text: String,
    calls: Calls,
    finish_reason: Option<String>,
    usage: Usage,
    /// Output by what came: the provider's count comes last.
    written: u64,
    /// The conversation it answers.
    earlier: Vec<Arc<Message>>,
}

impl OpenAiAnswer {
    /// For the answer of this model to these messages.
    pub(crate) fn new(asked: String, earlier: Vec<Arc<Message>>) -> Self {
        Self {
            model: asked,
            earlier,
            ..Self::default()
        }
    }

    /// The first id and the latest model name count.
    fn take(&mut self, chunk: Chunk<'_>, out: &mut VecDeque<ModelEvent>) {
        if self.id.is_none() {
            self.id = chunk.id.filter(|id| !id.is_empty()).map(Into::into);
        }
        if let Some(model) = chunk.model.filter(|model| !model.is_empty()) {
            self.model = model.into_owned();
        }
        if let Some(usage) = chunk.usage {
            self.usage = usage.into();
        }
        // We ask for one answer; a second is not ours.
        for choice in chunk.choices.into_iter().filter(|choice| choice.index == 0) {
            if let Some(delta) = choice.delta {
                self.add(delta, out);
            }
            if choice.finish_reason.is_some() {
                self.finish_reason = choice.finish_reason;
            }
        }
    }

    /// A refusal is text like any other. Reasoning counts as output, since providers charge for it.
    fn add(&mut self, delta: Delta, out: &mut VecDeque<ModelEvent>) {
        let reasoning = delta.reasoning_content.or(delta.reasoning);
        if let Some(text) = reasoning.filter(|text| !text.is_empty()) {
            self.written += tokens_at_most(&text);
            out.push_back(ModelEvent::ThinkingDelta(text));
        }
        for text in [delta.content, delta.refusal].into_iter().flatten() {
            if !text.is_empty() {
                self.written += tokens_at_most(&text);
                self.text.push_str(&text);
                out.push_back(ModelEvent::TextDelta(text));
            }
        }
        for piece in delta.tool_calls.into_iter().flatten() {
            if let Some(function) = &piece.function {
                let pieces = [&function.name, &function.arguments];
                let tokens = pieces
                    .into_iter()
                    .flatten()
                    .map(|text| tokens_at_most(text));
                self.written += tokens.sum::<u64>();
            }
            self.calls.add(piece);
        }
    }

    /// Finish reasons are mapped to the common stop reasons; one that is not known is kept by name.
    fn finish(&mut self) -> Result<Response, ModelError> {
        let reason = self.finish_reason.take().ok_or(ModelError::BrokenStream {
            provider: PROVIDER,
            message: "the stream ended without a finish reason".to_owned(),
        })?;
        let stop_reason = match reason.as_str() {
            // Some local servers say `stop` after a call as well.
            "stop" if !self.calls.is_empty() => StopReason::ToolUse,
            "stop" => StopReason::EndTurn,
            "length" => StopReason::MaxTokens,
            "tool_calls" | "function_call" => StopReason::ToolUse,
            "content_filter" => StopReason::Refusal,
            other => StopReason::Other(other.to_owned()),
        };
        let text = std::mem::take(&mut self.text);
        let mut content = Vec::new();
        if !text.is_empty() {
            content.push(ContentBlock::text(text));
        }
        let calls = std::mem::take(&mut self.calls);
        let known = self.earlier.iter().flat_map(|message| message.tool_uses());
        let known: HashSet<&str> = known.map(|call| call.id.0.as_str()).collect();
        content.extend(calls.finish(self.id.as_deref().unwrap_or("0"), &known));
        let message = Message::assistant(content);
        if let Some(id) = repeated_id(message.tool_uses(), std::iter::empty()) {
            return Err(ModelError::Malformed {
                provider: PROVIDER,
                message: format!("two calls have the id `{id}`"),
            });
        }
        Ok(Response {
            id: self.id.take(),
            model: std::mem::take(&mut self.model),
            message,
            stop_reason,
            usage: self.usage,
        })
    }
}

impl Accumulator for OpenAiAnswer {
    fn accept(
        &mut self,
        name: Option<&str>,
        data: &str,
        out: &mut VecDeque<ModelEvent>,
    ) -> Result<(), ModelError> {
        match data.trim() {
            "" => return Ok(()),
            "[DONE]" => {
                out.push_back(ModelEvent::Finished(self.finish()?));
                return Ok(());
            }
            _ => {}
        }
        let chunk: Chunk<'_> = serde_json::from_str(data).map_err(|error| {
            let event = name.unwrap_or("chunk");
            ModelError::Malformed {
                provider: PROVIDER,
                message: format!("{event}: {error}"),
            }
        })?;
        if chunk.error.is_some() {
            return Err(ErrorBody::read(data).into_stream_error(PROVIDER));
        }
        let is_whole = name == Some(WHOLE_BODY);
        if is_whole && chunk.choices.is_empty() {
            return Err(no_answer(PROVIDER, data));
        }
        self.take(chunk, out);
        if is_whole {
            out.push_back(ModelEvent::Finished(self.finish()?));
        }
        Ok(())
    }

    /// Before the provider's count comes, what was received is the least that was produced; after
    /// it, the larger of the two.
    fn counted(&self) -> Usage {
        Usage {
            output_tokens: self.usage.output_tokens.max(self.written),
            ..self.usage
        }
    }

    /// Some servers end the stream without `[DONE]`; the finish reason is what counts.
    fn end(&mut self) -> Result<ModelEvent, ModelError> {
        self.finish().map(ModelEvent::Finished)
    }
}
