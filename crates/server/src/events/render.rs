//! What a change or an event looks like to clients, and whom it concerns.
//!
//! A change on record is told with what it is about as that is now, and the state it had then: a
//! client that is behind sees where things stand. What is not of a project of this server is not
//! rendered at all, so no filter further on can let it through. Secrets are taken out here, before
//! anything reaches a queue.

use codespar_protocol::{Event, QuestionId, SessionId, TaskId, TaskStatus};
use codespar_store::{ChangeKind, Database, StoreChange, StoreError};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    api::{ApiQuestion, ApiTask, entry_json},
    scope::Scope,
};

/// A larger one is sent without its content, which the client can ask for.
pub(super) const MOST_BYTES: usize = 64 * 1024;

/// An event as it is sent.
#[derive(Debug, Clone)]
pub(super) struct LiveEvent {
    /// The place of the change; none for what agents say.
    pub(super) cursor: Option<u64>,
    pub(super) name: &'static str,
    pub(super) data: String,
    pub(super) session: Option<SessionId>,
    pub(super) task: Option<TaskId>,
}

/// A task was created, has another status, or is to be stopped.
#[derive(Serialize)]
struct TaskChanged<'a> {
    /// At the time of the change; `task` is as it is now.
    status: TaskStatus,
    task: &'a ApiTask,
}

/// A change for clients; none where it concerns no project of this server, or nothing that is shown.
pub(super) async fn change(
    store: &dyn Database,
    scope: &Scope,
    redact: &(dyn Fn(&mut Value) + Send + Sync),
    change: &StoreChange,
) -> Result<Option<LiveEvent>, StoreError> {
    let mut event = LiveEvent {
        cursor: Some(change.cursor.0),
        name: "",
        data: String::new(),
        session: change.session_id,
        task: change.task_id.clone(),
    };
    let data = match (&change.kind, &change.task_id, change.session_id) {
        (ChangeKind::Task { status }, Some(id), _) => {
            event.name = "task";
            task(store, scope, id, *status).await?
        }
        (ChangeKind::Entry { seq }, _, Some(session)) => {
            event.name = "entry";
            let Some(placed) = scope.place(session).await? else {
                return Ok(None);
            };
            event.task = placed.task;
            entry(store, session, event.task.as_ref(), *seq).await?
        }
        (ChangeKind::Question { id }, ..) => {
            event.name = "question";
            question(store, scope, id).await?
        }
        (ChangeKind::Inbound { channel } | ChangeKind::Outbox { channel }, ..)
            if channel == codespar_channels::WEB =>
        {
            event.name = "message";
            Some(json!({ "channel": channel }))
        }
        _ => None,
    };
    let Some(mut data) = data else {
        return Ok(None);
    };
    redact(&mut data);
    event.data = data.to_string();
    if event.data.len() > MOST_BYTES {
        event.data = shortened(&event, &data);
    }
    Ok(Some(event))
}

/// Without its content: what it is about is enough to ask for it.
fn shortened(event: &LiveEvent, data: &Value) -> String {
    let about = match event.name {
        "entry" => json!({
            "session_id": event.session,
            "task_id": event.task,
            "seq": data["seq"],
            "entry": null,
        }),
        "task" => json!({"status": data["status"], "task_id": event.task, "task": null}),
        _ => json!({"id": data["id"], "question": null}),
    };
    about.to_string()
}

async fn task(
    store: &dyn Database,
    scope: &Scope,
    id: &TaskId,
    status: TaskStatus,
) -> Result<Option<Value>, StoreError> {
    let record = match store.task(id).await {
        Ok(record) => record,
        Err(StoreError::NoSuchTask(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    if !scope.has_task(&record) {
        return Ok(None);
    }
    let task = &ApiTask::of(record);
    Ok(serde_json::to_value(TaskChanged { status, task }).ok())
}

async fn entry(
    store: &dyn Database,
    session: SessionId,
    task: Option<&TaskId>,
    seq: u64,
) -> Result<Option<Value>, StoreError> {
    let found = match store.entries_page(session, seq, 1).await {
        Ok(found) => found,
        Err(StoreError::NoSuchSession(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    let entry = found.first().map(entry_json);
    Ok(entry
        .map(|entry| json!({"session_id": session, "task_id": task, "seq": seq, "entry": entry})))
}

async fn question(
    store: &dyn Database,
    scope: &Scope,
    id: &QuestionId,
) -> Result<Option<Value>, StoreError> {
    let question = match store.question(id).await {
        Ok(question) => question,
        Err(StoreError::NoSuchQuestion(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    if !scope.roots().contains(&question.project_root) {
        return Ok(None);
    }
    let question = ApiQuestion::of(question);
    Ok(Some(json!({"id": id, "question": question})))
}

/// Whether clients are shown it as it happens. What is in the transcript reaches them as an entry.
pub(super) fn is_shown(event: &Event) -> bool {
    matches!(
        event,
        Event::TurnStarted { .. }
            | Event::TextDelta { .. }
            | Event::ThinkingDelta { .. }
            | Event::Retrying { .. }
            | Event::ToolStarted { .. }
            | Event::CommandOutput { .. }
            | Event::ToolFinished { .. }
            | Event::Todos { .. }
            | Event::TaskProgress { .. }
            | Event::Step { .. }
            | Event::Notice { .. }
    )
}

/// What an agent of this process does now; none where it is too large to be worth it.
pub(super) fn agent_event(
    session: Option<SessionId>,
    task: Option<TaskId>,
    event: &Event,
    redact: &(dyn Fn(&mut Value) + Send + Sync),
) -> Option<LiveEvent> {
    let mut data = json!({"session_id": session, "task_id": task, "event": event});
    redact(&mut data);
    let data = data.to_string();
    (data.len() <= MOST_BYTES).then_some(LiveEvent {
        cursor: None,
        name: "agent",
        data,
        session,
        task,
    })
}
