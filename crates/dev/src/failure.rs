//! Why a run came to nothing.
//!
//! The distinction matters for what happens next. A failure that the model's answers led to is
//! recorded, so that whoever resumes the run asks anew (`is_by_answers`). `Stopped` ends the
//! attempt, and the task only if somebody asked for that: where a process leaves, another one goes
//! on. With all others the task has failed, and the text is what the user sees.

use codespar_agent::{AskError, ModelError};
use codespar_change::TreeError;
use codespar_pulls::ForgeError;
use codespar_tasks::{LedgerError, StoreError};

/// Why the dev agent published nothing, or did not get further.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error(transparent)]
    Forge(#[from] ForgeError),
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The answer has no changes in it.
    #[error("no changes were generated; the model said:\n\n{0}")]
    NoChanges(String),
    /// The change does not fit the files.
    #[error("the change could not be applied, and nothing was published:\n\n{0}")]
    NotApplied(String),
    /// The tests fail and the settings say to publish nothing then.
    #[error(
        "the tests fail with the change, and nothing was published (`verify.onFailure`):\n\n{0}"
    )]
    NotVerified(String),
    /// The limit on money.
    #[error("{0}")]
    Budget(String),
    /// The limit on wall time.
    #[error("{0}")]
    OutOfTime(String),
    /// Someone stopped it.
    #[error("stopped")]
    Stopped,
    /// The agent that was to write the change ended without one.
    #[error("{0}")]
    AgentFailed(String),
    /// The caller's mistake. It can be put right and tried again: a repository that is not there, a
    /// pull request that is closed.
    #[error("{0}")]
    Refused(String),
    /// Something of our own is not as it must be. A record that cannot be read, or a failing file
    /// system. A repetition may well fail again.
    #[error("{0}")]
    Broken(String),
}

impl From<AskError> for Failure {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Model(error) => Self::Model(error),
            AskError::Budget(message) => Self::Budget(message),
            AskError::OutOfTime(message) => Self::OutOfTime(message),
            AskError::Stopped => Self::Stopped,
            AskError::Refused(message) => Self::Refused(message),
        }
    }
}

impl From<TreeError> for Failure {
    fn from(error: TreeError) -> Self {
        match error {
            TreeError::Stopped => Self::Stopped,
            TreeError::Refused(message) => Self::NotApplied(message),
            TreeError::Broken(message) => Self::Broken(message),
        }
    }
}

impl From<LedgerError> for Failure {
    fn from(error: LedgerError) -> Self {
        match error {
            LedgerError::Store(error) => Self::Store(error),
            damaged @ LedgerError::Damaged { .. } => Self::Broken(damaged.to_string()),
        }
    }
}

impl Failure {
    /// Whether what the model answered led to it: the same answers would lead to it again.
    pub(crate) fn is_by_answers(&self) -> bool {
        matches!(
            self,
            Self::NoChanges(_) | Self::NotApplied(_) | Self::NotVerified(_)
        )
    }
}
