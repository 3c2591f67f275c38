//! Events as JSON lines, in the shapes that scripts for other agents already read.
//!
//! ```text
//! {"type":"assistant","message":{…},"parent_tool_use_id":null,"session_id":"…","uuid":"…"}
//! {"type":"user","message":{…tool results…},"parent_tool_use_id":null,…}
//! {"type":"system","subtype":"task_started","task_id":"a-1f3c2b8a",…}
//! {"type":"result","subtype":"success","is_error":false,"result":"…",…}
//! ```
//!
//! Fields may be added and are never renamed. Messages are serialised by structs and not through a
//! `Value`: content blocks hold raw JSON, which a `Value` would reorder.

use std::{borrow::Cow, collections::BTreeMap};

use codespar_model::Catalogue;
use codespar_protocol::{
    ContentBlock, Cost, EntryId, Event, Message, Outcome, PermissionDenial, RunResult, SessionId,
    StopReason, TaskStatus, ToolResultContent, ToolUseId, Usage,
};
use serde::Serialize;
use serde_json::{Value, json};

/// The line for an event; `None` for those that only matter on a screen. Content blocks are written
/// straight from what the model sent, never through another form. `session` is the conversation of
/// the user also for events of subagents, which have sessions of their own.
pub(crate) fn line(event: &Event, session: SessionId) -> Option<String> {
    line_of(event, session, None)
}

/// `parent` is the call that started the subagent whose event it is. A subagent of a subagent is
/// marked with its own call, not with the outer one.
fn line_of(event: &Event, session: SessionId, parent: Option<&ToolUseId>) -> Option<String> {
    match event {
        Event::Assistant { .. } | Event::ToolResults { .. } => message_line(event, session, parent),
        // A subagent's messages, marked with the call that started it; its end is told apart.
        Event::Subagent {
            parent_tool_use_id,
            event,
            ..
        } => line_of(event, session, Some(parent_tool_use_id)),
        // The end of a turn is printed by whoever runs it.
        Event::Finished(_) => None,
        other => {
            let (subtype, fields) = system_fields(other)?;
            Some(system(session, subtype, fields))
        }
    }
}

/// `None` for events that are no messages.
fn message_line(event: &Event, session: SessionId, parent: Option<&ToolUseId>) -> Option<String> {
    let parent_tool_use_id = parent.map(|id| id.0.as_str());
    match event {
        Event::Assistant {
            id,
            message_id,
            message,
            model,
            stop_reason,
            usage,
            ..
        } => Some(text(&AssistantLine {
            kind: "assistant",
            message: AssistantMessage {
                id: message_id.as_deref(),
                kind: "message",
                role: "assistant",
                model,
                content: &signed(&message.content),
                stop_reason,
                stop_sequence: (),
                usage: usage.into(),
            },
            parent_tool_use_id,
            session_id: session,
            uuid: *id,
        })),
        Event::ToolResults { id, message } => Some(text(&UserLine {
            kind: "user",
            message,
            parent_tool_use_id,
            tool_use_result: only_result(message),
            session_id: session,
            uuid: *id,
        })),
        _ => None,
    }
}

/// The subtype and fields of a `system` line. `None` for events that have no line.
fn system_fields(event: &Event) -> Option<(&'static str, Value)> {
    Some(match event {
        Event::Retrying {
            attempt,
            delay_ms,
            reason,
        } => (
            "api_retry",
            json!({ "attempt": attempt, "retry_delay_ms": delay_ms, "error": reason, "error_status": null }),
        ),
        Event::Compacted {
            tokens_before,
            entries_kept,
        } => {
            let metadata = json!({ "trigger": "auto", "pre_tokens": tokens_before, "entries_kept": entries_kept });
            ("compact_boundary", json!({ "compact_metadata": metadata }))
        }
        Event::Notice { level, text } => {
            ("informational", json!({ "level": level, "content": text }))
        }
        Event::Todos { todos } => ("todos", json!({ "todos": todos })),
        Event::PermissionDenied(denial) => ("permission_denied", denied(denial)),
        event => return task_fields(event),
    })
}

