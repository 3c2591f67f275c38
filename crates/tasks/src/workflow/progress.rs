//! How far a workflow is: which task each step became. It is recorded as a step of the workflow,
//! which only its runner writes, before a step's task is made: a crash never makes one twice.

use std::collections::BTreeMap;

use codespar_protocol::{SessionId, StepWork, TaskId, TaskType, WorkflowStep};
use serde::{Deserialize, Serialize};

use crate::{
    ledger::{LedgerError, StepLedger},
    runner::Control,
};

const STEP: &str = "progress";

/// The task that a step became, last. A retry replaces it with fresh names; the tasks of earlier
/// tries stay in the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Made {
    pub(super) task_id: TaskId,
    /// The conversation of its agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) agent_session: Option<SessionId>,
    /// How often it was made again.
    pub(super) retries: u32,
}

impl Made {
    /// Fresh names for a step.
    pub(super) fn fresh(step: &WorkflowStep, retries: u32) -> Self {
        let (kind, agent_session) = match step.work {
            StepWork::Command { .. } => (TaskType::LocalBash, None),
            StepWork::Prompt { .. } => (TaskType::LocalAgent, Some(SessionId::new())),
        };
        Self {
            task_id: TaskId::new(kind),
            agent_session,
            retries,
        }
    }
}

/// Steps by their ids.
pub(super) struct Progress {
    ledger: StepLedger,
    steps: BTreeMap<String, Made>,
}

impl Progress {
    /// What earlier runners recorded.
    pub(super) async fn read(control: &Control) -> Result<Self, LedgerError> {
        let ledger = StepLedger::open(control).await?;
        let steps = ledger.known(STEP)?.unwrap_or_default();
        Ok(Self { ledger, steps })
    }

    /// On record, in place of what was there before.
    pub(super) async fn record(&self) -> Result<(), LedgerError> {
        self.ledger.record(STEP, &self.steps).await
    }

    pub(super) fn of(&self, step: &str) -> Option<&Made> {
        self.steps.get(step)
    }

    /// In memory only; `record` writes all steps at once.
    pub(super) fn set(&mut self, step: &str, made: Made) {
        self.steps.insert(step.to_owned(), made);
    }
}
