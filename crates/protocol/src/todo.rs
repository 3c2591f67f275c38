//! The agent's own list of steps, shown live.

use serde::{Deserialize, Serialize};

/// How far a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// Not begun.
    Pending,
    InProgress,
    Completed,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Todo {
    /// What is to be done.
    pub content: String,
    /// How far it is.
    pub status: TodoStatus,
    /// The same in the present continuous, for display while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_form: Option<String>,
}