/// Events without a line are listed one by one, so that the compiler asks about each new one.
/// `Step` and `TaskProgress` share a subtype: one is about a run of the dev agent, the other about
/// an agent.
fn task_fields(event: &Event) -> Option<(&'static str, Value)> {
    Some(match event {
        Event::TaskStarted {
            task_id,
            task_type,
            subject,
            tool_use_id,
            kind,
        } => (
            "task_started",
            json!({ "task_id": task_id, "task_type": task_type, "description": subject, "tool_use_id": tool_use_id, "agent": kind }),
        ),
        Event::TaskProgress {
            task_id,
            tool_uses,
            total_tokens,
            duration_ms,
            summary,
        } => (
            "task_progress",
            json!({
                "task_id": task_id, "description": summary,
                "usage": { "total_tokens": total_tokens, "tool_uses": tool_uses, "duration_ms": duration_ms },
            }),
        ),
        Event::Step {
            task_id,
            step,
            text,
        } => (
            "task_progress",
            // Counts of a run come with its end; readers want the field all the same.
            json!({
                "task_id": task_id, "step": step, "description": text,
                "usage": { "total_tokens": 0, "tool_uses": 0, "duration_ms": 0 },
            }),
        ),
        Event::TaskEnded {
            task_id,
            status,
            subject,
            summary,
            detail: _,
            output_file,
            usage,
            cost,
            tool_uses,
            duration_ms,
        } => (
            "task_notification",
            json!({
                "task_id": task_id, "status": ended_as(*status), "description": subject, "summary": summary,
                "total_cost_usd": cost, "output_file": output_file.as_deref().unwrap_or_default(),
                "usage": { "total_tokens": usage.total_tokens(), "tool_uses": tool_uses, "duration_ms": duration_ms },
            }),
        ),
        Event::TurnStarted { .. }
        | Event::TextDelta { .. }
        | Event::ThinkingDelta { .. }
        | Event::ToolStarted { .. }
        | Event::CommandOutput { .. }
        | Event::ToolFinished { .. }
        | Event::PermissionAsked { .. }
        | Event::Assistant { .. }
        | Event::ToolResults { .. }
        | Event::Retrying { .. }
        | Event::Compacted { .. }
        | Event::Notice { .. }
        | Event::Todos { .. }
        | Event::PermissionDenied(_)
        | Event::Subagent { .. }
        | Event::Finished(_) => return None,
    })
}

/// The words of a task that is over, as readers of other programs know them.
fn ended_as(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Killed => "stopped",
        TaskStatus::Failed => "failed",
        TaskStatus::Pending | TaskStatus::Running | TaskStatus::Completed => "completed",
    }
}

fn denied(denial: &PermissionDenial) -> Value {
    let mut fields = json!(denial);
    fields["message"] = json!(denial.reason);
    fields["decision_reason"] = json!(denial.reason);
    fields
}

/// How a cost that is not known is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnknownCost {
    /// As null.
    Null,
    /// As what is known of it, with `costBasis` "unknown": clients take it for a number.
    AtLeast,
}

/// What the end of a run has besides the run itself.
pub(crate) struct ResultParts<'a> {
    pub(crate) catalogue: &'a Catalogue,
    pub(crate) unknown_cost: UnknownCost,
    /// The answer in the form that was asked for.
    pub(crate) structured_output: Option<&'a Value>,
    /// The uuid of the client's message that the turn answers.
    pub(crate) message: Option<&'a str>,
}

/// The last line of a turn.
pub(crate) fn result(run: &RunResult, parts: &ResultParts<'_>) -> String {
    let number = |cost: Cost| match parts.unknown_cost {
        UnknownCost::Null => cost,
        UnknownCost::AtLeast => Cost::Known(cost.at_least()),
    };
    let by_model = run.by_model.iter().map(|(model, usage, cost)| {
        let known = parts.catalogue.resolve(model).entry;
        let entry = ModelUsage {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cache_read_input_tokens: usage.cache_read_input_tokens,
            cache_creation_input_tokens: usage.cache_creation_input_tokens,
            web_search_requests: usage.web_search_requests,
            cost: number(*cost),
            cost_basis: match cost.known() {
                Some(_) => "list",
                None => "unknown",
            },
            context_window: known.map_or(0, |entry| entry.context_window),
            max_output_tokens: known.map_or(0, |entry| entry.max_output),
        };
        (model.as_str(), entry)
    });
    let by_model = by_model.collect();
    let is_error = run.outcome != Outcome::Success;
    text(&ResultLine {
        kind: "result",
        subtype: &run.outcome,
        is_error,
        duration_ms: run.duration_ms,
        duration_api_ms: run.duration_api_ms,
        num_turns: run.num_turns,
        result: &run.result,
        stop_reason: run.stop_reason.as_ref(),
        session_id: run.session_id,
        total_cost_usd: number(run.cost),
        usage: (&run.usage).into(),
        model_usage: by_model,
        permission_denials: &run.permission_denials,
        errors: is_error.then_some([run.result.as_str()]),
        structured_output: parts.structured_output,
        user_message_uuid: parts.message,
        user_message_uuids: parts.message.map(|message| [message]),
        uuid: EntryId::new(),
    })
}

