//! GitHub's answers, as much of them as we read.
//!
//! Fields that we do not use are not declared; unknown ones are ignored, so GitHub may add more. A
//! missing field that is declared without `Option` or a default makes the answer an error that
//! names the field. The types are never sent: requests are built where they are made.

use jiff::Timestamp;
use serde::Deserialize;

/// The three flags are absent for tokens that may not push.
#[derive(Deserialize)]
pub(super) struct Repo {
    pub(super) default_branch: String,
    pub(super) allow_merge_commit: Option<bool>,
    pub(super) allow_squash_merge: Option<bool>,
    pub(super) allow_rebase_merge: Option<bool>,
}

#[derive(Deserialize)]
pub(super) struct User {
    pub(super) login: String,
}

/// GitHub's name for people who have left.
pub(super) fn login(user: Option<&User>) -> String {
    user.map_or_else(|| "ghost".to_owned(), |user| user.login.clone())
}

/// Anything that is only a name: the target of a reference, a parent, a new blob.
#[derive(Deserialize)]
pub(super) struct Object {
    pub(super) sha: String,
}

#[derive(Deserialize)]
pub(super) struct Ref {
    pub(super) object: Object,
}

/// From the git data API; [`ListedCommit`] is the same commit as the list of commits shows it.
#[derive(Deserialize)]
pub(super) struct GitCommit {
    pub(super) tree: Object,
}

#[derive(Deserialize)]
pub(super) struct ListedCommit {
    pub(super) sha: String,
    pub(super) commit: CommitText,
    pub(super) parents: Vec<Object>,
}

#[derive(Deserialize)]
pub(super) struct CommitText {
    pub(super) message: String,
}

#[derive(Deserialize)]
pub(super) struct Tree {
    pub(super) tree: Vec<Entry>,
    /// GitHub stopped listing; the entries are incomplete.
    #[serde(default)]
    pub(super) truncated: bool,
}

#[derive(Deserialize, Clone)]
pub(super) struct Entry {
    pub(super) path: String,
    pub(super) mode: String,
    /// `blob`, `tree` or `commit` (a submodule).
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) sha: String,
    pub(super) size: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct Found {
    pub(super) items: Vec<FoundFile>,
}

#[derive(Deserialize)]
pub(super) struct FoundFile {
    pub(super) path: String,
}

/// Both from a single request and from lists.
#[derive(Deserialize)]
pub(super) struct Pull {
    pub(super) number: u64,
    /// The name of the same object in GraphQL.
    pub(super) node_id: String,
    pub(super) title: String,
    pub(super) body: Option<String>,
    pub(super) state: String,
    #[serde(default)]
    pub(super) draft: bool,
    pub(super) head: Side,
    pub(super) base: Side,
    pub(super) user: Option<User>,
    pub(super) html_url: String,
    pub(super) created_at: Timestamp,
    pub(super) updated_at: Timestamp,
    pub(super) closed_at: Option<Timestamp>,
    pub(super) merged_at: Option<Timestamp>,
    /// Of an open pull request it is a test merge that GitHub made, not a result.
    pub(super) merge_commit_sha: Option<String>,
    /// `None` in lists, and while GitHub has not worked it out.
    pub(super) mergeable: Option<bool>,
    /// `clean`, `dirty`, `blocked`, `behind` and others; absent in lists.
    pub(super) mergeable_state: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Side {
    #[serde(rename = "ref")]
    pub(super) branch: String,
    pub(super) sha: String,
    /// `owner:branch`, which tells a branch from that of a fork with the same name.
    pub(super) label: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct PullFile {
    pub(super) filename: String,
    pub(super) status: String,
    pub(super) previous_filename: Option<String>,
    /// Absent for binary files and for changes that are too large.
    pub(super) patch: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct PullReview {
    pub(super) id: u64,
    pub(super) user: Option<User>,
    #[serde(default)]
    pub(super) body: String,
    /// `APPROVED`, `CHANGES_REQUESTED`, `COMMENTED`, `DISMISSED` or `PENDING`.
    pub(super) state: String,
    pub(super) commit_id: Option<String>,
    pub(super) submitted_at: Option<Timestamp>,
}

#[derive(Deserialize)]
pub(super) struct LineComment {
    pub(super) id: u64,
    pub(super) pull_request_review_id: Option<u64>,
    pub(super) path: String,
    /// `None` once a later commit has changed the place; `original_line` still tells where it was.
    pub(super) line: Option<u32>,
    pub(super) original_line: Option<u32>,
    pub(super) body: String,
    pub(super) user: Option<User>,
    pub(super) created_at: Timestamp,
}

/// On the pull request as a whole. GitHub keeps these with issues.
#[derive(Deserialize)]
pub(super) struct Comment {
    pub(super) id: u64,
    pub(super) body: Option<String>,
    pub(super) user: Option<User>,
    pub(super) created_at: Timestamp,
}

#[derive(Deserialize)]
pub(super) struct CheckRuns {
    pub(super) check_runs: Vec<CheckRun>,
}

#[derive(Deserialize)]
pub(super) struct CheckRun {
    pub(super) id: u64,
    pub(super) name: String,
    pub(super) status: String,
    pub(super) conclusion: Option<String>,
    pub(super) html_url: Option<String>,
    pub(super) completed_at: Option<Timestamp>,
    pub(super) output: Option<Output>,
}

#[derive(Deserialize)]
pub(super) struct Output {
    pub(super) title: Option<String>,
    pub(super) summary: Option<String>,
    pub(super) text: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Combined {
    pub(super) statuses: Vec<Status>,
}

#[derive(Deserialize)]
pub(super) struct Status {
    pub(super) id: u64,
    pub(super) context: String,
    pub(super) state: String,
    pub(super) description: Option<String>,
    pub(super) target_url: Option<String>,
    pub(super) updated_at: Timestamp,
}

#[derive(Deserialize)]
pub(super) struct Level {
    pub(super) permission: String,
}

/// A file in its JSON form.
#[derive(Deserialize)]
pub(super) struct Blob {
    pub(super) content: String,
    pub(super) encoding: String,
}
