//! GitHub, on github.com or an Enterprise host, through its REST and git data API.
//!
//! Each concern is a file with an `impl GitHubForge` block; the implementation of [`Forge`] below
//! only delegates. All requests go through `api.rs`, which adds headers, waits for limits, retries
//! and follows pages.
//!
//! ```text
//! commit              POST git/blobs, git/trees, git/commits, then POST or PATCH git/refs
//! open_pull_request   GET pulls?head=owner:branch, POST pulls
//! review              GET pulls/N/reviews, POST pulls/N/reviews
//! merge               GET pulls/N, PUT pulls/N/merge
//! activity            GET pulls/N, its reviews and comments, checks and statuses of its head
//! ```
//!
//! No work tree and no `git` command are needed. Nothing is stored on disk; answers and trees are
//! kept in memory for as long as the forge lives.

mod activity;
mod api;
mod app;
mod checks;
mod client;
mod commit;
mod credentials;
mod failure;
mod graphql;
mod kept;
mod limits;
mod lines;
mod links;
mod merge;
mod paging;
mod patience;
mod pulls;
mod read;
mod reviews;
mod text;
mod wire;

use std::fmt;

use async_trait::async_trait;
use codespar_protocol::{
    CommitId, MergeStrategy, Permission, PullRequest, PullRequestState, RepoPath, Review,
};
use tokio::sync::OnceCell;
use url::Url;

pub use app::{AppFacts, GitHubApp, HookDelivery};
pub use client::github_client;
pub use credentials::{GitHubAccess, TokenRenewal};
#[cfg(feature = "fuzzing")]
pub(crate) use lines::ShownLines;
pub use patience::Patience;

use crate::{
    Activity, CommitChecks, FileAt, Forge, ForgeError, MergeOrder, Mergeability, NewCommit,
    NewPullRequest, NewReview, PullRequestChange, TreeEntry,
};
use api::{Api, Call};
use credentials::Credentials;
use read::Trees;

/// GitHub refuses longer bodies. They are cut to fit before they are sent.
const MAX_BODY_CHARS: usize = 65_536;

/// All that is needed to work on a repository at GitHub.
#[derive(Debug, Clone)]
pub struct GitHubSetup {
    /// `https://api.github.com`, or `https://<host>/api/v3` for GitHub Enterprise.
    pub api: Url,
    /// Whose repository.
    pub owner: String,
    pub name: String,
    /// A token, or an app that is installed on the repository.
    pub access: GitHubAccess,
    /// Build it with [`github_client`]; one serves many repositories.
    pub http: reqwest::Client,
    /// How long to wait.
    pub patience: Patience,
}

/// A repository at GitHub. Cheap to make: no request is sent until a method is called. Shared
/// behind an `Arc`, it can be used by many tasks at once; they share limits, kept answers and
/// trees.
pub struct GitHubForge {
    owner: String,
    name: String,
    api: Api,
    /// Filled by listings; files of a listed commit are then found without further requests for
    /// trees.
    trees: Trees,
    /// Asked for once. An error is not kept.
    who: OnceCell<String>,
}

impl fmt::Debug for GitHubForge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GitHubForge")
            .field(&self.describe())
            .finish()
    }
}

impl GitHubForge {
    /// Checks the values; asks GitHub nothing.
    ///
    /// Owner and name end up in the path of every URL, so only the characters that GitHub itself
    /// allows are accepted. Errors: [`ForgeError::Refused`] for a name, a token or an address that
    /// cannot work.
    pub fn new(setup: GitHubSetup) -> Result<Self, ForgeError> {
        let GitHubSetup {
            api,
            owner,
            name,
            access,
            http,
            patience,
        } = setup;
        repository_name(&owner, &name)?;
        let credentials = Credentials::Repository {
            access,
            owner: owner.clone(),
            name: name.clone(),
        };
        Ok(Self {
            api: Api::new(api, credentials, http, patience)?,
            owner,
            name,
            trees: Trees::default(),
            who: OnceCell::new(),
        })
    }

    fn full_name(&self) -> String {
        format!("{}/{}", self.owner, self.name)
    }

    fn describe_pull(&self, number: u64) -> String {
        format!("pull request #{number} of {}", self.full_name())
    }

    fn url(&self, parts: &[&str]) -> Result<Url, ForgeError> {
        url_below(&self.api.base, parts)
    }

    /// An address under the repository's.
    fn repo_url(&self, parts: &[&str]) -> Result<Url, ForgeError> {
        let all: Vec<&str> = ["repos", &self.owner, &self.name]
            .into_iter()
            .chain(parts.iter().copied())
            .collect();
        self.url(&all)
    }

    /// The same under one of its pull requests.
    fn pull_url(&self, number: u64, parts: &[&str]) -> Result<Url, ForgeError> {
        let number = number.to_string();
        let all: Vec<&str> = ["pulls", &number]
            .into_iter()
            .chain(parts.iter().copied())
            .collect();
        self.repo_url(&all)
    }

