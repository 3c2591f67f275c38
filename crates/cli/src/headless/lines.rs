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

use std::collections::BTreeMap;

use codespar_protocol::{
    ContentBlock, Cost, EntryId, Event, Message, Outcome, PermissionDenial, RunResult, SessionId,
    StopReason, ToolUseId, Usage,
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
        } => match &**event {
            Event::Finished(_) => None,
            event => line_of(event, session, Some(parent_tool_use_id)),
        },
        Event::Finished(run) => Some(result(run)),
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
                content: &message.content,
                stop_reason,
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
            json!({ "attempt": attempt, "retry_delay_ms": delay_ms, "error": reason }),
        ),
        Event::Compacted {
            tokens_before,
            entries_kept,
        } => {
            let metadata = json!({ "trigger": "auto", "pre_tokens": tokens_before, "entries_kept": entries_kept });
            ("compact_boundary", json!({ "compact_metadata": metadata }))
        }
        Event::Notice { level, text } => ("notice", json!({ "level": level, "text": text })),
        Event::Todos { todos } => ("todos", json!({ "todos": todos })),
        Event::PermissionDenied(denial) => ("permission_denied", json!(denial)),
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
            summary,
        } => (
            "task_progress",
            json!({ "task_id": task_id, "description": summary, "usage": { "total_tokens": total_tokens, "tool_uses": tool_uses } }),
        ),
        Event::Step {
            task_id,
            step,
            text,
        } => (
            "task_progress",
            json!({ "task_id": task_id, "step": step, "description": text }),
        ),
        Event::TaskEnded {
            task_id,
            status,
            subject,
            summary,
            detail: _,
            usage,
            cost,
            tool_uses,
            duration_ms,
        } => (
            "task_notification",
            json!({
                "task_id": task_id, "status": status, "description": subject, "summary": summary, "total_cost_usd": cost,
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

/// The last line. `total_cost_usd` is null if the cost of a call is not known.
pub(crate) fn result(run: &RunResult) -> String {
    let by_model = run
        .by_model
        .iter()
        .map(|(model, usage, cost)| {
            let entry = ModelUsage {
                input_tokens: usage.input_tokens,
                output_tokens: usage.output_tokens,
                cache_read_input_tokens: usage.cache_read_input_tokens,
                cache_creation_input_tokens: usage.cache_creation_input_tokens,
                cost: *cost,
            };
            (model.as_str(), entry)
        })
        .collect();
    text(&ResultLine {
        kind: "result",
        subtype: &run.outcome,
        is_error: run.outcome != Outcome::Success,
        duration_ms: run.duration_ms,
        duration_api_ms: run.duration_api_ms,
        num_turns: run.num_turns,
        result: &run.result,
        stop_reason: run.stop_reason.as_ref(),
        session_id: run.session_id,
        total_cost_usd: run.cost,
        usage: (&run.usage).into(),
        model_usage: by_model,
        permission_denials: &run.permission_denials,
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
    usage: Tokens,
}

/// Tool results only: prompts of the caller are not repeated.
#[derive(Serialize)]
struct UserLine<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    message: &'a Message,
    parent_tool_use_id: Option<&'a str>,
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
    #[serde(rename = "costUSD")]
    cost: Cost,
}

/// `fields` is an object; anything else would leave a line without them. Every line has an id of
/// its own, so that a reader can drop what it has seen.
fn system(session: SessionId, subtype: &str, fields: Value) -> String {
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
        json!({ "type": "system", "subtype": "notice", "level": "warning", "text": error.to_string() })
            .to_string()
    })
}
