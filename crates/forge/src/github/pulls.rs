//! Pull requests: open, change, list, and what they change.
//!
//! GitHub allows one open pull request for each pair of head and base. The head branch is therefore
//! what a pull request is found by after a crash or a lost answer. A body that is too long is
//! shortened rather than refused.

use std::fmt::Write as _;

use codespar_protocol::{CommitId, PullRequest, PullRequestState};
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::{
    GitHubForge, MAX_BODY_CHARS,
    api::{Answer, Call, Made},
    failure::Failure,
    text::shortened,
    wire::{self, login},
};
use crate::{Draft, ForgeError, NewPullRequest, PullRequestChange};

const READ: &str = "Pull requests: read";
const WRITE: &str = "Pull requests: write";
const DIFF: &str = "application/vnd.github.diff";

impl wire::Pull {
    /// GitHub calls a merged pull request `closed` as well; the time of the merge tells them apart.
    pub(super) fn life(&self) -> PullRequestState {
        match (self.merged_at, self.state.as_str()) {
            (Some(_), _) => PullRequestState::Merged,
            (None, "open") => PullRequestState::Open,
            (None, _) => PullRequestState::Closed,
        }
    }
}

impl From<wire::Pull> for PullRequest {
    fn from(pull: wire::Pull) -> Self {
        let state = pull.life();
        // Before the merge this names a commit that only tries it.
        let merge_commit = (state == PullRequestState::Merged)
            .then_some(pull.merge_commit_sha)
            .flatten()
            .map(CommitId);
        Self {
            number: pull.number,
            title: pull.title,
            body: pull.body.unwrap_or_default(),
            state,
            draft: pull.draft,
            head: pull.head.branch,
            head_commit: CommitId(pull.head.sha),
            base: pull.base.branch,
            author: login(pull.user.as_ref()),
            url: Some(pull.html_url),
            created_at: pull.created_at,
            updated_at: pull.updated_at,
            merge_commit,
        }
    }
}

impl GitHubForge {
    pub(super) async fn pull(&self, number: u64) -> Result<wire::Pull, ForgeError> {
        let url = self.pull_url(number, &[])?;
        self.api
            .read(&Call::get(url, self.describe_pull(number), READ))
            .await
    }

    /// Where the plan of the repository has no drafts, a draft is opened as an ordinary pull
    /// request and the log says so; the result shows that it is no draft.
    pub(super) async fn open_pull(&self, new: &NewPullRequest) -> Result<PullRequest, ForgeError> {
        if let Some(own) = self.open_pull_of(new).await? {
            return Ok(own.into());
        }
        match self.create_pull(new, new.draft).await {
            // Some plans have no drafts. A pull request that is not one says so, too.
            Err(ForgeError::Refused(reason))
                if new.draft == Draft::Draft
                    && reason.contains("Draft pull requests are not supported") =>
            {
                tracing::warn!("{}: {reason}", self.full_name());
                self.create_pull(new, Draft::Ready).await
            }
            outcome => outcome,
        }
    }

    /// A refusal because it exists already leads to the existing one: somebody was faster, perhaps
    /// an earlier try of ours.
    async fn create_pull(
        &self,
        new: &NewPullRequest,
        draft: Draft,
    ) -> Result<PullRequest, ForgeError> {
        let body = json!({
            "title": new.title,
            "body": shortened(&new.body, MAX_BODY_CHARS),
            "head": new.head,
            "base": new.base,
            "draft": draft == Draft::Draft,
        });
        let what = format!("a pull request for {} of {}", new.head, self.full_name());
        let call = Call::with(Method::POST, self.repo_url(&["pulls"])?, body, what, WRITE).once();
        match self.api.make(&call, || self.open_pull_of(new)).await {
            Ok(Made::Now(answer)) => Ok(answer.read::<wire::Pull>(&call)?.into()),
            Ok(Made::Before(pull)) => Ok(pull.into()),
            Err(Failure::Said(said)) if said.is(422, "already exists") => {
                let own = self.open_pull_of(new).await?;
                own.map(PullRequest::from)
                    .ok_or_else(|| Failure::Said(said).explain(&call))
            }
            Err(failure) => Err(failure.explain(&call)),
        }
    }

    /// The open one of the head branch; the one for this base, if there are several. Used before
    /// opening, after a lost answer and after a refusal, so all three agree on what counts as the
    /// same pull request.
    async fn open_pull_of(&self, new: &NewPullRequest) -> Result<Option<wire::Pull>, ForgeError> {
        let head = format!("{}:{}", self.owner, new.head);
        let what = format!("pull requests of {}", self.full_name());
        let call = Call::get(self.repo_url(&["pulls"])?, what, READ).query(&[
            ("head", &head),
            ("state", "open"),
            ("per_page", "100"),
        ]);
        let mut open: Vec<wire::Pull> = self.api.list(&call).await?;
        // GitHub ignores a head that it cannot read, and lists everything, also from forks.
        open.retain(|pull| {
            let label = pull.head.label.as_deref().unwrap_or(&head);
            pull.head.branch == new.head && label.eq_ignore_ascii_case(&head)
        });
        let same_base = open.iter().position(|pull| pull.base.branch == new.base);
        Ok((!open.is_empty()).then(|| open.swap_remove(same_base.unwrap_or(0))))
    }

