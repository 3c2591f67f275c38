//! `/tasks`, `/task-status`, `/stop`, and what wakes a session at its prompt.
//!
//! The commands show tasks as `codespar task` does, by the same functions. `news` is what makes a
//! session react while the user has not typed anything.

use std::{sync::Arc, time::Duration};

use codespar_protocol::SessionId;
use codespar_store::{ChangeKind, StoreChange, TaskFilter};
use codespar_tasks::TaskHub;

use super::Screen;
use crate::{commands::task, error::CommandError, style};
use codespar_runtime::Project;

/// After an error of the store.
const PAUSE: Duration = Duration::from_millis(500);
/// The newest; the number of older ones is said.
const SHOWN: usize = 30;
/// In bytes.
const TAIL: usize = 4_000;

/// Which tasks a person wants to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// Those of this session and this project.
    Here,
    /// All of the state directory.
    All,
}

/// The newest tasks. Filtered here and not by the store, since a session and a project are
/// alternatives.
pub(super) async fn list(
    project: &Arc<Project>,
    screen: &Screen,
    session: Option<SessionId>,
    which: Which,
) -> Result<(), CommandError> {
    let mut tasks = project.store.tasks(TaskFilter::default()).await?;
    let root = &project.dir.root;
    tasks.retain(|task| {
        let authority = task.authority.as_ref();
        which == Which::All
            || (session.is_some() && task.session_id == session)
            || authority.is_some_and(|authority| authority.project_root == *root)
    });
    if tasks.is_empty() {
        screen.say(match which {
            Which::Here => "no tasks here yet; /tasks all shows those of other directories",
            Which::All => "no tasks yet",
        });
    }
    let older = tasks.len().saturating_sub(SHOWN);
    if older > 0 {
        screen.say(&style::faint(format!("{older} older ones")));
    }
    for record in &tasks[older..] {
        screen.say(&task::line(record));
    }
    Ok(())
}

/// One task and the end of its output. Tasks of other projects can be shown as well.
pub(super) async fn status(
    project: &Arc<Project>,
    screen: &Screen,
    id: &str,
) -> Result<(), CommandError> {
    let record = project
        .store
        .task(&task::find(&*project.store, id).await?)
        .await?;
    screen.say(&task::details(&record));
    let size = record
        .output_file
        .as_deref()
        .and_then(|path| std::fs::metadata(path).ok())
        .map_or(0, |m| m.len());
    let (tail, _) = TaskHub::output(&record, size.saturating_sub(TAIL as u64), TAIL);
    if !tail.trim().is_empty() {
        screen.say(&style::faint(tail.trim_end()));
    }
    Ok(())
}

pub(super) async fn stop(
    project: &Arc<Project>,
    screen: &Screen,
    id: &str,
) -> Result<(), CommandError> {
    let id = task::find(&*project.store, id).await?;
    let record = project
        .hub
        .stop(&id, "stopped by user")
        .await
        .map_err(|error| CommandError::Failed(error.to_string()))?;
    screen.say(&task::line(&record));
    Ok(())
}

/// Returns when a notification waits for the session. Never returns while there is no session.
/// Nothing is consumed: the notification is delivered in the turn that follows.
pub(super) async fn news(project: &Arc<Project>, session: Option<SessionId>) {
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
