//! Events of an agent as updates for the client.
//!
//! ```text
//! TextDelta, ThinkingDelta          chunks of a message or a thought
//! Assistant                         its text, if it was not streamed
//! ToolStarted, CommandOutput,       a tool call and what becomes of it
//! ToolFinished, PermissionDenied
//! Todos                             a plan
//! notices, retries, ends of tasks   thoughts: they are not part of the answer
//! Subagent                          its tool calls
//! ```

use std::collections::HashMap;

use agent_client_protocol::v1::schema::{
    ContentBlock, ContentChunk, Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus, SessionUpdate,
    TextContent, ToolCall, ToolCallContent, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
};
use codespar_protocol::{
    Event, PermissionRequest, Todo, TodoStatus, ToolResultContent, ToolUseId, retry_text,
};
use serde_json::Value;

use super::tool_calls::{Workplace, kind, output, text, title};
use crate::printer;

/// What the client knows of the session.
#[derive(Default)]
pub(super) struct Shown {
    /// Calls under way, with the diff of an edit.
    calls: HashMap<ToolUseId, Option<ToolCallContent>>,
    /// Whether text of the current answer was streamed.
    has_streamed: bool,
}

fn chunk(text: &str) -> ContentChunk {
    ContentChunk::new(ContentBlock::Text(TextContent::new(text)))
}

/// A piece of an answer, without secrets and control sequences.
pub(super) fn message(text: &str) -> SessionUpdate {
    SessionUpdate::AgentMessageChunk(chunk(&printer::visible(text)))
}

pub(super) fn thought(text: &str) -> SessionUpdate {
    SessionUpdate::AgentThoughtChunk(chunk(&printer::visible(text)))
}

impl Shown {
    /// The updates of an event, in their order.
    pub(super) fn event(&mut self, event: &Event, place: &Workplace<'_>) -> Vec<SessionUpdate> {
        match event {
            Event::TurnStarted { .. } => {
                self.has_streamed = false;
                Vec::new()
            }
            Event::TextDelta { text } => {
                self.has_streamed = true;
                vec![message(text)]
            }
            Event::ThinkingDelta { text } => vec![thought(text)],
            Event::Assistant { message: said, .. } => {
                let text = said.text();
                match self.has_streamed || text.trim().is_empty() {
                    true => Vec::new(),
                    false => vec![message(&text)],
                }
            }
            Event::Todos { todos } => vec![plan(todos)],
            Event::Retrying {
                attempt,
                delay_ms,
                reason,
            } => {
                self.has_streamed = false;
                vec![line(&retry_text(*attempt, *delay_ms, reason))]
            }
            Event::Notice { text, .. } => vec![line(text)],
            Event::Compacted { .. } => vec![line("older turns were replaced by a summary")],
            Event::TaskEnded { summary, .. } => vec![line(summary)],
            Event::Step { text, .. } => vec![line(text)],
            Event::Subagent { event, .. } => match &**event {
                Event::ToolStarted { .. }
                | Event::ToolFinished { .. }
                | Event::CommandOutput { .. }
                | Event::PermissionDenied(_) => self.tool_event(event, place),
                _ => Vec::new(),
            },
            event => self.tool_event(event, place),
        }
    }

    fn tool_event(&mut self, event: &Event, place: &Workplace<'_>) -> Vec<SessionUpdate> {
        match event {
            Event::ToolStarted {
                tool_use_id,
                tool,
                summary,
                input,
            } => vec![self.started(tool_use_id, tool, summary, input, place)],
            Event::CommandOutput { tool_use_id, lines } => {
                let fields = ToolCallUpdateFields::new().content(vec![output(&lines.join("\n"))]);
                vec![update(tool_use_id, fields)]
            }
            Event::ToolFinished {
                tool_use_id,
                is_error,
                result,
                ..
            } => vec![self.finished(tool_use_id, *is_error, result)],
            Event::PermissionDenied(denied) => {
                let id = &denied.tool_use_id;
                let mut updates = Vec::new();
                if self.calls.remove(id).is_none() {
                    let call = new_call(id, &denied.tool_name, "", &denied.tool_input, place);
                    updates.push(SessionUpdate::ToolCall(call));
                }
                let reason = text(printer::visible(&denied.reason));
                let fields = ToolCallUpdateFields::new()
                    .status(ToolCallStatus::Failed)
                    .content(vec![reason]);
                updates.push(update(id, fields));
                updates
            }
            _ => Vec::new(),
        }
    }

