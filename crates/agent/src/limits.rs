//! Limits of a run, checked before every model call.

use std::time::{Duration, Instant};

use codespar_protocol::{Outcome, Usd};

use crate::{TreeShare, tally::Tally};

/// What a run may use up. `None` means no limit.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    /// Model calls.
    pub max_turns: Option<u32>,
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
    pub(crate) outcome: Outcome,
    pub(crate) message: String,
}

impl Limits {
    /// The limit that forbids another call, if one does. `next_call` is the least it can cost.
    pub(crate) fn reached(
        &self,
        tally: &Tally,
        started: Instant,
        next_call: Usd,
    ) -> Option<Reached> {
        if let Some(max) = self.max_turns
            && tally.turns >= max
        {
            let message = format!("stopped after {max} turns (--max-turns)");
            return Some(Reached {
                outcome: Outcome::ErrorMaxTurns,
                message,
            });
        }
        if let Some(max) = self.max_budget {
            let spent = tally.cost.at_least();
            let mut least = spent;
            least += next_call;
            if spent >= max || least > max {
                let message = format!(
                    "stopped at {spent} of {max} (--max-budget-usd): the next call would pass it"
                );
                return Some(Reached {
                    outcome: Outcome::ErrorMaxBudgetUsd,
                    message,
                });
            }
        }
        if let Some(message) = self
            .tree
            .as_ref()
            .and_then(|tree| tree.budget().reached(next_call))
        {
            return Some(Reached {
                outcome: Outcome::ErrorMaxBudgetUsd,
                message,
            });
        }
        if let Some(max) = self.max_wall
            && started.elapsed() >= max
        {
            let message = format!("stopped after {} s of wall time", max.as_secs());
            return Some(Reached {
                outcome: Outcome::ErrorDuringExecution,
                message,
            });
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use codespar_protocol::{Cost, Usage};

    use super::*;

    fn spent(dollars: f64) -> Tally {
        let mut tally = Tally::default();
        tally.add(
            "m",
            Usage::default(),
            Cost::Known(Usd::from_dollars(dollars).unwrap()),
        );
        tally.turns = 1;
        tally
    }

    #[test]
    fn a_call_that_would_pass_the_budget_is_not_made() {
        let limits = Limits {
            max_budget: Usd::from_dollars(1.0),
            ..Limits::default()
        };
        let next = Usd::from_dollars(0.2).unwrap();
        assert_eq!(limits.reached(&spent(0.8), Instant::now(), next), None);
        let reached = limits.reached(&spent(0.81), Instant::now(), next).unwrap();
        assert_eq!(reached.outcome, Outcome::ErrorMaxBudgetUsd);
    }

    #[test]
    fn the_last_turn_allowed_is_made_and_the_next_is_not() {
        let limits = Limits {
            max_turns: Some(2),
            ..Limits::default()
        };
        let mut tally = spent(0.0);
        assert_eq!(limits.reached(&tally, Instant::now(), Usd::ZERO), None);
        tally.turns = 2;
        let reached = limits.reached(&tally, Instant::now(), Usd::ZERO).unwrap();
        assert_eq!(reached.outcome, Outcome::ErrorMaxTurns);
    }
}
