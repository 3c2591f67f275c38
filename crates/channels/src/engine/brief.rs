//! What was decided to be done for a message. It is on record before it is begun, so a restart does
//! what was decided and does not decide again.

use std::path::PathBuf;

use codespar_protocol::{TaskId, Usd};
use serde::{Deserialize, Serialize};

/// Work that is a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Brief {
    Dev(DevBrief),
    /// The base of a pull request is merged into its branch.
    Resolve(DevBrief),
    /// A run that failed or was stopped, once more.
    Retry {
        task: TaskId,
        repository: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DevBrief {
    pub(crate) instruction: String,
    /// By the name that people use.
    pub(crate) repository: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) base: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pull_request: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) images: Vec<PathBuf>,
    pub(crate) requested_by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) max_budget: Option<Usd>,
    /// The task that must have completed before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) after: Option<TaskId>,
}

impl Brief {
    /// Each brief has one: budgets, turns and rights are those of a repository.
    pub(crate) fn repository(&self) -> &str {
        match self {
            Self::Dev(brief) | Self::Resolve(brief) => &brief.repository,
            Self::Retry { repository, .. } => repository,
        }
    }
}
