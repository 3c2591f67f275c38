//! What happens to the servers of a trial, when, and what of it has happened.

use std::time::Duration;

use serde::Serialize;

/// Workers must live through all of it: the database is waited for, the engine only hands out work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CentreEvent {
    RestartDatabase,
    StopEngine,
    StartEngine,
}

/// What is to come, and what was.
#[derive(Debug)]
pub(super) struct CentreEvents {
    ahead: Vec<(Duration, CentreEvent)>,
    done: CentreCounts,
}

/// How often it happened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct CentreCounts {
    pub(super) database_restarts: u32,
    pub(super) engine_stops: u32,
}

impl CentreEvents {
    /// Restarts of the database are spread over the time in which workers are disturbed; the engine
    /// is stopped after a quarter of it, if for any time at all.
    pub(super) fn plan(within: Duration, database_restarts: u32, engine_down: Duration) -> Self {
        let restarts = (1..=database_restarts)
            .map(|number| within * number / (database_restarts + 1))
            .map(|at| (at, CentreEvent::RestartDatabase));
        let mut ahead: Vec<(Duration, CentreEvent)> = restarts.collect();
        if !engine_down.is_zero() {
            let down = within / 4;
            ahead.push((down, CentreEvent::StopEngine));
            ahead.push((down + engine_down, CentreEvent::StartEngine));
        }
        ahead.sort_by_key(|(at, _)| *at);
        Self {
            ahead,
            done: CentreCounts::default(),
        }
    }

    /// The next that is due, which is counted as done.
    pub(super) fn take_due(&mut self, elapsed: Duration) -> Option<CentreEvent> {
        let (_, event) = *self.ahead.first().filter(|(at, _)| *at <= elapsed)?;
        self.ahead.remove(0);
        match event {
            CentreEvent::RestartDatabase => self.done.database_restarts += 1,
            CentreEvent::StopEngine => self.done.engine_stops += 1,
            CentreEvent::StartEngine => {}
        }
        Some(event)
    }

    pub(super) fn done(&self) -> CentreCounts {
        self.done
    }

    /// For which the work did not last long enough.
    pub(super) fn missed(&self) -> impl Iterator<Item = CentreEvent> {
        self.ahead.iter().map(|(_, event)| *event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use CentreEvent::{RestartDatabase, StartEngine, StopEngine};

    #[test]
    fn events_come_in_the_order_of_their_times_and_what_is_left_is_known() {
        let seconds = Duration::from_secs;
        let mut events = CentreEvents::plan(seconds(40), 1, seconds(4));
        assert_eq!(events.take_due(seconds(9)), None);
        let two: Vec<_> = std::iter::from_fn(|| events.take_due(seconds(15))).collect();
        assert_eq!(two, [StopEngine, StartEngine]);
        let counts = CentreCounts {
            database_restarts: 0,
            engine_stops: 1,
        };
        assert_eq!(events.done(), counts);
        assert_eq!(events.missed().collect::<Vec<_>>(), [RestartDatabase]);
    }
}
