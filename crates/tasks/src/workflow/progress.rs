//! How far a workflow is: which task each step became. It is recorded as a step of the workflow,
//! which only its runner writes, before a step's task is made: a crash never makes one twice.

use std::collections::BTreeMap;

use codespar_protocol::{SessionId, StepWork, TaskId, TaskType, WorkflowStep};
use codespar_store::{StoreError, TaskStore};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::runner::Control;

const STEP: &str = "progress";

/// The task that a step became, last.
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
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Progress(BTreeMap<String, Made>);

impl Progress {
    /// What earlier runners recorded.
    pub(super) async fn read(store: &dyn TaskStore, workflow: &TaskId) -> Result<Self, String> {
        let steps = store.steps(workflow).await;
        let steps = steps.map_err(|error| format!("its progress cannot be read: {error}"))?;
        match steps.into_iter().find(|(step, _)| step == STEP) {
            None => Ok(Self::default()),
            Some((_, value)) => serde_json::from_value(value)
                .map(Self)
                .map_err(|error| format!("the record of its progress is damaged: {error}")),
        }
    }

    /// On record, in place of what was there before.
    pub(super) async fn record(&self, control: &Control) -> Result<(), StoreError> {
        let (id, epoch) = (&control.record.task_id, control.epoch);
        control
            .store
            .record_step(id, epoch, STEP, &json!(self.0))
            .await
    }

    pub(super) fn of(&self, step: &str) -> Option<&Made> {
        self.0.get(step)
    }

    pub(super) fn set(&mut self, step: &str, made: Made) {
        self.0.insert(step.to_owned(), made);
    }
}
