//! Cleaning up by itself: at most once a day for a state directory, beside other work.

use std::{
    path::PathBuf,
    time::{Duration, SystemTime},
};

use tokio::{runtime::Handle, task::JoinHandle};

use super::{collect, days_of};
use crate::{error::CommandError, progress::Progress};
use codespar_runtime::{ProjectDir, Settings};

const DAY: Duration = Duration::from_secs(24 * 3600);
/// How often a process that stays looks whether it is due.
const HOUR: Duration = Duration::from_secs(3600);

/// The file whose age says when it was last done.
fn mark(project_dir: &ProjectDir) -> PathBuf {
    project_dir.state().join("last-gc")
}

/// Notes that it is done now.
pub(super) fn note(project_dir: &ProjectDir) {
    // Without the mark it is done again sooner than it need be, which does no harm.
    let _ = std::fs::write(mark(project_dir), b"");
}

/// Whether a day has passed. The first use of a state directory has nothing to clean up, and a
/// mark from the future, left by a wrong clock, does not count.
fn is_due(project_dir: &ProjectDir) -> bool {
    let Ok(meta) = std::fs::metadata(mark(project_dir)) else {
        note(project_dir);
        return false;
    };
    let modified = meta.modified().ok();
    let age = modified.and_then(|at| SystemTime::now().duration_since(at).ok());
    age.is_none_or(|age| age >= DAY)
}

/// Cleans up if it is due, for at most this long: what is left then is for the next time.
pub(crate) async fn for_as_long(project_dir: &ProjectDir, settings: &Settings, patience: Duration) {
    if !is_due(project_dir) {
        return;
    }
    let work = start(project_dir.clone(), days_of(settings));
    if tokio::time::timeout(patience, work).await.is_err() {
        // Without this the next time is tomorrow.
        let _ = std::fs::File::options()
            .write(true)
            .open(mark(project_dir))
            .and_then(|file| file.set_modified(SystemTime::UNIX_EPOCH));
    }
}

/// Cleans up when it is due, for as long as the process runs.
pub(crate) fn daily(project_dir: &ProjectDir, settings: &Settings) {
    let (project_dir, days) = (project_dir.clone(), days_of(settings));
    tokio::spawn(async move {
        loop {
            if is_due(&project_dir) {
                // It has nobody to tell; the next time comes.
                let _ = start(project_dir.clone(), days).await;
            }
            tokio::time::sleep(HOUR).await;
        }
    });
}

/// On a thread of its own: removing many files takes a while. The future of the handle may be
/// dropped; the work goes on until the process ends.
fn start(project_dir: ProjectDir, days: u32) -> JoinHandle<()> {
    // Taken before the work, so that processes that start together do not all do it.
    note(&project_dir);
    let runtime = Handle::current();
    tokio::task::spawn_blocking(move || {
        let done = runtime.block_on(async {
            let store = project_dir.environment.open_database().await?;
            let (sessions, bytes) =
                collect(&store, &project_dir, days, &Progress::nowhere()).await?;
            store.close().await?;
            Ok::<_, CommandError>((sessions.len(), bytes))
        });
        match done {
            Ok((sessions, bytes)) => tracing::debug!(sessions, bytes, "cleaned up"),
            Err(error) => tracing::warn!(%error, "could not clean up"),
        }
    })
}