    async fn repo(&self) -> Result<wire::Repo, ForgeError> {
        let what = format!("repository {}", self.full_name());
        self.api
            .read(&Call::get(self.repo_url(&[])?, what, "Metadata: read"))
            .await
    }
}

/// Only the characters that GitHub itself allows: they become part of a path.
fn repository_name(owner: &str, name: &str) -> Result<(), ForgeError> {
    for part in [owner, name] {
        let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if part.is_empty() || matches!(part, "." | "..") || !part.chars().all(known) {
            return Err(ForgeError::Refused(format!(
                "`{owner}/{name}` is no repository of GitHub; it is written owner/name"
            )));
        }
    }
    Ok(())
}

/// An address under the API's base, part by part. Each part is percent-encoded as one segment, so a
/// branch or a user name cannot lead to another endpoint.
fn url_below(base: &Url, parts: &[&str]) -> Result<Url, ForgeError> {
    let mut url = base.clone();
    // A part `..` would be taken as "up".
    if let Some(part) = parts.iter().find(|part| matches!(**part, "" | "." | "..")) {
        return Err(ForgeError::Refused(format!(
            "`{part}` cannot be a part of a name at GitHub"
        )));
    }
    match url.path_segments_mut() {
        Ok(mut path) => path.pop_if_empty().extend(parts),
        Err(()) => {
            return Err(ForgeError::Refused(
                "the address of the API is no base".to_owned(),
            ));
        }
    };
    Ok(url)
}

#[async_trait]
impl Forge for GitHubForge {
    fn describe(&self) -> String {
        let host = self.api.base.host_str().unwrap_or_default();
        let host = if host == "api.github.com" {
            "github.com"
        } else {
            host
        };
        format!("{} on {host}", self.full_name())
    }

    fn max_body_chars(&self) -> usize {
        MAX_BODY_CHARS
    }

    async fn whoami(&self) -> Result<String, ForgeError> {
        let who = self.who.get_or_try_init(|| self.ask_who_we_are());
        who.await.cloned()
    }

    async fn default_branch(&self) -> Result<String, ForgeError> {
        Ok(self.repo().await?.default_branch)
    }

    async fn head(&self, branch: &str) -> Result<Option<CommitId>, ForgeError> {
        self.find_head(branch).await
    }

    async fn tree(&self, commit: &CommitId) -> Result<Vec<TreeEntry>, ForgeError> {
        self.read_tree(commit).await
    }

    async fn file(&self, commit: &CommitId, path: &RepoPath) -> Result<Option<FileAt>, ForgeError> {
        self.read_file(commit, path).await
    }

    async fn search(&self, words: &[String], limit: usize) -> Result<Vec<String>, ForgeError> {
        self.search_code(words, limit).await
    }

    async fn commit(&self, new: &NewCommit) -> Result<CommitId, ForgeError> {
        self.make_commit(new).await
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
        Ok(self.pull(number).await?.into())
    }

    async fn pull_requests(
        &self,
        state: Option<PullRequestState>,
    ) -> Result<Vec<PullRequest>, ForgeError> {
        self.list_pulls(state).await
    }

    async fn diff(&self, number: u64) -> Result<String, ForgeError> {
        self.read_diff(number).await
    }

    async fn checks(&self, commit: &CommitId) -> Result<CommitChecks, ForgeError> {
        self.list_checks(commit).await
    }

    async fn check_output(
        &self,
        commit: &CommitId,
        check: &str,
    ) -> Result<Option<String>, ForgeError> {
        self.output_of(commit, check).await
    }

    async fn mergeability(&self, number: u64) -> Result<Mergeability, ForgeError> {
        self.wait_for_mergeability(number).await
    }

    async fn review(&self, number: u64, new: &NewReview) -> Result<Review, ForgeError> {
        self.post_review(number, new).await
    }

    async fn reviews(&self, number: u64) -> Result<Vec<Review>, ForgeError> {
        self.list_reviews(number).await
    }

    async fn permission(&self, user: &str) -> Result<Permission, ForgeError> {
        self.permission_of(user).await
    }

    async fn default_strategy(&self) -> Result<MergeStrategy, ForgeError> {
        let repo = self.repo().await?;
        let allowed = [
            (MergeStrategy::Merge, repo.allow_merge_commit),
            (MergeStrategy::Squash, repo.allow_squash_merge),
            (MergeStrategy::Rebase, repo.allow_rebase_merge),
        ];
        let first = allowed
            .into_iter()
            .find(|(_, allowed)| *allowed != Some(false));
        Ok(first.map_or(MergeStrategy::Merge, |(strategy, _)| strategy))
    }

    async fn merge(&self, number: u64, order: &MergeOrder) -> Result<CommitId, ForgeError> {
        self.merge_pull(number, order).await
    }

    async fn delete_branch(&self, branch: &str) -> Result<(), ForgeError> {
        self.remove_branch(branch).await
    }

    async fn activity(&self, number: u64) -> Result<Vec<Activity>, ForgeError> {
        self.list_activity(number).await
    }
}
