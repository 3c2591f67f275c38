//! Limits: how many tasks run at once, in all processes together.

use std::{fmt, str::FromStr};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::StoreError;

/// What the tasks that a limit counts have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitScope {
    /// Nothing. Its name is empty.
    All,
    /// The repository: the name that the authority has, else the project root. An empty name is for
    /// each repository that has no limit of its own.
    Repository,
    /// Who asked for them; tasks of which that is not known are not limited. An empty name is for
    /// each user that has no limit of their own.
    User,
    /// The labels that they require, exactly: `gpu,linux`.
    Labels,
}

impl LimitScope {
    pub const ALL: [Self; 4] = [Self::All, Self::Repository, Self::User, Self::Labels];

    /// The word in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Repository => "repository",
            Self::User => "user",
            Self::Labels => "labels",
        }
    }
}

impl fmt::Display for LimitScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text names no scope of limits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a scope of limits; there are all, repository, user, labels")]
pub struct ParseScopeError(String);

impl FromStr for LimitScope {
    type Err = ParseScopeError;
    fn from_str(text: &str) -> Result<Self, ParseScopeError> {
        let found = Self::ALL.into_iter().find(|scope| scope.as_str() == text);
        found.ok_or_else(|| ParseScopeError(text.to_owned()))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    pub scope: LimitScope,
    /// Which repository, user or labels; see [`LimitScope`].
    pub name: String,
    /// How many run at once; 0 admits none.
    pub limit: u32,
}

/// Limits of what runs at once, checked where tasks are claimed (`LeaseStore::claim_tasks`).
///
/// They count the running tasks that somebody asked for. What such a task makes is admitted with it
/// (a workflow would wait for its own steps otherwise), and so is what a process reserves for
/// itself or begins itself. Taking a task over from a lost runner admits nothing: it ran already. A
/// lower limit stops nothing that runs.
#[async_trait]
pub trait LimitStore: Send + Sync {
    /// By scope and name.
    async fn limits(&self) -> Result<Vec<Limit>, StoreError>;

    /// `None` removes the limit. Claims that begin after this call obey it.
    async fn set_limit(
        &self,
        scope: LimitScope,
        name: &str,
        limit: Option<u32>,
    ) -> Result<(), StoreError>;
}