    /// A call that the user is asked about is shown before the question.
    pub(super) fn asked(
        &mut self,
        asked: &PermissionRequest,
        place: &Workplace<'_>,
    ) -> (Option<SessionUpdate>, ToolCallUpdate) {
        let id = &asked.tool_use_id;
        let call = new_call(id, &asked.tool, &asked.summary, &asked.input, place);
        let mut content = vec![text(printer::visible(&asked.reason))];
        match place.diff(&asked.tool, &asked.input) {
            Some(diff) => content.push(diff),
            None => content.extend(asked.preview.as_deref().map(output)),
        }
        let fields = ToolCallUpdateFields::new()
            .title(call.title.clone())
            .kind(call.kind)
            .status(ToolCallStatus::Pending)
            .locations(call.locations.clone())
            .raw_input(asked.input.clone())
            .content(content);
        let is_new = !self.calls.contains_key(id);
        let diff = place.diff(&asked.tool, &asked.input);
        self.calls.entry(id.clone()).or_insert(diff);
        let shown = is_new.then(|| SessionUpdate::ToolCall(call));
        (shown, ToolCallUpdate::new(id.0.clone(), fields))
    }

    fn started(
        &mut self,
        id: &ToolUseId,
        tool: &str,
        summary: &str,
        input: &Value,
        place: &Workplace<'_>,
    ) -> SessionUpdate {
        let diff = place.diff(tool, input);
        let content: Vec<ToolCallContent> = diff.clone().into_iter().collect();
        if self.calls.insert(id.clone(), diff).is_some() {
            let fields = ToolCallUpdateFields::new()
                .status(ToolCallStatus::InProgress)
                .title(title(tool, summary))
                .content(content);
            return update(id, fields);
        }
        let call = new_call(id, tool, summary, input, place)
            .status(ToolCallStatus::InProgress)
            .content(content);
        SessionUpdate::ToolCall(call)
    }

    /// The diff of an edit stays; what other tools say takes the place of what was shown before.
    fn finished(
        &mut self,
        id: &ToolUseId,
        is_error: bool,
        result: &ToolResultContent,
    ) -> SessionUpdate {
        let diff = self.calls.remove(id).flatten();
        update(id, end_of_call(is_error, result, diff))
    }
}

/// How a call ended.
pub(super) fn end_of_call(
    is_error: bool,
    result: &ToolResultContent,
    diff: Option<ToolCallContent>,
) -> ToolCallUpdateFields {
    let status = match is_error {
        true => ToolCallStatus::Failed,
        false => ToolCallStatus::Completed,
    };
    let said = output(&result.text());
    let content = match diff {
        Some(diff) if is_error => vec![diff, said],
        Some(diff) => vec![diff],
        None => vec![said],
    };
    ToolCallUpdateFields::new().status(status).content(content)
}

pub(super) fn new_call(
    id: &ToolUseId,
    tool: &str,
    summary: &str,
    input: &Value,
    place: &Workplace<'_>,
) -> ToolCall {
    ToolCall::new(id.0.clone(), title(tool, summary))
        .kind(kind(tool))
        .status(ToolCallStatus::Pending)
        .locations(place.locations(input))
        .raw_input(input.clone())
}

pub(super) fn update(id: &ToolUseId, fields: ToolCallUpdateFields) -> SessionUpdate {
    SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id.0.clone(), fields))
}

/// Something beside the answer.
pub(super) fn line(text: &str) -> SessionUpdate {
    thought(&format!("{text}\n"))
}

fn plan(todos: &[Todo]) -> SessionUpdate {
    let entries = todos.iter().map(|todo| {
        let status = match todo.status {
            TodoStatus::Pending => PlanEntryStatus::Pending,
            TodoStatus::InProgress => PlanEntryStatus::InProgress,
            TodoStatus::Completed => PlanEntryStatus::Completed,
        };
        let content = printer::visible(&todo.content);
        PlanEntry::new(content, PlanEntryPriority::Medium, status)
    });
    SessionUpdate::Plan(Plan::new(entries.collect()))
}
