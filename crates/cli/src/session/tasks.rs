//! `/tasks`, `/task-status`, `/stop`, and what wakes a session at its prompt.
//!
//! The commands show tasks as `codespar task` does, by the same functions. `news` is what makes a
//! session react while the user has not typed anything.

use std::{sync::Arc, time::Duration};

use codespar_protocol::{SessionId, TaskRecord};
use codespar_store::{ChangeKind, StoreChange, TaskFilter};

use crate::{
    commands::{task, task_text},
    error::CommandError,
    slash::Which,
    style,
};
use codespar_runtime::Project;

/// After an error of the store.
const PAUSE: Duration = Duration::from_millis(500);
/// The newest; the number of older ones is said.
const SHOWN: usize = 30;
/// In bytes.
const TAIL: usize = 4_000;

/// Filtered here and not by the store, since a session and a project are alternatives.
pub(super) async fn chosen(
    project: &Arc<Project>,
    session: Option<SessionId>,
    which: Which,
) -> Result<Vec<TaskRecord>, CommandError> {
    let mut tasks = project.store.tasks(TaskFilter::default()).await?;
    let root = &project.dir.root;
    tasks.retain(|task| {
        let authority = task.authority.as_ref();
        which == Which::All
            || (session.is_some() && task.session_id == session)
            || authority.is_some_and(|authority| authority.project_root == *root)
    });
    Ok(tasks)
}

/// The newest tasks.
pub(super) async fn list(
    project: &Arc<Project>,
    session: Option<SessionId>,
    which: Which,
) -> Result<String, CommandError> {
    let tasks = chosen(project, session, which).await?;
    if tasks.is_empty() {
        let text = match which {
            Which::Here => "no tasks here yet; /tasks all shows those of other directories",
            Which::All => "no tasks yet",
        };
        return Ok(text.to_owned());
    }
    let older = tasks.len().saturating_sub(SHOWN);
    let mut lines = Vec::new();
    if older > 0 {
        lines.push(style::faint(format!("{older} older ones")));
    }
    lines.extend(tasks[older..].iter().map(task_text::line));
    Ok(lines.join("\n"))
}

/// One task and the end of its output. Tasks of other projects can be shown as well.
pub(super) async fn status(project: &Arc<Project>, id: &str) -> Result<String, CommandError> {
    let record = project
        .store
        .task(&task::find(&*project.store, id).await?)
        .await?;
    let mut text = task_text::details(&record);
    let tail = project.hub.output_tail(&record, TAIL).await;
    let tail = tail
        .map_err(|error| CommandError::Failed(error.to_string()))?
        .text;
    if !tail.trim().is_empty() {
        text.push('\n');
        text.push_str(&style::faint(tail.trim_end()));
    }
    Ok(text)
}

/// By a unique prefix of its id, as `codespar task stop` takes it. The record says that the user of
/// this session stopped it.
pub(super) async fn stop(project: &Arc<Project>, id: &str) -> Result<String, CommandError> {
    let id = task::find(&*project.store, id).await?;
    let record = project
        .hub
        .stop(&id, "stopped by user")
        .await
        .map_err(|error| CommandError::Failed(error.to_string()))?;
    Ok(task_text::line(&record))
}

/// Returns when a notification waits for the session. Never returns while there is no session.
/// Nothing is consumed: the notification is delivered in the turn that follows.
pub(crate) async fn news(project: &Arc<Project>, session: Option<SessionId>) {
    let Some(session) = session else {
        return std::future::pending().await;
    };
    loop {
        // Followed before it is looked: what comes in between is not missed.
        let Ok(mut changes) = project.hub.changes().follow().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let waiting = project.store.notifications(session).await;
        if waiting.is_ok_and(|waiting| !waiting.is_empty()) {
            return;
        }
        let is_ours = |change: &StoreChange| {
            change.kind == ChangeKind::Notification && change.session_id == Some(session)
        };
        changes.until(is_ours).await;
    }
}
