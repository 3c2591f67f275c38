//! Tasks that were put back because they cannot run yet: each is left alone for a while, longer
//! every time.

use std::{collections::HashMap, time::Duration};

use codespar_protocol::{Backoff, TaskId};

const PAUSES: Backoff = Backoff {
    first: Duration::from_millis(250),
    longest: Duration::from_secs(5),
};

/// After the end of its pause; a task that still waits is tried long before.
const FORGOTTEN: Duration = Duration::from_secs(600);

/// By this process's own clock; other processes try for themselves.
#[derive(Debug, Default)]
pub(super) struct RestingTasks(HashMap<TaskId, Rest>);

#[derive(Debug)]
struct Rest {
    /// How often it was put back.
    times: u32,
    until: Duration,
}

impl RestingTasks {
    /// It was put back once more; gives how long it rests.
    pub(super) fn put_back(&mut self, id: TaskId, now: Duration) -> Duration {
        let times = self
            .0
            .get(&id)
            .map_or(1, |rest| rest.times.saturating_add(1));
        let pause = PAUSES.delay(times);
        let until = now + pause;
        // What was put back long ago has ended elsewhere.
        self.0.retain(|_, rest| rest.until + FORGOTTEN > now);
        self.0.insert(id, Rest { times, until });
        pause
    }

    /// It ran.
    pub(super) fn forget(&mut self, id: &TaskId) {
        self.0.remove(id);
    }

    /// Those that are left alone now.
    pub(super) fn resting(&self, now: Duration) -> Vec<TaskId> {
        let resting = self.0.iter().filter(|(_, rest)| rest.until > now);
        resting.map(|(id, _)| id.clone()).collect()
    }
}
