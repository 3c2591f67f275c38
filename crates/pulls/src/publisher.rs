//! The one way to the outside: whatever is committed, opened, changed or posted passes here, and a
//! secret in it stops the publish with its place named.
//!
//! `Link` and the operations of `runtime` hand out a `Publisher`, never the forge behind it. It is
//! a `Forge` itself, so callers cannot tell and need not remember to check. Every method is written
//! out here, also those for which the trait has a default, so that each is decided on.
//!
//! | | known secret | likely secret | line that was there before |
//! |---|---|---|---|
//! | message, title, body, review, check | replaced by a mark | refused | not refused |
//! | content of a file | refused | refused | not refused |

use std::sync::Arc;

use async_trait::async_trait;
use codespar_agent::Redactor;
use codespar_forge::{
    Activity, CommitChecks, FileAt, Forge, ForgeError, MergeOrder, Mergeability, NewCommit,
    NewPullRequest, NewReview, PullRequestChange, Signature, TreeEntry,
};
use codespar_protocol::{
    Check, CommitId, FileChange, MergeStrategy, Permission, PullRequest, PullRequestState,
    RepoPath, Review,
};

/// What a refusal calls the place of the secret, as in `title of the pull request:1`.
const COMMIT_MESSAGE: &str = "commit message";
pub const TITLE: &str = "title of the pull request";
pub const BODY: &str = "body of the pull request";
pub const CHECK: &str = "summary of the check";

/// A forge that publishes no secrets.
///
/// What is known to be one is taken out of text, by value and by shape; text that holds a likely
/// one after that, and files that hold any, are refused.
pub struct Publisher {
    forge: Arc<dyn Forge>,
    redactor: Arc<Redactor>,
}

impl Publisher {
    /// Publishes to this forge.
    pub fn new(forge: Arc<dyn Forge>, redactor: Arc<Redactor>) -> Self {
        Self { forge, redactor }
    }

    /// Refuses what would be refused later, before anything of it is outside: a commit, and texts
    /// that are to follow it, each with what it is. The calls that follow check again: this only
    /// moves a refusal to before the commit, so that no branch is left behind by a run that cannot
    /// open its pull request.
    pub async fn examine(
        &self,
        commit: &NewCommit,
        texts: &[(&str, &str)],
    ) -> Result<(), ForgeError> {
        self.check(commit).await?;
        self.text(COMMIT_MESSAGE, &commit.message, "")?;
        for (what, text) in texts {
            self.text(what, text, "")?;
        }
        Ok(())
    }

    /// The text without secrets, if that is enough. `before` is what is published already; lines of
    /// it are not refused. The error names the line and the kind of secret, never the secret.
    fn text(&self, what: &str, text: &str, before: &str) -> Result<String, ForgeError> {
        let text = self.redactor.redact(text).into_owned();
        match self.redactor.leak(&text, before, None) {
            Some(leak) => Err(refusal(what, leak.line, &leak.what)),
            None => Ok(text),
        }
    }

    /// Files are committed as they are, so one that holds a secret stays here. The old content is
    /// fetched only if the new one is suspicious, since each costs a request: a secret that was in
    /// the file before is no news. A moved file is compared with what it was under its old name.
    async fn check(&self, new: &NewCommit) -> Result<(), ForgeError> {
        for change in &new.changes.0 {
            let Some((path, content, _)) = change.after() else {
                continue;
            };
            let old = match change {
                FileChange::Moved { from, .. } => from,
                _ => path,
            };
            let text = String::from_utf8_lossy(&content.0);
            let name = path.to_string();
            if self.redactor.leak(&text, "", Some(&name)).is_none() {
                continue;
            }
            let before = self.forge.file(new.files_of(), old).await?;
            let before = before.map(|file| String::from_utf8_lossy(&file.content).into_owned());
            let before = before.unwrap_or_default();
            if let Some(leak) = self.redactor.leak(&text, &before, Some(&name)) {
                return Err(refusal(&name, leak.line, &leak.what));
            }
        }
        Ok(())
    }
}

fn refusal(place: &str, line: usize, what: &str) -> ForgeError {
    ForgeError::Refused(format!(
        "`{place}:{line}` would publish a secret ({what}), so it was not published; take it out, or \
         commit it yourself if it is none"
    ))
}

#[async_trait]
impl Forge for Publisher {
    fn describe(&self) -> String {
        self.forge.describe()
    }

    fn max_body_chars(&self) -> usize {
        self.forge.max_body_chars()
    }

    async fn whoami(&self) -> Result<String, ForgeError> {
        self.forge.whoami().await
    }

