//! Limits of a run. Turns and time are checked before every model call; money is the budget's.

use std::{sync::Arc, time::Duration};

use codespar_model::Budget;
use codespar_protocol::{Outcome, ReachedLimit, Usd};

use crate::TreeShare;

/// What a run may use up. `None` means no limit.
#[derive(Debug, Clone, Default)]
pub struct RunLimits {
    /// Model calls. Every request counts, also one that is sent again because the conversation had
    /// to be shortened.
    pub max_turns: Option<u32>,
    /// Model calls of the same run that processes before this one made. A task that is taken over
    /// goes on counting instead of starting anew.
    pub turns_before: u32,
    /// Money.
    pub max_budget: Option<Usd>,
    /// Wall time.
    pub max_wall: Option<Duration>,
    /// Shared with the agents above and below.
    pub tree: Option<TreeShare>,
}

/// A limit that has been reached, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reached {
    pub(crate) limit: ReachedLimit,
    pub(crate) outcome: Outcome,
    pub(crate) message: String,
}

impl RunLimits {
    /// The budget of an agent with these limits: its own, within that of its tree.
    pub(crate) fn budget(&self) -> Arc<Budget> {
        let own = Budget::new(self.max_budget, None);
        Arc::new(match &self.tree {
            Some(tree) => own.within(tree.tree().budget().clone()),
            None => own,
        })
    }

    /// The limit that forbids another turn after so many, if one does.
    pub(crate) fn reached(&self, turns: u32) -> Option<Reached> {
        let turns = turns.saturating_add(self.turns_before);
        let max = self.max_turns.filter(|max| turns >= *max)?;
        Some(Reached {
            limit: ReachedLimit::Turns,
            outcome: Outcome::ErrorMaxTurns,
            message: format!("stopped after {max} turns (--max-turns)"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_of_earlier_processes_count() {
        let limits = RunLimits {
            max_turns: Some(5),
            turns_before: 3,
            ..RunLimits::default()
        };
        assert_eq!(limits.reached(1), None);
        let reached = limits.reached(2).unwrap();
        assert_eq!(reached.outcome, Outcome::ErrorMaxTurns);
    }

    #[test]
    fn the_last_turn_allowed_is_made_and_the_next_is_not() {
        let limits = RunLimits {
            max_turns: Some(2),
            ..RunLimits::default()
        };
        assert_eq!(limits.reached(1), None);
        let reached = limits.reached(2).unwrap();
        assert_eq!(reached.outcome, Outcome::ErrorMaxTurns);
    }
}
