//! Leaving in good order: nothing new is taken, steps under way may come to their end, the rest is
//! handed back.

use std::{sync::atomic::Ordering, time::Duration};

use codespar_protocol::{TaskId, TaskType};

use super::Scheduler;
use crate::runner::TaskStopReason;

/// How long a step under way may take to come to its end.
const GRACE: Duration = Duration::from_secs(5);

impl Scheduler {
    /// Stops taking tasks; agents and workflows go back for others when their step is on record,
    /// at the latest after a grace time; commands are stopped, for nobody can go on with them.
    /// Returns when nothing runs any more and all of it is recorded.
    pub async fn leave(&self) {
        self.leaving.cancel();
        // A claim under way is waited for: what it brings is handed back.
        drop(self.taking.lock().await);
        for (id, task_type) in self.running_here() {
            if has_steps(task_type) {
                self.ask_to_hand_over(&id);
            } else {
                self.signal(&id, TaskStopReason::Leaving);
            }
        }
        self.tracker.close();
        tokio::select! {
            () = self.tracker.wait() => {}
            () = self.clock.sleep(GRACE) => {
                for (id, _) in self.running_here() {
                    self.signal(&id, TaskStopReason::Leaving);
                }
                self.tracker.wait().await;
            }
        }
        if self.is_started.load(Ordering::SeqCst) {
            // An engine that is out of reach finds out by itself.
            tokio::select! {
                () = self.served.cancelled() => {}
                () = self.clock.sleep(GRACE) => {}
            }
        }
        self.over.cancel();
        if self.is_started.load(Ordering::SeqCst) {
            let _ = self.leases.withdraw_runner(&self.id).await;
        }
    }

    fn running_here(&self) -> Vec<(TaskId, TaskType)> {
        let held = self.held.lock();
        let task = |(id, task): (&TaskId, &super::Held)| (id.clone(), task.task_type);
        held.iter().map(task).collect()
    }

    /// It stops by itself after its next step.
    fn ask_to_hand_over(&self, id: &TaskId) {
        if let Some(task) = self.held.lock().get(id) {
            task.stop_reason
                .lock()
                .get_or_insert(TaskStopReason::Leaving);
            task.hand_over.soon.cancel();
        }
    }
}

/// It comes to points at which another process can go on.
fn has_steps(task_type: TaskType) -> bool {
    task_type.is_agent() || task_type == TaskType::LocalWorkflow
}
