//! How far a workflow is: which task each step became. It stands in the workflow's metadata
//! before a step's task is made, so that a crash never makes one twice.

use std::collections::BTreeMap;

use codespar_protocol::{SessionId, TaskId, TaskType};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Step, Work};

const KEY: &str = "steps";

/// The task that a step became, last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Made {
    /// Its task.
    pub(super) task_id: TaskId,
    /// The conversation of its agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) agent_session: Option<SessionId>,
    /// How often it was made again.
    pub(super) retries: u32,
}

impl Made {
    /// Fresh names for a step.
    pub(super) fn fresh(step: &Step, retries: u32) -> Self {
        let (kind, agent_session) = match step.work {
            Work::Command { .. } => (TaskType::LocalBash, None),
            Work::Prompt { .. } => (TaskType::LocalAgent, Some(SessionId::new())),
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
    /// What earlier runners wrote.
    pub(super) fn read(metadata: &Map<String, Value>) -> Result<Self, String> {
        match metadata.get(KEY) {
            None => Ok(Self::default()),
            Some(value) => serde_json::from_value(value.clone())
                .map(Self)
                .map_err(|error| format!("metadata.{KEY} is damaged: {error}")),
        }
    }

    /// As metadata.
    pub(super) fn to_metadata(&self) -> Map<String, Value> {
        Map::from_iter([(KEY.to_owned(), json!(self.0))])
    }

    pub(super) fn of(&self, step: &str) -> Option<&Made> {
        self.0.get(step)
    }

    pub(super) fn set(&mut self, step: &str, made: Made) {
        self.0.insert(step.to_owned(), made);
    }
}
