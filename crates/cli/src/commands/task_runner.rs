//! Sees to it that somebody is there to run a task.

use std::{
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use codespar_protocol::Labels;
use codespar_store::{ChangeCursor, Database, RunnerId};

use super::worker::has_work;
use crate::error::CommandError;
use codespar_runtime::{ProjectDir, unusable_engine};

/// How often the output of a task is looked at: it is a file, and no part of the store.
const OUTPUT: Duration = Duration::from_millis(150);
/// How often it is looked whether a runner lives.
const LOOK: Duration = Duration::from_secs(2);

/// Waiting for a task, with an eye on whether anybody is there to bring it to its end: a runner
/// that died is replaced. Changes of the record are heard of at once; the output is a file, so it
/// is looked at in between.
pub(super) struct Vigil<'a> {
    project_dir: &'a ProjectDir,
    store: &'a dyn Database,
    pub(super) began: Instant,
    looked: Instant,
    seen: ChangeCursor,
}

/// What else is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitFor {
    Record,
    RecordOrOutput,
}

impl<'a> Vigil<'a> {
    /// What changes after this is not missed.
    pub(super) async fn new(
        project_dir: &'a ProjectDir,
        store: &'a dyn Database,
    ) -> Result<Self, CommandError> {
        let now = Instant::now();
        Ok(Self {
            project_dir,
            store,
            began: now,
            looked: now,
            seen: store.newest_change().await?,
        })
    }

    /// Returns when something has changed, or may have.
    pub(super) async fn wait(&mut self, what: WaitFor) -> Result<(), CommandError> {
        let pause = match what {
            WaitFor::Record => LOOK,
            WaitFor::RecordOrOutput => OUTPUT,
        };
        if let Ok(changes) = tokio::time::timeout(pause, self.store.changes(self.seen)).await
            && let Some(last) = changes?.last()
        {
            self.seen = last.cursor;
        }
        if self.looked.elapsed() > LOOK {
            self.looked = Instant::now();
            start_runner_if_none(self.project_dir, self.store).await?;
        }
        Ok(())
    }
}

/// A process of its own that ends when nothing is left to do. Sessions do not count: one of another
/// project does not take the task. None is started for tasks that require labels: it offers none.
///
/// Nobody has asked for a worker of the engine that it could not use and would be refused for.
pub(super) async fn start_runner_if_none(
    project_dir: &ProjectDir,
    store: &dyn Database,
) -> Result<(), CommandError> {
    let there = codespar_tasks::available_runners(store).await?;
    if there.iter().any(RunnerId::is_worker) {
        return Ok(());
    }
    if !has_work(store, &Labels::default()).await? {
        return Ok(());
    }
    use std::os::unix::process::CommandExt;
    let mut command = Command::new(std::env::current_exe()?);
    if let Some(engine) = unusable_engine(&project_dir.environment) {
        command.env_remove(engine.variable);
    }
    command
        .args(["worker", "--until-idle"])
        .current_dir(&project_dir.cwd)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .map_err(|error| CommandError::Failed(format!("no runner could be started: {error}")))?;
    Ok(())
}
