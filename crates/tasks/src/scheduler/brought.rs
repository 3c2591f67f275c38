//! What an engine needs to know of the process that it brings tasks to.

use codespar_protocol::{Labels, TaskId, TaskType};
use codespar_store::{ChangeFeed, TaskClass};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{AttemptEnd, RunnerLimits, Scheduler};

impl Scheduler {
    /// Cancelled when nothing new is taken any more.
    pub fn leaving(&self) -> &CancellationToken {
        &self.leaving
    }

    pub fn limits(&self) -> RunnerLimits {
        self.limits
    }

    /// What this process offers.
    pub fn labels(&self) -> Labels {
        self.labels.read().clone()
    }

    /// The types of tasks that run here.
    pub fn served_types(&self) -> Vec<TaskType> {
        self.runners.read().keys().copied().collect()
    }

    /// Whether one more fits. Agents that agents here have started count, too.
    pub fn has_room(&self, class: TaskClass) -> bool {
        let (agents, commands) = self.room();
        match class {
            TaskClass::Agents => agents > 0,
            TaskClass::Commands => commands > 0,
            TaskClass::Waiting => true,
        }
    }

    /// The attempt at a task that runs here.
    pub fn attempt_here(&self, id: &TaskId) -> Option<watch::Receiver<Option<AttemptEnd>>> {
        let held = self.held.lock();
        held.get(id).map(|task| task.end.subscribe())
    }

    /// Somebody asked for the end of a task by way of the engine. What is over by now stays as it is.
    pub async fn ask_to_stop(&self, id: &TaskId, reason: &str) {
        let _ = self.store.stop_task(id, reason).await;
    }

    /// Whether this is the first of the workers that show signs of life, by their names: for what one
    /// of them has to do. There may be none for the time that a lost one takes to be noticed, and two
    /// for a moment.
    pub async fn is_first_worker(&self) -> bool {
        let there = self.leases.runners().await.unwrap_or_default();
        let workers = there
            .iter()
            .filter(|one| one.id.is_worker() && !one.is_silent);
        let first = workers.map(|one| one.id.0.as_str()).min();
        first == Some(self.id.0.as_str())
    }

    /// What is committed to the database, if it is followed.
    pub fn change_feed(&self) -> Option<&ChangeFeed> {
        self.changes.get()
    }
}
