//! A git repository on this machine as a forge: git keeps the branches, the store the pull
//! requests. The user's work tree, index and current branch are left alone; only a merge into the
//! branch that is checked out brings the work tree along.
//!
//! What is where:
//!
//! ```text
//! refs/heads/<branch>             branches, in the repository
//! refs/codespar/pull/<n>/head     the last known head of pull request n, so that gc keeps it
//! store                           number, title, body, state, reviews, checks
//! commit messages                 CodeSpar-Key (which commit), CodeSpar-Merge (which merge)
//! ```
//!
//! A merge changes git first and the store second. If the process ends in between, the next read of
//! the pull request finds the merge in the history of the base and records it.
//!
//! Git runs through `codespar-git` only: without hooks, filters or programs that the repository
//! configures. New objects are written apart from the repository and brought in as one pack before
//! a reference needs them.

mod branches;
mod commit;
mod content;
mod git;
mod land;
mod merge;
mod message;
mod pulls;
mod replay;
mod signing;

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use codespar_git::{GitSettings, Repository, Signing, Trust};
use codespar_protocol::{
    Check, CommitId, MergeStrategy, Permission, PullRequest, PullRequestState, RepoPath, Review,
};
use codespar_store::{PullStore, StoreError};
use parking_lot::Mutex;

use crate::{
    Activity, Author, CommitChecks, FileAt, Forge, ForgeError, MergeOrder, Mergeability, NewCommit,
    NewPullRequest, NewReview, PullRequestChange, Signature, TreeEntry,
};
#[cfg(feature = "fuzzing")]
pub(crate) use content::entry as tree_entry;
use git::{Place, blocking};

/// As long as on GitHub, so that a body fits wherever it goes.
const MAX_BODY_CHARS: usize = 65_536;

/// The first version that merges without a work tree. `git merge-tree --write-tree` came with it. A
/// version that cannot be read is taken to be new enough.
const OLDEST_GIT: (u32, u32) = (2, 38);

/// Head and base, and whether the one could be merged into the other.
type Asked = ((CommitId, CommitId), Mergeability);

/// A repository on this machine. Several processes may have the same repository open; every change
/// of a branch names the value it expects or is a fast-forward in a work tree, so git decides who
/// was first.
pub struct LocalForge {
    dir: PathBuf,
    /// What the store knows the repository by: the path of its git directory.
    key: String,
    repository: Repository,
    /// Git without a work tree. Only `land` makes one with files.
    git: Place,
    store: Arc<dyn PullStore>,
    who: Author,
    /// As the user's git settings want it.
    signing: Option<Signing>,
    /// Commits of this process that could not be signed, and why.
    unsigned: Mutex<HashMap<CommitId, String>>,
    /// By number of the pull request. An answer is used only while both commits are the same.
    merges: Mutex<HashMap<u64, Asked>>,
    /// Of the base that was looked at last.
    landed: Mutex<Option<(CommitId, Arc<merge::Landed>)>>,
}

impl LocalForge {
    /// Opens the repository that `dir` is in; a bare one and a linked work tree will do too.
    /// Without an identity commits are made by whom git's settings name. Of a repository that is
    /// not trusted nothing is run.
    ///
    /// Errors: [`ForgeError::NotFound`] without a repository, [`ForgeError::Refused`] for a git
    /// that is too old or a path that is not UTF-8. Nothing is written.
    pub async fn open(
        dir: &Path,
        trust: Trust,
        store: Arc<dyn PullStore>,
        identity: Option<Author>,
    ) -> Result<Self, ForgeError> {
        let repository = git::find(dir, trust).await?;
        check_version().await?;
        let found = repository.clone();
        let git = Place(blocking(move || found.git()).await?);
        let found = repository.clone();
        let settings = blocking(move || found.settings().cloned()).await?;
        let who = identity.unwrap_or_else(|| configured(&settings));
        Ok(Self {
            dir: dir.to_owned(),
            // `find` refuses a path that is not text.
            key: repository
                .location()
                .common_dir
                .to_string_lossy()
                .into_owned(),
            repository,
            git,
            store,
            who,
            signing: settings.signing(),
            unsigned: Mutex::default(),
            merges: Mutex::default(),
            landed: Mutex::default(),
        })
    }

    fn describe_it(&self) -> String {
        format!("the repository in {}", self.dir.display())
    }
}

async fn check_version() -> Result<(), ForgeError> {
    let version = blocking(codespar_git::version).await?;
    let number = version.split_ascii_whitespace().nth(2).unwrap_or_default();
    let mut parts = number.split('.').map(|part| part.parse::<u32>().ok());
    match (parts.next().flatten(), parts.next().flatten()) {
        (Some(major), Some(minor)) if (major, minor) < OLDEST_GIT => {
            Err(ForgeError::Refused(format!(
                "this is git {number}; local pull requests need git {}.{} or later",
                OLDEST_GIT.0, OLDEST_GIT.1
            )))
        }
        _ => Ok(()),
    }
}

