//! What an engine needs to know of the process that it brings tasks to.

use std::sync::Arc;

use codespar_protocol::{Labels, TaskId, TaskType};
use codespar_store::{ChangeFeed, EngineState, StoreError, TaskClass};
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

    /// Room for one more, which is kept until the place is dropped. Agents that agents here have
    /// started count, too.
    pub fn reserve(self: &Arc<Self>, class: TaskClass) -> Option<RunnerSlot> {
        // Looked at and taken in one go: the lock is that of the places.
        let mut reserved = self.reserved.lock();
        let (agents, commands) = self.room_beside(&reserved);
        let has_room = match class {
            TaskClass::Agents => agents > 0,
            TaskClass::Commands => commands > 0,
            TaskClass::Waiting => true,
        };
        has_room.then(|| {
            *reserved.entry(class).or_default() += 1;
            RunnerSlot {
                scheduler: self.clone(),
                class,
            }
        })
    }

    /// The name of what brings tasks here.
    pub fn engine_name(&self) -> &'static str {
        self.engine.name()
    }

    pub fn engine_state(&self) -> EngineState {
        *self.engine_state.lock()
    }

    /// Told to others with the next heartbeat.
    pub fn set_engine_state(&self, state: EngineState) {
        *self.engine_state.lock() = state;
    }

    /// Returns when a process that was there is gone, or has shown no sign of life for long. Remembered
    /// for one who waits later.
    pub async fn runner_left(&self) {
        self.runner_left.notified().await;
    }

    /// The attempt at a task that runs here.
    pub fn attempt_here(&self, id: &TaskId) -> Option<watch::Receiver<Option<AttemptEnd>>> {
        let held = self.held.lock();
        held.get(id).map(|task| task.end.subscribe())
    }

    /// Somebody asked for the end of a task by way of the engine. What is over by now stays as it is.
    /// An error of the store says that it must be asked for again.
    pub async fn ask_to_stop(&self, id: &TaskId, reason: &str) -> Result<(), StoreError> {
        match self.store.stop_task(id, reason).await {
            Err(
                error @ (StoreError::Busy { .. }
                | StoreError::DiskFull { .. }
                | StoreError::Unreachable { .. }
                | StoreError::Database(_)),
            ) => Err(error),
            _ => Ok(()),
        }
    }

    /// What is committed to the database, if it is followed.
    pub fn change_feed(&self) -> Option<&ChangeFeed> {
        self.changes.get()
    }
}

/// Room for one task that is about to begin.
pub struct RunnerSlot {
    scheduler: Arc<Scheduler>,
    class: TaskClass,
}

impl Drop for RunnerSlot {
    fn drop(&mut self) {
        if let Some(reserved) = self.scheduler.reserved.lock().get_mut(&self.class) {
            *reserved = reserved.saturating_sub(1);
        }
    }
}
