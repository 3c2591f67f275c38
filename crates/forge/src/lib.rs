//! Where repositories and their pull requests are kept: one trait, `Forge`, with local git and
//! GitHub behind it. This is the part that can write to the outside; it does not think.
//!
//! Two implementations: [`LocalForge`] works on a repository of this machine and keeps pull
//! requests in the store; [`GitHubForge`] uses the REST API. Code that uses a forge sees only the
//! trait.
//!
//! What always holds, for both:
//!
//! - Branches are created or moved forward from a known commit, never forced.
//! - A commit is atomic: all files of a change set, or none.
//! - A repeated call finds what an earlier one made: a commit by its key in the message, a pull
//!   request by its head branch, a review by its key, a merge by the head it merged. A caller that
//!   crashed between the call and its own record just calls again.
//! - A merge names the head it expects; if the head has moved, nothing is merged.
//!
//! Text and files are not searched for secrets here; that is the caller's duty.

mod error;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod github;
mod local;

pub use error::ForgeError;
pub use github::{
    AppFacts, GitHubAccess, GitHubApp, GitHubForge, GitHubSetup, HookDelivery, Patience,
    TokenRenewal, github_client,
};
pub use local::LocalForge;

use async_trait::async_trait;
use codespar_protocol::{
    ChangeSet, Check, CommitId, FileMode, MergeStrategy, Permission, PullRequest, PullRequestState,
    RepoPath, Review, ReviewComment, Verdict,
};

/// A file of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEntry {
    pub path: String,
    /// What kind of file.
    pub mode: FileMode,
    /// How long, where the forge says.
    pub size: Option<u64>,
}

/// A file at a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileAt {
    /// All of it.
    pub content: Vec<u8>,
    /// What kind.
    pub mode: FileMode,
}

/// Who makes a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    /// Their name.
    pub name: String,
    /// Their address.
    pub email: String,
}

/// A commit to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCommit {
    /// The branch it goes on; it is made when there is none.
    pub branch: String,
    /// The commit it stands on. A branch that exists must be at this one.
    pub parent: CommitId,
    /// A second parent, for a merge: the changes are then those to the files of this one.
    pub merged: Option<CommitId>,
    /// What it does; an empty set makes an empty commit.
    pub changes: ChangeSet,
    /// The whole message. It has a line `CodeSpar-Key: <key>` among its trailers.
    pub message: String,
    /// Who makes it; the forge's own idea when absent.
    pub author: Option<Author>,
    /// What this commit is known by: when the branch already has a commit with this key on top of
    /// `parent`, that commit is the answer and nothing is made.
    pub key: String,
}

impl NewCommit {
    /// The commit whose files the changes are for.
    pub fn files_of(&self) -> &CommitId {
        self.merged.as_ref().unwrap_or(&self.parent)
    }
}

/// Whether a commit is signed as the user's settings want it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signature {
    /// Nothing asks for one, or the forge signs by itself.
    NotWanted,
    Made,
    /// It should be signed and is not, for this reason.
    Missing(String),
}

/// A pull request to be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPullRequest {
    /// The branch with the changes.
    pub head: String,
    /// The branch they are for.
    pub base: String,
    /// One line.
    pub title: String,
    pub body: String,
    /// Not ready to be merged.
    pub draft: Draft,
}

/// Whether a pull request is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Draft {
    Ready,
    /// It is not.
    Draft,
}

/// What changes in a pull request. `None` leaves it as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PullRequestChange {
    /// One line.
    pub title: Option<String>,
    pub body: Option<String>,
    /// `Closed` sets it aside, `Open` opens it again.
    pub state: Option<PullRequestState>,
    /// Whether it is ready.
    pub draft: Option<Draft>,
}

/// A review to be posted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewReview {
    /// The commit that was looked at.
    pub commit: CommitId,
    /// In one word.
    pub verdict: Verdict,
    /// In many. It has an invisible line `<!-- codespar-key: <key> -->`.
    pub body: String,
    /// Line by line.
    pub comments: Vec<ReviewComment>,
    /// What it is known by: a review with this key is not posted twice.
    pub key: String,
}

/// Whether a pull request could be merged as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mergeability {
    /// It could.
    Clean,
    /// The two sides changed the same places; the files, where the forge says.
    Conflict(Vec<String>),
    /// The forge says no for a reason of its own (rules of the branch).
    Blocked(String),
    /// The forge has not worked it out.
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeOrder {
    /// How the commits get in.
    pub strategy: MergeStrategy,
    /// The head must still be this commit.
    pub expected_head: CommitId,
    /// First line of the commit; the forge's own when absent.
    pub title: Option<String>,
}

