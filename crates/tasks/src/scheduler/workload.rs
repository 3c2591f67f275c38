//! How much runs in this process, told as it changes.

use std::{collections::HashMap, time::Instant};

use codespar_protocol::TaskId;
use tokio::sync::watch;

use super::{AttemptEnd, Held, Scheduler};

/// What runs in this process at a moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Workload {
    pub tasks: usize,
    /// When the attempt that has run longest here began; `None` while nothing runs.
    pub oldest: Option<Instant>,
}

impl Scheduler {
    /// Changes with every task that begins or ends here. Only the newest state is kept for a
    /// receiver that is slow.
    pub fn workload(&self) -> watch::Receiver<Workload> {
        let held = self.held.lock();
        let receiver = self.workload.subscribe();
        self.tell_workload(&held);
        receiver
    }

    /// The end of this attempt is recorded, or it is another runner's.
    pub(super) fn put_down(&self, id: &TaskId, end: AttemptEnd) {
        let mut held = self.held.lock();
        if let Some(task) = held.remove(id) {
            task.end.send_replace(Some(end));
        }
        self.tell_workload(&held);
    }

    /// Called under the lock of `held`, so that the last one told is the last that was.
    pub(super) fn tell_workload(&self, held: &HashMap<TaskId, Held>) {
        // Most processes show it to nobody.
        if self.workload.receiver_count() > 0 {
            self.workload.send_replace(workload(held));
        }
    }
}

fn workload(held: &HashMap<TaskId, Held>) -> Workload {
    Workload {
        tasks: held.len(),
        oldest: held.values().map(|task| task.since).min(),
    }
}