/// Has the shape of an answer of the API, with what identifies the conversation around it.
#[derive(Serialize)]
struct AssistantLine<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    message: AssistantMessage<'a>,
    parent_tool_use_id: Option<&'a str>,
    session_id: SessionId,
    /// That of the entry in the transcript, so a line can be found there.
    uuid: EntryId,
}

/// Borrowed from the event: large messages are not copied.
#[derive(Serialize)]
struct AssistantMessage<'a> {
    id: Option<&'a str>,
    #[serde(rename = "type")]
    kind: &'static str,
    role: &'static str,
    model: &'a str,
    content: &'a [ContentBlock],
    stop_reason: &'a StopReason,
    /// Always null.
    stop_sequence: (),
    usage: Tokens,
}

/// Readers want a signature on every thought; providers other than Anthropic give none.
fn signed(content: &[ContentBlock]) -> Cow<'_, [ContentBlock]> {
    let lacks = |block: &ContentBlock| matches!(block, ContentBlock::Thinking(thought) if thought.signature.is_none());
    if !content.iter().any(lacks) {
        return Cow::Borrowed(content);
    }
    let mut content = content.to_vec();
    for block in &mut content {
        if let ContentBlock::Thinking(thought) = block {
            thought.signature.get_or_insert_default();
        }
    }
    Cow::Owned(content)
}

/// What the call gave, where the message is about one call.
fn only_result(message: &Message) -> Option<&ToolResultContent> {
    match message.content.as_slice() {
        [ContentBlock::ToolResult(result)] => Some(&result.content),
        _ => None,
    }
}

/// Tool results only: prompts of the caller are not repeated.
#[derive(Serialize)]
struct UserLine<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    message: &'a Message,
    parent_tool_use_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_use_result: Option<&'a ToolResultContent>,
    session_id: SessionId,
    uuid: EntryId,
}

/// The last line of `stream-json`, and the only one of `json`.
#[derive(Serialize)]
struct ResultLine<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    subtype: &'a Outcome,
    is_error: bool,
    duration_ms: u64,
    duration_api_ms: u64,
    num_turns: u32,
    result: &'a str,
    stop_reason: Option<&'a StopReason>,
    session_id: SessionId,
    total_cost_usd: Cost,
    usage: Tokens,
    #[serde(rename = "modelUsage")]
    model_usage: BTreeMap<&'a str, ModelUsage>,
    permission_denials: &'a [PermissionDenial],
    #[serde(skip_serializing_if = "Option::is_none")]
    errors: Option<[&'a str; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_output: Option<&'a Value>,
    /// A client that has moved on knows by it that this is not the end of a later message.
    #[serde(skip_serializing_if = "Option::is_none")]
    user_message_uuid: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_message_uuids: Option<[&'a str; 1]>,
    uuid: EntryId,
}

/// The four counts in the spelling of the API.
#[derive(Serialize)]
struct Tokens {
    input_tokens: u64,
    cache_creation_input_tokens: u64,
    cache_read_input_tokens: u64,
    output_tokens: u64,
}

impl From<&Usage> for Tokens {
    fn from(usage: &Usage) -> Self {
        Self {
            input_tokens: usage.input_tokens,
            cache_creation_input_tokens: usage.cache_creation_input_tokens,
            cache_read_input_tokens: usage.cache_read_input_tokens,
            output_tokens: usage.output_tokens,
        }
    }
}

/// In camel case, unlike the other lines, because existing scripts read it so.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ModelUsage {
    input_tokens: u64,
    output_tokens: u64,
    cache_read_input_tokens: u64,
    cache_creation_input_tokens: u64,
    web_search_requests: u64,
    #[serde(rename = "costUSD")]
    cost: Cost,
    cost_basis: &'static str,
    context_window: u64,
    max_output_tokens: u32,
}

/// `fields` is an object; anything else would leave a line without them. Every line has an id of
/// its own, so that a reader can drop what it has seen.
pub(crate) fn system(session: SessionId, subtype: &str, fields: Value) -> String {
    let mut line = json!({ "type": "system", "subtype": subtype, "session_id": session });
    if let (Value::Object(line), Value::Object(fields)) = (&mut line, fields) {
        line.extend(fields);
        line.insert("uuid".to_owned(), json!(EntryId::new()));
    }
    line.to_string()
}

/// None of these can fail to be written; if one did, a line that says so beats no line.
fn text(line: &impl Serialize) -> String {
    serde_json::to_string(line).unwrap_or_else(|error| {
        let content = error.to_string();
        json!({ "type": "system", "subtype": "informational", "level": "warning", "content": content })
            .to_string()
    })
}
