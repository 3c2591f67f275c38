//! Tasks that were put back because they cannot run yet: each is left alone for a while, longer
//! every time.

use std::{collections::HashMap, time::Duration};

use codespar_protocol::TaskId;

const FIRST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(5);

/// By this process's own clock; other processes try for themselves.
#[derive(Debug, Default)]
pub(super) struct Backoff(HashMap<TaskId, Rest>);

#[derive(Debug)]
struct Rest {
    pause: Duration,
    until: Duration,
}

impl Backoff {
    /// It was put back once more; gives how long it rests.
    pub(super) fn put_back(&mut self, id: TaskId, now: Duration) -> Duration {
        let pause = match self.0.get(&id) {
            Some(rest) => (rest.pause * 2).min(LONGEST),
            None => FIRST,
        };
        let until = now + pause;
        self.0.insert(id, Rest { pause, until });
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