    async fn default_branch(&self) -> Result<String, ForgeError> {
        self.forge.default_branch().await
    }

    async fn head(&self, branch: &str) -> Result<Option<CommitId>, ForgeError> {
        self.forge.head(branch).await
    }

    async fn tree(&self, commit: &CommitId) -> Result<Vec<TreeEntry>, ForgeError> {
        self.forge.tree(commit).await
    }

    async fn file(&self, commit: &CommitId, path: &RepoPath) -> Result<Option<FileAt>, ForgeError> {
        self.forge.file(commit, path).await
    }

    async fn search(&self, words: &[String], limit: usize) -> Result<Vec<String>, ForgeError> {
        self.forge.search(words, limit).await
    }

    async fn commit(&self, new: &NewCommit) -> Result<CommitId, ForgeError> {
        self.check(new).await?;
        let new = NewCommit {
            message: self.text(COMMIT_MESSAGE, &new.message, "")?,
            ..new.clone()
        };
        self.forge.commit(&new).await
    }

    async fn signature(&self, commit: &CommitId) -> Result<Signature, ForgeError> {
        self.forge.signature(commit).await
    }

    async fn open_pull_request(&self, new: &NewPullRequest) -> Result<PullRequest, ForgeError> {
        let new = NewPullRequest {
            title: self.text(TITLE, &new.title, "")?,
            body: self.text(BODY, &new.body, "")?,
            ..new.clone()
        };
        self.forge.open_pull_request(&new).await
    }

    async fn change_pull_request(
        &self,
        number: u64,
        change: &PullRequestChange,
    ) -> Result<PullRequest, ForgeError> {
        let mut change = change.clone();
        if let Some(title) = &mut change.title {
            *title = self.text(TITLE, title, "")?;
        }
        if let Some(body) = &mut change.body {
            // What others wrote into it is theirs.
            let before = self.forge.pull_request(number).await?.body;
            *body = self.text(BODY, body, &before)?;
        }
        self.forge.change_pull_request(number, &change).await
    }

    async fn pull_request(&self, number: u64) -> Result<PullRequest, ForgeError> {
        self.forge.pull_request(number).await
    }

    async fn pull_requests(
        &self,
        state: Option<PullRequestState>,
    ) -> Result<Vec<PullRequest>, ForgeError> {
        self.forge.pull_requests(state).await
    }

    async fn diff(&self, number: u64) -> Result<String, ForgeError> {
        self.forge.diff(number).await
    }

    async fn checks(&self, commit: &CommitId) -> Result<CommitChecks, ForgeError> {
        self.forge.checks(commit).await
    }

    async fn record_check(&self, commit: &CommitId, check: &Check) -> Result<(), ForgeError> {
        let mut check = check.clone();
        if let Some(summary) = &mut check.summary {
            *summary = self.text(CHECK, summary, "")?;
        }
        self.forge.record_check(commit, &check).await
    }

    async fn check_output(
        &self,
        commit: &CommitId,
        check: &str,
    ) -> Result<Option<String>, ForgeError> {
        let output = self.forge.check_output(commit, check).await?;
        Ok(output.map(|text| self.redactor.redact(&text).into_owned()))
    }

    async fn mergeability(&self, number: u64) -> Result<Mergeability, ForgeError> {
        self.forge.mergeability(number).await
    }

    async fn review(&self, number: u64, new: &NewReview) -> Result<Review, ForgeError> {
        let mut new = new.clone();
        new.body = self.text("text of the review", &new.body, "")?;
        for comment in &mut new.comments {
            let place = format!("comment on {}:{}", comment.path, comment.line);
            comment.body = self.text(&place, &comment.body, "")?;
        }
        self.forge.review(number, &new).await
    }

    async fn reviews(&self, number: u64) -> Result<Vec<Review>, ForgeError> {
        self.forge.reviews(number).await
    }

    async fn permission(&self, user: &str) -> Result<Permission, ForgeError> {
        self.forge.permission(user).await
    }

    async fn default_strategy(&self) -> Result<MergeStrategy, ForgeError> {
        self.forge.default_strategy().await
    }

    async fn merge(&self, number: u64, order: &MergeOrder) -> Result<CommitId, ForgeError> {
        let mut order = order.clone();
        if let Some(title) = &mut order.title {
            *title = self.text("title of the merge", title, "")?;
        }
        self.forge.merge(number, &order).await
    }

    async fn delete_branch(&self, branch: &str) -> Result<(), ForgeError> {
        self.forge.delete_branch(branch).await
    }

    async fn activity(&self, number: u64) -> Result<Vec<Activity>, ForgeError> {
        self.forge.activity(number).await
    }
}
