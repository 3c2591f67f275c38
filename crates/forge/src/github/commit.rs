//! One commit with many files, all of it or nothing: blobs, tree, commit, then the branch.
//!
//! Objects are created first and are visible to nobody. Creating or advancing the branch is the
//! single step that publishes them. A crash before it leaves objects that nothing refers to; a
//! crash after it is found by the key in the commit's message.
//!
//! ```text
//! branch absent          create it at the new commit
//! branch at the parent   advance it, without force
//! branch elsewhere       our own commit is among the last ones: return it; else Moved
//! ```

use std::collections::HashSet;

use base64::{Engine, engine::general_purpose::STANDARD};
use codespar_protocol::{ChangeSet, CommitId};
use reqwest::Method;
use serde_json::{Value, json};

use super::{
    GitHubForge,
    api::{Call, Made},
    failure::Failure,
    wire,
};
use crate::{ForgeError, NewCommit};

const NEEDS: &str = "Contents: write";

impl GitHubForge {
    /// Two calls with the same key at the same time may both create a commit object, but only one
    /// of them becomes part of the branch; the other call finds it in `settle`.
    pub(super) async fn make_commit(&self, new: &NewCommit) -> Result<CommitId, ForgeError> {
        let head = self.find_head(&new.branch).await?;
        if let Some(head) = &head
            && *head != new.parent
        {
            return match self.own_commit(head, new).await? {
                Some(own) => Ok(own),
                None => Err(moved(new, head.clone())),
            };
        }
        let tree = self.make_tree(new).await?;
        let mut parents = vec![new.parent.0.as_str()];
        parents.extend(new.merged.as_ref().map(|merged| merged.0.as_str()));
        let mut body = json!({"message": new.message, "tree": tree, "parents": parents});
        if let Some(author) = &new.author {
            body["author"] = json!({"name": author.name, "email": author.email});
        }
        // What is made up to here hangs in the air: making it twice does no harm.
        let commit = CommitId(self.make_object("commits", body, new).await?);
        match head {
            Some(_) => self.advance(new, commit).await,
            None => self.make_branch(new, commit).await,
        }
    }

    /// Our commit among the last ones of the branch. Looks at the last 100 commits, up to the
    /// parent. The key alone is not enough: the commit must also stand directly on the expected
    /// parent.
    async fn own_commit(
        &self,
        head: &CommitId,
        new: &NewCommit,
    ) -> Result<Option<CommitId>, ForgeError> {
        let what = format!("commit {} of {}", head.short(), self.full_name());
        let call = Call::get(self.repo_url(&["commits"])?, what, "Contents: read")
            .query(&[("sha", &head.0), ("per_page", "100")]);
        let last: Vec<wire::ListedCommit> = self.api.read(&call).await?;
        let trailer = format!("CodeSpar-Key: {}", new.key);
        let own = last
            .into_iter()
            .take_while(|commit| commit.sha != new.parent.0)
            .find(|commit| {
                let on_parent = commit
                    .parents
                    .first()
                    .is_some_and(|sha| sha.sha == new.parent.0);
                on_parent
                    && commit
                        .commit
                        .message
                        .lines()
                        .any(|line| line.trim() == trailer)
            });
        Ok(own.map(|commit| CommitId(commit.sha)))
    }

    /// The id of the new tree. Content travels as base64, so that any bytes are possible. GitHub
    /// applies the entries to the parent's tree; unchanged files are not sent. An empty change set
    /// gives the parent's own tree.
    async fn make_tree(&self, new: &NewCommit) -> Result<String, ForgeError> {
        let commit = new.files_of();
        let url = self.repo_url(&["git", "commits", &commit.0])?;
        let what = format!("commit {} of {}", commit.short(), self.full_name());
        let parent: wire::GitCommit = self
            .api
            .read(&Call::get(url, what, "Contents: read"))
            .await?;
        if new.changes.is_empty() {
            return Ok(parent.tree.sha);
        }
        let mut entries = Vec::new();
        for (path, content, mode) in new.changes.0.iter().filter_map(|change| change.after()) {
            let body = json!({"content": STANDARD.encode(&content.0), "encoding": "base64"});
            let sha = self.make_object("blobs", body, new).await?;
            entries.push(json!({"path": path, "mode": mode.as_git(), "type": "blob", "sha": sha}));
        }
        entries.extend(deletions(&new.changes));
        let body = json!({"base_tree": parent.tree.sha, "tree": entries});
        self.make_object("trees", body, new).await
    }

