//! By whose authority a task runs: who made it, for which project, and what it may do.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{SessionId, Usd};

/// The authority of a task, fixed when it is made. A process that runs the task may narrow it,
/// never widen it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Authority {
    /// The session that made the task; none for one made by `codespar task create`.
    pub session: Option<SessionId>,
    /// The session at the top. Agents see the tasks of their own tree only, and the budget of
    /// this tree pays, whoever runs the task.
    pub tree: SessionId,
    /// The project the task belongs to. Only processes of this project, and workers, run it.
    pub project_root: PathBuf,
    /// The permission mode of whoever made it, by name (`default`, `plan`, …).
    pub mode: String,
    /// The permission rules in force when it was made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleText>,
    /// Directories of the workspace besides the root.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra_dirs: Vec<PathBuf>,
    /// The most that the whole tree may cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_budget_usd: Option<Usd>,
    /// The repository by a name that is the same on every host: `github.com/acme/api`. Limits and
    /// turns go by it, or by the project root where it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// Where that repository can be cloned from, without a login. A worker that does not have the
    /// project root clones it with its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// Who asked for the task: the requester of a dev run, else the account of the user on the
    /// machine where it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The span that made it, as `traceparent` of W3C's Trace Context, where traces are collected.
    /// Those of the task are below it, whichever process runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
}

/// A permission rule as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleText {
    pub list: RuleList,
    /// The rule: `Bash(git log *)`.
    pub rule: String,
    /// Where it comes from, for reasons: `.codespar/settings.json`.
    pub source: String,
    /// Where relative paths in it start; the project root when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleList {
    Allow,
    Ask,
    Deny,
}
