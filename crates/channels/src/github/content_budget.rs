//! GitHub's limits on content: 80 comments, edits and reactions in a minute, 500 in an hour. They
//! are not in any header, and breaking them shuts an account out.

use std::{collections::VecDeque, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;

/// Somewhat less than GitHub allows: other programs may use the same account.
const LIMITS: [(Duration, usize); 2] = [
    (Duration::from_secs(60), 70),
    (Duration::from_secs(3_600), 450),
];

/// What must be left in the hour for signs that nobody waits for.
const FOR_MESSAGES: usize = 100;

/// When content was made in the last hour.
#[derive(Default)]
pub(super) struct ContentBudget(Mutex<VecDeque<Instant>>);

/// How much something matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContentKind {
    Message,
    /// Left out when little is left.
    Sign,
}

impl ContentBudget {
    /// Counts one, or says how long to wait for it.
    pub(super) fn take(&self, kind: ContentKind) -> Result<(), Duration> {
        self.take_at(Instant::now(), kind)
    }

    fn take_at(&self, now: Instant, kind: ContentKind) -> Result<(), Duration> {
        let mut made = self.0.lock();
        let [(_, _), (longest, _)] = LIMITS;
        while made
            .front()
            .is_some_and(|at| now.duration_since(*at) >= longest)
        {
            made.pop_front();
        }
        for (span, most) in LIMITS {
            let most = match kind {
                ContentKind::Message => most,
                ContentKind::Sign => most.saturating_sub(FOR_MESSAGES.min(most / 4)),
            };
            // The one that has to leave the span before there is room.
            let Some(at) = made.len().checked_sub(most).and_then(|at| made.get(at)) else {
                continue;
            };
            let age = now.duration_since(*at);
            if age < span {
                return Err(span - age);
            }
        }
        made.push_back(now);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_waits_for_the_minute_and_a_flood_for_the_hour() {
        let budget = ContentBudget::default();
        let start = Instant::now();
        for _ in 0..70 {
            assert_eq!(budget.take_at(start, ContentKind::Message), Ok(()));
        }
        let wait = budget.take_at(start, ContentKind::Message);
        assert_eq!(wait, Err(Duration::from_secs(60)));
        let mut made = 70;
        // Slowly enough for the minute.
        for second in 60..1_800 {
            let now = start + Duration::from_secs(second);
            made += usize::from(budget.take_at(now, ContentKind::Message).is_ok());
        }
        assert_eq!(made, 450);
        let later = start + Duration::from_secs(3_600);
        assert_eq!(budget.take_at(later, ContentKind::Message), Ok(()));
    }

    #[test]
    fn signs_leave_room_for_messages() {
        let budget = ContentBudget::default();
        let now = Instant::now();
        while budget.take_at(now, ContentKind::Sign).is_ok() {}
        assert_eq!(budget.take_at(now, ContentKind::Message), Ok(()));
    }
}
