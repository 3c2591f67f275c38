//! Deciding that another runner is lost.
//!
//! The only measure is this process's own heartbeat: a runner out of sight is silent when we have
//! recorded so many heartbeats, about a second apart, and it has recorded none. No clock is read.
//! Time in which we could not record one ourselves (we were stopped, the machine slept, the
//! database was locked) counts for nobody.
//!
//! A process that can be seen on this machine needs no such guess. While it exists it keeps its
//! tasks, also while it is stopped or waits for the database: it holds the sessions of its agents
//! and the processes of its commands, so nobody could go on with them. When it is gone, its tasks
//! are free at once.

use std::collections::HashMap;

use codespar_store::{RunnerId, RunnerSeen};

use crate::vital::Presence;

/// So many of our heartbeats without one of its own: others go on with its agents and workflows.
pub(super) const SILENT: u32 = 10;
/// So many: its commands are called lost as well, and it is forgotten. They cannot be continued, so
/// they are given longer.
pub(super) const LOST: u32 = 60;

/// What is to be done about a runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// What can be continued is free.
    Silent(RunnerSeen),
    /// All it held is free.
    Lost(RunnerSeen),
}

/// What was seen of the other runners so far.
#[derive(Debug, Default)]
pub(super) struct Watch(HashMap<RunnerId, Seen>);

#[derive(Debug)]
struct Seen {
    beats: u64,
    silence: u32,
}

impl Watch {
    /// Looks at the others once, with a heartbeat of our own just recorded.
    pub(super) fn look(
        &mut self,
        others: &[RunnerSeen],
        presence: impl Fn(&RunnerId) -> Presence,
    ) -> Vec<Verdict> {
        self.0
            .retain(|id, _| others.iter().any(|other| other.id == *id));
        let judge = |other: &RunnerSeen| match presence(&other.id) {
            Presence::Dead => Some(Verdict::Lost(other.clone())),
            Presence::Running | Presence::Stopped => {
                self.0.remove(&other.id);
                None
            }
            Presence::Unknown => match self.silence_of(other) {
                LOST.. => Some(Verdict::Lost(other.clone())),
                SILENT.. if !other.is_silent => Some(Verdict::Silent(other.clone())),
                _ => None,
            },
        };
        others.iter().filter_map(judge).collect()
    }

    /// How many looks ago it showed its last sign of life.
    fn silence_of(&mut self, other: &RunnerSeen) -> u32 {
        let seen = self.0.entry(other.id.clone()).or_insert(Seen {
            beats: other.beats,
            silence: 0,
        });
        if seen.beats == other.beats {
            seen.silence = seen.silence.saturating_add(1);
        } else {
            *seen = Seen {
                beats: other.beats,
                silence: 0,
            };
        }
        seen.silence
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(beats: u64) -> RunnerSeen {
        RunnerSeen {
            id: RunnerId("other".to_owned()),
            beats,
            is_silent: false,
        }
    }

    /// So many looks at the same count.
    fn looks(watch: &mut Watch, count: u32, other: &RunnerSeen, at: Presence) -> Vec<Verdict> {
        let others = std::slice::from_ref(other);
        (0..count)
            .flat_map(|_| watch.look(others, |_| at))
            .collect()
    }

    #[test]
    fn a_runner_out_of_sight_is_silent_after_ten_heartbeats_and_lost_after_sixty() {
        let mut watch = Watch::default();
        let other = seen(7);
        assert_eq!(looks(&mut watch, SILENT - 1, &other, Presence::Unknown), []);
        let silent = looks(&mut watch, 1, &other, Presence::Unknown);
        assert_eq!(silent, [Verdict::Silent(other.clone())]);
        let marked = RunnerSeen {
            is_silent: true,
            ..other
        };
        let quiet = looks(&mut watch, LOST - SILENT - 1, &marked, Presence::Unknown);
        assert_eq!(quiet, []);
        let lost = looks(&mut watch, 1, &marked, Presence::Unknown);
        assert_eq!(lost, [Verdict::Lost(marked)]);
    }

    #[test]
    fn any_sign_of_life_starts_the_count_again() {
        let mut watch = Watch::default();
        for beats in 0..50 {
            let few = looks(&mut watch, SILENT - 1, &seen(beats), Presence::Unknown);
            assert_eq!(few, []);
        }
    }

    #[test]
    fn a_process_that_exists_is_never_silent_however_late_its_heartbeat() {
        let mut watch = Watch::default();
        for at in [Presence::Running, Presence::Stopped] {
            assert_eq!(looks(&mut watch, 10 * LOST, &seen(1), at), []);
        }
    }

    #[test]
    fn a_dead_process_is_lost_at_once() {
        let mut watch = Watch::default();
        let lost = looks(&mut watch, 1, &seen(1), Presence::Dead);
        assert_eq!(lost, [Verdict::Lost(seen(1))]);
    }
}