/// The checks of a commit, as far as the token may read them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommitChecks {
    pub checks: Vec<Check>,
    /// Why there may be others: the token lacks a permission. Nothing can be said of the commit
    /// then but what the known ones say.
    pub unknown: Option<String>,
}

impl CommitChecks {
    /// All that there are.
    pub fn known(checks: Vec<Check>) -> Self {
        Self {
            checks,
            unknown: None,
        }
    }
}

/// Something that happened on a pull request, for those who follow it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    /// What it is known by; the same thing has the same key each time it is asked for.
    pub key: String,
    /// What happened, in a few words for a person or a model.
    pub text: String,
}

/// A repository, its branches and its pull requests.
///
/// Whatever makes something outside looks for its own earlier result first, so that it can be
/// called again after a crash.
#[async_trait]
pub trait Forge: Send + Sync {
    /// What it is, for people: `owner/name on github.com`, `the repository in …`.
    fn describe(&self) -> String;

    /// The longest body of a pull request, in characters.
    fn max_body_chars(&self) -> usize;

    /// Who we are to the forge.
    async fn whoami(&self) -> Result<String, ForgeError>;

    /// The branch that changes are for unless someone says otherwise.
    async fn default_branch(&self) -> Result<String, ForgeError>;

    /// The last commit of a branch, or `None` when there is no such branch.
    async fn head(&self, branch: &str) -> Result<Option<CommitId>, ForgeError>;

    /// All files at a commit.
    async fn tree(&self, commit: &CommitId) -> Result<Vec<TreeEntry>, ForgeError>;

    async fn file(&self, commit: &CommitId, path: &RepoPath) -> Result<Option<FileAt>, ForgeError>;

    /// Files that speak of the words, best first.
    async fn search(&self, words: &[String], limit: usize) -> Result<Vec<String>, ForgeError>;

    /// Makes one commit on a branch: all of it or nothing. Never forces.
    async fn commit(&self, new: &NewCommit) -> Result<CommitId, ForgeError>;

    /// Whether a commit that was made here has the signature that it should have.
    async fn signature(&self, _commit: &CommitId) -> Result<Signature, ForgeError> {
        Ok(Signature::NotWanted)
    }

    /// Opens a pull request, or gives the open one that the head branch already has.
    async fn open_pull_request(&self, new: &NewPullRequest) -> Result<PullRequest, ForgeError>;

    async fn change_pull_request(
        &self,
        number: u64,
        change: &PullRequestChange,
    ) -> Result<PullRequest, ForgeError>;

    async fn pull_request(&self, number: u64) -> Result<PullRequest, ForgeError>;

    /// Pull requests, latest first; all of them without a state.
    async fn pull_requests(
        &self,
        state: Option<PullRequestState>,
    ) -> Result<Vec<PullRequest>, ForgeError>;

    /// What a pull request changes, as a unified diff.
    async fn diff(&self, number: u64) -> Result<String, ForgeError>;

    /// Checks and statuses of a commit. A permission that is missing for them is no error.
    async fn checks(&self, commit: &CommitId) -> Result<CommitChecks, ForgeError>;

    /// Keeps the result of a check that we ran, to be among `checks`. A forge whose checks are run
    /// by others keeps nothing.
    async fn record_check(&self, _commit: &CommitId, _check: &Check) -> Result<(), ForgeError> {
        Ok(())
    }

    /// What a check of a commit printed, where the forge keeps it. Text of others.
    async fn check_output(
        &self,
        _commit: &CommitId,
        _check: &str,
    ) -> Result<Option<String>, ForgeError> {
        Ok(None)
    }

    /// Whether a pull request could be merged now.
    async fn mergeability(&self, number: u64) -> Result<Mergeability, ForgeError>;

    async fn review(&self, number: u64, new: &NewReview) -> Result<Review, ForgeError>;

    /// The reviews of a pull request, in order.
    async fn reviews(&self, number: u64) -> Result<Vec<Review>, ForgeError>;

    /// What someone may do here.
    async fn permission(&self, user: &str) -> Result<Permission, ForgeError>;

    /// How this repository merges unless someone says otherwise.
    async fn default_strategy(&self) -> Result<MergeStrategy, ForgeError>;

    /// Merges a pull request. Refused when the head has moved. One that is merged already with
    /// this head gives its merge commit.
    async fn merge(&self, number: u64, order: &MergeOrder) -> Result<CommitId, ForgeError>;

    /// Takes a branch away; one that is not there is fine.
    async fn delete_branch(&self, branch: &str) -> Result<(), ForgeError>;

    /// Reviews, comments, checks, conflicts and the end of a pull request, all that there is now,
    /// oldest first. Cheap when nothing changed.
    async fn activity(&self, number: u64) -> Result<Vec<Activity>, ForgeError>;
}
