//! Working trees of agents: what is not committed, kept so that another host can go on with it.

use async_trait::async_trait;
use codespar_protocol::TaskId;

use crate::{StoreError, TaskLease};

/// The files of an agent's working tree after a step. All names are those of git objects, in full.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptTree {
    /// The commit that the work began from, which other hosts have or can fetch.
    pub base: String,
    /// The commit that is checked out: `base`, or one that the agent made.
    pub head: String,
    /// The tree of all files that are not ignored.
    pub tree: String,
    pub content: TreeContent,
}

/// Where the content of the files is that differ from `base`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TreeContent {
    /// A git pack of what a repository with `base` lacks.
    Pack(Vec<u8>),
    /// On the host alone that has the tree, for this reason.
    Missing(String),
}

/// One tree for each task, replaced with every step that changed files. It goes with its task.
///
/// Nothing is kept where all processes are on one machine: the tree itself is there
/// (`Database::is_shared_between_hosts`). That is for callers to see to.
#[async_trait]
pub trait TreeStore: Send + Sync {
    /// Refused with `StoreError::LeaseLost` when another runner has taken the task over. Holds up
    /// nobody who works on other tasks, however large the pack is.
    async fn keep_tree(&self, lease: &TaskLease, tree: &KeptTree) -> Result<(), StoreError>;

    /// The latest, of whichever attempt.
    async fn kept_tree(&self, task: &TaskId) -> Result<Option<KeptTree>, StoreError>;

    /// Nobody goes on with it.
    async fn forget_tree(&self, task: &TaskId) -> Result<(), StoreError>;
}