/// Both name and address must be set; one alone is not combined with ours.
fn configured(settings: &GitSettings) -> Author {
    match (settings.get("user.name"), settings.get("user.email")) {
        (Some(name), Some(email)) => Author {
            name: name.to_owned(),
            email: email.to_owned(),
        },
        _ => Author {
            name: "CodeSpar".to_owned(),
            email: "codespar@localhost".to_owned(),
        },
    }
}

/// What the store says, as an error of the forge.
fn failed(error: StoreError) -> ForgeError {
    match error {
        StoreError::NoSuchPull { number } => {
            ForgeError::NotFound(format!("pull request #{number}"))
        }
        StoreError::PullMerged { .. } | StoreError::HeadHasPull { .. } => {
            ForgeError::Refused(error.to_string())
        }
        other => ForgeError::Unavailable {
            what: "the records of pull requests".to_owned(),
            reason: other.to_string(),
        },
    }
}

#[async_trait]
impl Forge for LocalForge {
    fn describe(&self) -> String {
        self.describe_it()
    }

    fn max_body_chars(&self) -> usize {
        MAX_BODY_CHARS
    }

    async fn whoami(&self) -> Result<String, ForgeError> {
        Ok(self.who.name.clone())
    }

    async fn default_branch(&self) -> Result<String, ForgeError> {
        self.find_default_branch().await
    }

    async fn head(&self, branch: &str) -> Result<Option<CommitId>, ForgeError> {
        self.branch_head(branch).await
    }

    async fn tree(&self, commit: &CommitId) -> Result<Vec<TreeEntry>, ForgeError> {
        self.tree_at(commit).await
    }

    async fn file(&self, commit: &CommitId, path: &RepoPath) -> Result<Option<FileAt>, ForgeError> {
        self.file_at(commit, path).await
    }

    async fn search(&self, words: &[String], limit: usize) -> Result<Vec<String>, ForgeError> {
        self.find_words(words, limit).await
    }

    async fn commit(&self, new: &NewCommit) -> Result<CommitId, ForgeError> {
        self.make_commit(new).await
    }

    async fn signature(&self, commit: &CommitId) -> Result<Signature, ForgeError> {
        self.signature_of(commit).await
    }

    async fn open_pull_request(&self, new: &NewPullRequest) -> Result<PullRequest, ForgeError> {
        self.open_pull(new).await
    }

    async fn change_pull_request(
        &self,
        number: u64,
        change: &PullRequestChange,
    ) -> Result<PullRequest, ForgeError> {
        self.change_pull(number, change).await
    }

    async fn pull_request(&self, number: u64) -> Result<PullRequest, ForgeError> {
        self.fresh_pull(number).await
    }

    async fn pull_requests(
        &self,
        state: Option<PullRequestState>,
    ) -> Result<Vec<PullRequest>, ForgeError> {
        self.fresh_pulls(state).await
    }

    async fn diff(&self, number: u64) -> Result<String, ForgeError> {
        let pull = self.fresh_pull(number).await?;
        self.diff_of(&pull).await
    }

    async fn checks(&self, commit: &CommitId) -> Result<CommitChecks, ForgeError> {
        let checks = self.store.checks(&self.key, commit).await.map_err(failed)?;
        let checks = checks.into_iter().map(|found| found.check).collect();
        Ok(CommitChecks::known(checks))
    }

    async fn record_check(&self, commit: &CommitId, check: &Check) -> Result<(), ForgeError> {
        let commit = self.known_commit(commit).await?;
        let set = self.store.set_check(&self.key, &commit, check).await;
        set.map_err(failed)
    }

    async fn mergeability(&self, number: u64) -> Result<Mergeability, ForgeError> {
        let pull = self.fresh_pull(number).await?;
        self.can_merge(&pull).await
    }

    async fn review(&self, number: u64, new: &NewReview) -> Result<Review, ForgeError> {
        self.add_review(number, new).await
    }

    async fn reviews(&self, number: u64) -> Result<Vec<Review>, ForgeError> {
        let reviews = self.store.pull_reviews(&self.key, number).await;
        reviews.map_err(failed)
    }

    /// Everybody who is asked for works through this process: what it may do, they may.
    async fn permission(&self, _user: &str) -> Result<Permission, ForgeError> {
        let git_dir = Path::new(&self.key);
        let places = [
            git_dir.to_owned(),
            git_dir.join("refs"),
            git_dir.join("objects"),
        ];
        let writable =
            |place: &PathBuf| rustix::fs::access(place, rustix::fs::Access::WRITE_OK).is_ok();
        Ok(match places.iter().all(writable) {
            true => Permission::Admin,
            false => Permission::Read,
        })
    }

    async fn default_strategy(&self) -> Result<MergeStrategy, ForgeError> {
        Ok(MergeStrategy::Merge)
    }

    async fn merge(&self, number: u64, order: &MergeOrder) -> Result<CommitId, ForgeError> {
        self.merge_pull(number, order).await
    }

    async fn delete_branch(&self, branch: &str) -> Result<(), ForgeError> {
        self.remove_branch(branch).await
    }

    async fn activity(&self, number: u64) -> Result<Vec<Activity>, ForgeError> {
        self.happenings(number).await
    }
}
