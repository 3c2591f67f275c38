//! `/tasks`, `/task-status`, `/stop`, and what wakes a session at its prompt.

use std::time::Duration;

use codespar_protocol::SessionId;
use codespar_store::{TaskFilter, TaskStore};
use codespar_tasks::TaskHub;

use super::Screen;
use crate::{commands::task, error::CommandError, style, works::Works};

const POLL: Duration = Duration::from_millis(500);
const SHOWN: u32 = 30;
const TAIL: usize = 4_000;

/// The newest tasks.
pub(super) async fn list(works: &Works, screen: &Screen) -> Result<(), CommandError> {
    let filter = TaskFilter {
        limit: Some(SHOWN),
        ..TaskFilter::default()
    };
    let tasks = works.ground.store.tasks(filter).await?;
    if tasks.is_empty() {
        screen.say("no tasks yet");
    }
    for record in tasks {
        screen.say(&task::line(&record));
    }
    Ok(())
}

/// One task and the end of its output.
pub(super) async fn status(works: &Works, screen: &Screen, id: &str) -> Result<(), CommandError> {
    let record = works.ground.store.task(&task::parse_id(id)?).await?;
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

/// Stops a task.
pub(super) async fn stop(works: &Works, screen: &Screen, id: &str) -> Result<(), CommandError> {
    let id = task::parse_id(id)?;
    let record = works
        .hub
        .stop(&id, "stopped by the person")
        .await
        .map_err(|error| CommandError::Failed(error.to_string()))?;
    screen.say(&task::line(&record));
    Ok(())
}

/// Returns when a notification waits for the session.
pub(super) async fn news(works: &Works, session: Option<SessionId>) {
    let Some(session) = session else {
        return std::future::pending().await;
    };
    loop {
        let waiting = works.ground.store.notifications(session).await;
        if waiting.is_ok_and(|waiting| !waiting.is_empty()) {
            return;
        }
        tokio::time::sleep(POLL).await;
    }
}
