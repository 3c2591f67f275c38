//! When the screen is painted: not at every change, and not at all without one.

use std::time::{Duration, Instant};

use codespar_protocol::Event;

use crate::handle::Message;

/// Between two frames.
const FRAME: Duration = Duration::from_millis(16);
/// Between two frames that only show more of what streams in, or that time has passed. Nobody reads
/// faster, and each frame costs bytes besides its text.
const STREAMED: Duration = Duration::from_millis(96);

/// How soon a change has to be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Urgency {
    /// It is one of many.
    Streamed,
    /// Someone waits for it.
    Next,
}

impl Urgency {
    pub(crate) fn of(message: &Message) -> Self {
        match message {
            Message::Event(
                Event::TextDelta { .. } | Event::ThinkingDelta { .. } | Event::Subagent { .. },
            ) => Self::Streamed,
            _ => Self::Next,
        }
    }

    fn wait(self) -> Duration {
        match self {
            Self::Streamed => STREAMED,
            Self::Next => FRAME,
        }
    }
}

/// What was painted when, and what was not yet.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    painted: Option<Instant>,
    change: Option<Urgency>,
}

impl Pace {
    pub(crate) fn changed(&mut self, urgency: Urgency) {
        self.change = self.change.max(Some(urgency));
    }

    pub(crate) fn painted(&mut self, now: Instant) {
        self.painted = Some(now);
        self.change = None;
    }

    /// How long until the next frame; `None` without a change.
    pub(crate) fn left(&self, now: Instant) -> Option<Duration> {
        let change = self.change?;
        let due = self.painted.map(|at| at + change.wait());
        Some(due.map_or(Duration::ZERO, |due| due.saturating_duration_since(now)))
    }

    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.left(now) == Some(Duration::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_streams_in_waits_longer_than_what_was_typed() {
        let begin = Instant::now();
        let mut pace = Pace::default();
        assert_eq!(pace.left(begin), None);
        pace.changed(Urgency::Streamed);
        assert!(pace.is_due(begin));
        pace.painted(begin);
        assert_eq!(pace.left(begin), None);
        pace.changed(Urgency::Streamed);
        assert_eq!(pace.left(begin), Some(STREAMED));
        pace.changed(Urgency::Next);
        pace.changed(Urgency::Streamed);
        assert_eq!(pace.left(begin), Some(FRAME));
        assert!(pace.is_due(begin + FRAME));
    }
}
