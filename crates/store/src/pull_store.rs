//! Pull requests of repositories that have no forge but us: records, reviews, checks.

use async_trait::async_trait;
use codespar_protocol::{
    Check, CommitId, PullRequest, PullRequestState, Review, ReviewComment, Verdict,
};
use jiff::Timestamp;

use crate::StoreError;

/// What a pull request starts from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPull {
    /// The branch with the changes.
    pub head: String,
    /// The last commit of that branch.
    pub head_commit: CommitId,
    /// The branch they are for.
    pub base: String,
    /// One line.
    pub title: String,
    pub body: String,
    /// Not ready to be merged.
    pub draft: bool,
    /// Who opens it.
    pub author: String,
    /// Numbers up to this one are taken, though the store does not know by whom.
    pub above: u64,
}

/// A change to a pull request. `None` leaves a field as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PullChange {
    /// Where it is in its life. What is merged stays merged.
    pub state: Option<PullRequestState>,
    /// One line.
    pub title: Option<String>,
    pub body: Option<String>,
    /// Not ready to be merged.
    pub draft: Option<bool>,
    /// The last commit of its branch.
    pub head_commit: Option<CommitId>,
    /// The commit its merge made.
    pub merge_commit: Option<CommitId>,
}

/// What a review starts from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPullReview {
    /// What it is known by.
    pub key: String,
    pub author: String,
    /// In one word.
    pub verdict: Verdict,
    /// In many.
    pub body: String,
    /// Line by line.
    pub comments: Vec<ReviewComment>,
    /// The commit it looked at.
    pub commit: CommitId,
}

/// A check of a commit, as it was last recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedCheck {
    pub check: Check,
    /// Since when.
    pub at: Timestamp,
}

/// Pull requests by repository. A repository is known by a text of the caller's; none has to be
/// announced.
#[async_trait]
pub trait PullStore: Send + Sync {
    /// Records a pull request under the repository's next number, or gives the open one that the
    /// head branch already has, as it is.
    async fn create_pull(&self, repository: &str, new: NewPull) -> Result<PullRequest, StoreError>;

    async fn pull(&self, repository: &str, number: u64) -> Result<PullRequest, StoreError>;

    /// Pull requests, latest first; all of them without a state.
    async fn pulls(
        &self,
        repository: &str,
        state: Option<PullRequestState>,
    ) -> Result<Vec<PullRequest>, StoreError>;

    /// Changes one. A merged one takes no other state, and none is opened again while its branch
    /// has another.
    async fn change_pull(
        &self,
        repository: &str,
        number: u64,
        change: PullChange,
    ) -> Result<PullRequest, StoreError>;

    /// Adds a review, or gives the one that has this key already.
    async fn add_review(
        &self,
        repository: &str,
        number: u64,
        new: NewPullReview,
    ) -> Result<Review, StoreError>;

    /// The reviews of a pull request, in order.
    async fn pull_reviews(&self, repository: &str, number: u64) -> Result<Vec<Review>, StoreError>;

    /// Records how a check of a commit stands, in place of what it was before under that name.
    async fn set_check(
        &self,
        repository: &str,
        commit: &CommitId,
        check: &Check,
    ) -> Result<(), StoreError>;

    /// The checks of a commit, by name.
    async fn checks(
        &self,
        repository: &str,
        commit: &CommitId,
    ) -> Result<Vec<RecordedCheck>, StoreError>;
}
