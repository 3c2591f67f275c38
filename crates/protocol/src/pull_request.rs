//! Pull requests, reviews and checks, whoever keeps them.

use std::{fmt, str::FromStr};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A commit's full name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CommitId(pub String);

impl CommitId {
    /// The first ten digits, for people.
    pub fn short(&self) -> &str {
        self.0.get(..10).unwrap_or(&self.0)
    }
}

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where a pull request is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PullRequestState {
    /// It waits.
    Open,
    /// Its changes are in.
    Merged,
    /// It was set aside.
    Closed,
}

impl PullRequestState {
    /// The word in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Merged => "merged",
            Self::Closed => "closed",
        }
    }
}

impl fmt::Display for PullRequestState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PullRequest {
    /// Its number in the repository.
    pub number: u64,
    /// One line.
    pub title: String,
    pub body: String,
    /// Where it is in its life.
    pub state: PullRequestState,
    /// Not ready to be merged.
    pub draft: bool,
    /// The branch with the changes.
    pub head: String,
    /// The last commit of that branch.
    pub head_commit: CommitId,
    /// The branch they are for.
    pub base: String,
    /// Who opened it.
    pub author: String,
    /// Where a person can look at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// When it was opened.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// The commit its merge made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge_commit: Option<CommitId>,
}

/// What a review says in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Words only.
    Comment,
    /// It may go in.
    Approve,
    /// It may not, as it is.
    RequestChanges,
}

/// A remark on a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewComment {
    pub path: String,
    /// The line, in the file as it is after the change.
    pub line: u32,
    /// What there is to say.
    pub body: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Review {
    /// Its name at the forge.
    pub id: String,
    pub author: String,
    /// In one word.
    pub verdict: Verdict,
    /// In many.
    pub body: String,
    /// Line by line.
    pub comments: Vec<ReviewComment>,
    /// The commit it looked at.
    pub commit: CommitId,
    pub at: Timestamp,
}

/// How a check stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckState {
    /// It passed, or does not apply.
    Success,
    /// It did not pass.
    Failure,
    /// It is not over.
    Pending,
}

/// A check or status on a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// What is checked.
    pub name: String,
    pub state: CheckState,
    /// A line of detail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Where a person can look at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// How the commits of a pull request get into its base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MergeStrategy {
    /// With a commit that joins the two.
    Merge,
    /// As one commit.
    Squash,
    /// One by one, on top.
    Rebase,
}

impl MergeStrategy {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Merge => "merge",
            Self::Squash => "squash",
            Self::Rebase => "rebase",
        }
    }
}

impl fmt::Display for MergeStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for MergeStrategy {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Merge, Self::Squash, Self::Rebase]
            .into_iter()
            .find(|strategy| strategy.as_str() == text)
            .ok_or_else(|| {
                format!("`{text}` is no way to merge; there are merge, squash and rebase")
            })
    }
}

/// What someone may do in a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    /// Nothing.
    None,
    /// Look.
    Read,
    /// Push and merge.
    Write,
    /// Everything.
    Admin,
}
