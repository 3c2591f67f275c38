//! How a run ends: what becomes of the answer, of an error, of a limit and of an interruption.

use std::time::Instant;

use codespar_model::{Budget, ModelError};
use codespar_protocol::{Cost, Outcome, PermissionDenial, ReachedLimit, RunResult, Usage};

use crate::{Agent, AgentError, TreeShare, limits::Reached, stop::Stop, tally::Tally};

/// How a run comes to its end.
pub(crate) enum Ending {
    Answer(String),
    Limit(Reached),
    Failed(String),
    Interrupted,
    HandedOver,
}

impl Agent {
    pub(crate) async fn conclude(
        &mut self,
        ending: Result<Ending, AgentError>,
        tally: Tally,
        started: Instant,
        stop: &Stop,
    ) -> RunResult {
        let ending = match ending {
            Err(AgentError::HandedOver) => Ok(Ending::HandedOver),
            Err(error) if error.is_interrupt() => Ok(Ending::Interrupted),
            other => other,
        };
        let ending = match ending {
            Ok(Ending::Interrupted) if self.hand_over.now.is_cancelled() => Ok(Ending::HandedOver),
            other => other,
        };
        self.is_handed_over = matches!(ending, Ok(Ending::HandedOver));
        self.is_without_record =
            matches!(&ending, Err(AgentError::Store(error)) if error.is_passing());
        let ending = match (ending, stop.out_of_time()) {
            (Ok(Ending::Interrupted), Some(message)) => Ok(Ending::Limit(Reached {
                limit: ReachedLimit::WallTime,
                outcome: Outcome::ErrorDuringExecution,
                message,
            })),
            (ending, _) => ending,
        };
        let interrupted = matches!(ending, Ok(Ending::Interrupted));
        let limit = match &ending {
            Ok(Ending::Limit(reached)) => Some(reached.limit),
            Err(AgentError::Model(ModelError::BudgetExceeded { .. })) => Some(ReachedLimit::Budget),
            _ => None,
        };
        let (outcome, result) = match ending {
            Ok(Ending::Answer(text)) => (Outcome::Success, text),
            Ok(Ending::Limit(reached)) => (reached.outcome, reached.message),
            Ok(Ending::Failed(message)) => (Outcome::ErrorDuringExecution, message),
            Ok(Ending::Interrupted) => {
                // A failure here changes nothing for the user: the run is over either way, and
                // what is on record is whole without these words.
                let _ = self.say_for_the_user(self.interrupted_note).await;
                (Outcome::ErrorDuringExecution, "interrupted".to_owned())
            }
            Ok(Ending::HandedOver) => (
                Outcome::ErrorDuringExecution,
                AgentError::HandedOver.to_string(),
            ),
            Err(AgentError::Model(ModelError::BudgetExceeded { message })) => {
                (Outcome::ErrorMaxBudgetUsd, message)
            }
            Err(error) => (Outcome::ErrorDuringExecution, error.to_string()),
        };
        let by_model = self.counted_budget().since(&tally.account_before);
        let (mut usage, mut cost) = (Usage::default(), Cost::default());
        for (_, model_usage, model_cost) in &by_model {
            usage += *model_usage;
            cost += *model_cost;
        }
        RunResult {
            session_id: self.session(),
            outcome,
            result: self.parts.redactor.redact(&result).into_owned(),
            interrupted,
            limit,
            stop_reason: tally.stop_reason.clone(),
            num_turns: tally.turns,
            tool_uses: tally.tool_uses,
            duration_ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
            duration_api_ms: u64::try_from(tally.waiting.as_millis()).unwrap_or(u64::MAX),
            usage,
            cost,
            by_model,
            permission_denials: self.denials(tally),
        }
    }

    /// What the run's result tells the sums of: for the agent at the top of a tree, with all that
    /// it started.
    pub(crate) fn counted_budget(&self) -> &Budget {
        match &self.parts.limits.tree {
            Some(TreeShare::Root(tree)) => tree.budget(),
            _ => &self.budget,
        }
    }

    /// Calls that were not allowed; for the agent at the top of a tree, with those of all it
    /// started.
    fn denials(&self, tally: Tally) -> Vec<PermissionDenial> {
        match &self.parts.limits.tree {
            Some(TreeShare::Root(tree)) => tree.denials_since(tally.denied_before),
            _ => tally.denials,
        }
    }
}