    /// Title, body and state change in one request. The draft flag needs another one, through
    /// GraphQL, and only if it differs: a failure in between leaves the first part done, and the
    /// call can be repeated.
    pub(super) async fn change_pull(
        &self,
        number: u64,
        change: &PullRequestChange,
    ) -> Result<PullRequest, ForgeError> {
        let mut body = Map::new();
        let mut set = |name: &str, value: &str| body.insert(name.to_owned(), Value::from(value));
        if let Some(title) = &change.title {
            set("title", title);
        }
        if let Some(text) = &change.body {
            set("body", &shortened(text, MAX_BODY_CHARS));
        }
        match change.state {
            Some(PullRequestState::Open) => drop(set("state", "open")),
            Some(PullRequestState::Closed) => drop(set("state", "closed")),
            Some(PullRequestState::Merged) => {
                return Err(ForgeError::Refused(format!(
                    "{}: it is merged by merging it, not by changing its state",
                    self.describe_pull(number)
                )));
            }
            None => {}
        }
        let url = self.pull_url(number, &[])?;
        let pull: wire::Pull = if body.is_empty() {
            self.pull(number).await?
        } else {
            let what = self.describe_pull(number);
            self.api
                .read(&Call::with(Method::PATCH, url, body.into(), what, WRITE))
                .await?
        };
        match change.draft {
            Some(draft) if pull.draft != (draft == Draft::Draft) => {
                self.set_draft(number, &pull.node_id, draft).await?;
                Ok(self.pull(number).await?.into())
            }
            _ => Ok(pull.into()),
        }
    }

    /// GitHub knows open and closed only; merged ones are told apart here, after all pages have
    /// come.
    pub(super) async fn list_pulls(
        &self,
        state: Option<PullRequestState>,
    ) -> Result<Vec<PullRequest>, ForgeError> {
        let asked = match state {
            Some(PullRequestState::Open) => "open",
            Some(PullRequestState::Merged | PullRequestState::Closed) => "closed",
            None => "all",
        };
        let what = format!("pull requests of {}", self.full_name());
        let call = Call::get(self.repo_url(&["pulls"])?, what, READ).query(&[
            ("state", asked),
            ("sort", "created"),
            ("direction", "desc"),
            ("per_page", "100"),
        ]);
        let pulls: Vec<wire::Pull> = self.api.list(&call).await?;
        let wanted = |pull: &wire::Pull| state.is_none_or(|state| pull.life() == state);
        Ok(pulls
            .into_iter()
            .filter(wanted)
            .map(PullRequest::from)
            .collect())
    }

    /// GitHub refuses diffs beyond a certain length with 406. They are then put together from the
    /// list of files, as they are where a server answers with the JSON form of the pull request.
    pub(super) async fn read_diff(&self, number: u64) -> Result<String, ForgeError> {
        let url = self.pull_url(number, &[])?;
        let call = Call::get(url, self.describe_pull(number), READ).accepting(DIFF);
        match self.api.send(&call).await {
            Ok(answer) if is_diff(&answer) => {
                Ok(String::from_utf8_lossy(&answer.body).into_owned())
            }
            Ok(answer) if answer.is_json() => self.diff_by_files(number).await,
            Ok(answer) => Err(answer.unexpected(&call, "a diff")),
            // Too long in one piece.
            Err(Failure::Said(said)) if said.status == 406 => self.diff_by_files(number).await,
            Err(failure) => Err(failure.explain(&call)),
        }
    }

    /// All pages of the list of files, in GitHub's order.
    async fn diff_by_files(&self, number: u64) -> Result<String, ForgeError> {
        let url = self.pull_url(number, &["files"])?;
        let call = Call::get(url, self.describe_pull(number), READ).query(&[("per_page", "100")]);
        let files: Vec<wire::PullFile> = self.api.list(&call).await?;
        Ok(files.iter().map(diff_of).collect())
    }
}

/// By the content type; without one, by how it begins.
fn is_diff(answer: &Answer) -> bool {
    match answer.kind.as_str() {
        "" => answer.body.is_empty() || answer.body.starts_with(b"diff --git "),
        "text/plain" => true,
        kind => kind.contains("diff") || kind.contains("patch"),
    }
}

/// In the format of `git diff`, as far as GitHub tells: without modes and object ids. A file
/// without a patch is shown as binary, although it may just be too large.
fn diff_of(file: &wire::PullFile) -> String {
    let after = &file.filename;
    let before = file.previous_filename.as_ref().unwrap_or(after);
    let old = if file.status == "added" {
        "/dev/null".to_owned()
    } else {
        format!("a/{before}")
    };
    let new = if file.status == "removed" {
        "/dev/null".to_owned()
    } else {
        format!("b/{after}")
    };
    let mut text = format!("diff --git a/{before} b/{after}\n");
    if before != after {
        text.push_str(&format!("rename from {before}\nrename to {after}\n"));
    }
    // Writing to a String cannot fail.
    let _ = match &file.patch {
        Some(patch) => writeln!(
            text,
            "--- {old}\n+++ {new}\n{}",
            patch.trim_end_matches('\n')
        ),
        None => writeln!(text, "Binary files {old} and {new} differ"),
    };
    text
}