    /// The id of the new object. An object that is created twice does no harm, since nothing refers
    /// to it yet, hence the call may be repeated freely.
    async fn make_object(
        &self,
        kind: &str,
        body: Value,
        new: &NewCommit,
    ) -> Result<String, ForgeError> {
        let call = self.commit_call(Method::POST, &["git", kind], body, new)?;
        let object: wire::Object = self.api.read(&call).await?;
        Ok(object.sha)
    }

    /// The update is an assignment of a fixed value without force: GitHub refuses it unless the
    /// branch is an ancestor of the commit.
    async fn advance(&self, new: &NewCommit, commit: CommitId) -> Result<CommitId, ForgeError> {
        let parts: Vec<&str> = ["git", "refs", "heads"]
            .into_iter()
            .chain(new.branch.split('/'))
            .collect();
        let body = json!({"sha": commit.0, "force": false});
        let call = self.commit_call(Method::PATCH, &parts, body, new)?;
        match self.api.send(&call).await {
            Ok(_) => Ok(commit),
            Err(failure @ Failure::Said(_)) => self.settle(new, failure.explain(&call)).await,
            Err(failure) => Err(failure.explain(&call)),
        }
    }

    async fn make_branch(&self, new: &NewCommit, commit: CommitId) -> Result<CommitId, ForgeError> {
        let body = json!({"ref": format!("refs/heads/{}", new.branch), "sha": commit.0});
        let call = self
            .commit_call(Method::POST, &["git", "refs"], body, new)?
            .once();
        match self.api.make(&call, || self.own_on_branch(new)).await {
            Ok(Made::Now(_)) => Ok(commit),
            Ok(Made::Before(own)) => Ok(own),
            Err(failure @ Failure::Said(_)) => self.settle(new, failure.explain(&call)).await,
            Err(failure) => Err(failure.explain(&call)),
        }
    }

    async fn own_on_branch(&self, new: &NewCommit) -> Result<Option<CommitId>, ForgeError> {
        match self.find_head(&new.branch).await? {
            Some(head) => self.own_commit(&head, new).await,
            None => Ok(None),
        }
    }

    /// The branch was refused: because we had done it already, because it has moved, or for
    /// GitHub's own reason. `refusal` is returned if the branch does not explain it.
    async fn settle(&self, new: &NewCommit, refusal: ForgeError) -> Result<CommitId, ForgeError> {
        match self.find_head(&new.branch).await? {
            Some(head) if head != new.parent => match self.own_commit(&head, new).await? {
                Some(own) => Ok(own),
                None => Err(moved(new, head)),
            },
            _ => Err(refusal),
        }
    }

    fn commit_call(
        &self,
        method: Method,
        parts: &[&str],
        body: Value,
        new: &NewCommit,
    ) -> Result<Call, ForgeError> {
        let what = format!("a commit on {} of {}", new.branch, self.full_name());
        Ok(Call::with(method, self.repo_url(parts)?, body, what, NEEDS))
    }

    /// Any refusal is fine if the branch is gone afterwards.
    pub(super) async fn remove_branch(&self, branch: &str) -> Result<(), ForgeError> {
        let parts: Vec<&str> = ["git", "refs", "heads"]
            .into_iter()
            .chain(branch.split('/'))
            .collect();
        let what = format!("deleting branch {branch} of {}", self.full_name());
        let mut call = Call::get(self.repo_url(&parts)?, what, NEEDS);
        call.method = Method::DELETE;
        match self.api.send(&call).await {
            Ok(_) => Ok(()),
            Err(failure @ Failure::Said(_)) => match self.find_head(branch).await? {
                None => Ok(()),
                Some(_) => Err(failure.explain(&call)),
            },
            Err(failure) => Err(failure.explain(&call)),
        }
    }
}

fn moved(new: &NewCommit, found: CommitId) -> ForgeError {
    ForgeError::Moved {
        branch: new.branch.clone(),
        found,
        expected: new.parent.clone(),
    }
}

/// Names that are gone, unless another file takes them over. A null id removes the path from the
/// base tree.
fn deletions(changes: &ChangeSet) -> Vec<Value> {
    let taken: HashSet<_> = changes
        .0
        .iter()
        .filter_map(|change| change.after())
        .map(|(path, ..)| path)
        .collect();
    let gone = changes.0.iter().filter_map(|change| change.gone());
    gone.filter(|path| !taken.contains(path))
        .map(|path| json!({"path": path, "mode": "100644", "type": "blob", "sha": null}))
        .collect()
}
