//! Drafts made ready, and pull requests closed without a merge.
//!
//! Called by `runtime/operations/pulls.rs`, for the command line and the API. Whether the caller
//! may do it is decided above, and by the forge.

use codespar_forge::{Draft, Forge, ForgeError, PullRequestChange};
use codespar_protocol::{PullRequest, PullRequestState};

use crate::merge::{bullets, check_objections, is_own_branch};

/// Why a pull request stays as it is.
#[derive(Debug, thiserror::Error)]
pub enum LifecycleError {
    #[error("#{number} is {state}")]
    NotOpen {
        number: u64,
        state: PullRequestState,
    },
    #[error("#{0} is not a draft")]
    NoDraft(u64),
    #[error("#{number} stays a draft (--anyway makes it ready all the same):\n{}", bullets(.reasons))]
    Checks { number: u64, reasons: Vec<String> },
    #[error(transparent)]
    Forge(#[from] ForgeError),
}

/// Whether checks that failed, or are not over, keep a draft a draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckRule {
    MustPass,
    Ignored,
}

/// A pull request that was closed, and what became of its branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    pub pull: PullRequest,
    pub deleted_branch: Option<String>,
    /// The branch that could not be deleted, and why.
    pub kept_branch: Option<String>,
}

/// Turns a draft into a pull request that can be merged. A draft of ours is usually one because
/// tests failed. So the checks of its head are read first, unless `rule` says otherwise. They can
/// change between that and the call; a merge reads them again.
pub async fn make_ready(
    forge: &dyn Forge,
    number: u64,
    rule: CheckRule,
) -> Result<PullRequest, LifecycleError> {
    let pull = open(forge, number).await?;
    if !pull.draft {
        return Err(LifecycleError::NoDraft(number));
    }
    if rule == CheckRule::MustPass {
        let checks = forge.checks(&pull.head_commit).await?;
        let mut reasons = check_objections(&checks);
        reasons.extend(
            checks
                .unknown
                .map(|why| format!("its checks are unknown ({why})")),
        );
        if !reasons.is_empty() {
            return Err(LifecycleError::Checks { number, reasons });
        }
    }
    let change = PullRequestChange {
        draft: Some(Draft::Ready),
        ..PullRequestChange::default()
    };
    Ok(forge.change_pull_request(number, &change).await?)
}

/// Closes a pull request. Our own branch goes with it, unless something was pushed to it that the
/// pull request does not know of. Closing comes first: if the process ends after it, a branch is
/// left over, which harms nobody. A branch that cannot be deleted is told in the result and is no
/// error, since the pull request is closed by then.
pub async fn close(forge: &dyn Forge, number: u64) -> Result<Closed, LifecycleError> {
    let pull = open(forge, number).await?;
    let is_ours = is_own_branch(forge, &pull).await?;
    let change = PullRequestChange {
        state: Some(PullRequestState::Closed),
        ..PullRequestChange::default()
    };
    let mut closed = Closed {
        pull: forge.change_pull_request(number, &change).await?,
        deleted_branch: None,
        kept_branch: None,
    };
    if is_ours {
        match forge.delete_branch(&pull.head).await {
            Ok(()) => closed.deleted_branch = Some(pull.head),
            Err(error) => closed.kept_branch = Some(format!("{}: {error}", pull.head)),
        }
    }
    Ok(closed)
}

/// The pull request if it is open. One that is merged or closed is refused with its state, also
/// when the request is repeated.
async fn open(forge: &dyn Forge, number: u64) -> Result<PullRequest, LifecycleError> {
    let pull = forge.pull_request(number).await?;
    match pull.state {
        PullRequestState::Open => Ok(pull),
        state => Err(LifecycleError::NotOpen { number, state }),
    }
}
