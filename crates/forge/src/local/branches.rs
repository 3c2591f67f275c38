//! Branches: which is the default, where they are, who has them checked out, moving them.
//!
//! A branch is only ever addressed by its full reference name, so that a name such as `-d` or
//! `@{-1}` cannot be taken for an option or a revision. All updates name the expected old value;
//! git makes the comparison and the update one step.

use std::path::Path;

use codespar_git::{WorkTreeEntry, is_branch_name};
use codespar_protocol::CommitId;

use super::{
    LocalForge,
    git::{Run, blocking},
};
use crate::ForgeError;

/// The value of a branch that is not there, to `git update-ref`.
const NOWHERE: &str = "";

pub(super) fn ref_of(branch: &str) -> String {
    format!("refs/heads/{branch}")
}

impl LocalForge {
    /// A text that cannot be the name of a branch is `None`, without asking git.
    pub(super) async fn branch_head(&self, branch: &str) -> Result<Option<CommitId>, ForgeError> {
        if !is_branch_name(branch) {
            return Ok(None);
        }
        self.git.commit_of(&ref_of(branch)).await
    }

    /// Of a branch that has to be there.
    pub(super) async fn known_head(&self, branch: &str) -> Result<CommitId, ForgeError> {
        let head = self.branch_head(branch).await?;
        head.ok_or_else(|| ForgeError::NotFound(format!("branch {branch}")))
    }

    /// The first that exists of: the remote's HEAD, `init.defaultBranch`, `main`, `master`, the
    /// current branch, the branch with the latest commit. The user's current branch comes late on
    /// purpose: it may be a topic branch.
    pub(super) async fn find_default_branch(&self) -> Result<String, ForgeError> {
        let origin = self.symbolic("refs/remotes/origin/HEAD").await?;
        let origin = origin
            .as_deref()
            .and_then(|name| name.strip_prefix("refs/remotes/origin/"));
        let repository = self.repository.clone();
        let configured = blocking(move || repository.setting("init.defaultBranch")).await?;
        let usual = [origin, configured.as_deref(), Some("main"), Some("master")];
        for name in usual.into_iter().flatten() {
            if self.branch_head(name).await?.is_some() {
                return Ok(name.to_owned());
            }
        }
        let current = self.symbolic("HEAD").await?;
        if let Some(name) = current
            .as_deref()
            .and_then(|name| name.strip_prefix("refs/heads/"))
            && self.branch_head(name).await?.is_some()
        {
            return Ok(name.to_owned());
        }
        self.any_branch().await
    }

    /// The branch with the latest commit; for a detached HEAD and branches of unusual names. Our
    /// own `codespar/` branches never count. Without any branch the error says which command makes
    /// one.
    async fn any_branch(&self) -> Result<String, ForgeError> {
        let list = [
            "for-each-ref",
            "--sort=-committerdate",
            "--format=%(refname:strip=2)",
            "refs/heads/",
        ];
        let names = self.git.text("list the branches", Run::new(list)).await?;
        let ours = |name: &&str| name.starts_with("codespar/");
        if let Some(name) = names.lines().find(|name| !ours(name)) {
            return Ok(name.to_owned());
        }
        let reason = match self.git.commit_of("HEAD").await? {
            Some(_) => "has no branch; make one: `git switch -c main`",
            None => "has no commit yet; make a first commit: `git commit --allow-empty -m start`",
        };
        Err(ForgeError::Refused(format!(
            "{} {reason}",
            self.describe_it()
        )))
    }

    /// The reference that a symbolic one points to; `None` if it does not exist or is not symbolic.
    async fn symbolic(&self, name: &str) -> Result<Option<String>, ForgeError> {
        let run = Run::new(["symbolic-ref", "--quiet", name]);
        let ran = self.git.run(run).await?;
        Ok((ran.code == Some(0)).then(|| ran.text()))
    }

    /// Refuses what is no name of a branch.
    pub(super) fn check_name(&self, branch: &str) -> Result<(), ForgeError> {
        match is_branch_name(branch) {
            true => Ok(()),
            false => Err(ForgeError::Refused(format!(
                "`{branch}` cannot be the name of a branch"
            ))),
        }
    }

    /// Moves a branch from where it was, or makes it; never from anywhere else. `from` is the
    /// expected value; `None` means that the branch must not exist. [`ForgeError::Moved`] if a
    /// branch that existed is elsewhere by now.
    pub(super) async fn move_branch(
        &self,
        branch: &str,
        from: Option<&CommitId>,
        to: &CommitId,
    ) -> Result<(), ForgeError> {
        let name = ref_of(branch);
        let old = from.map_or(NOWHERE, |commit| commit.0.as_str());
        let message = "codespar: move the branch";
        let args = ["update-ref", "--no-deref", "-m", message, &name, &to.0, old];
        let ran = self.git.run(Run::new(args).committer(&self.who)).await?;
        if ran.code == Some(0) {
            return Ok(());
        }
        let found = self.branch_head(branch).await?;
        match (found, from) {
            (Some(found), Some(expected)) if found != *expected => Err(ForgeError::Moved {
                branch: branch.to_owned(),
                found,
                expected: expected.clone(),
            }),
            _ => Err(ran.failure(&format!("move branch {branch}"))),
        }
    }

    /// Undoes a move to a commit that turned out to be damaged. Does nothing but fail if somebody
    /// has moved the branch on since.
    pub(super) async fn move_back(
        &self,
        branch: &str,
        to: Option<&CommitId>,
        from: &CommitId,
    ) -> Result<(), ForgeError> {
        let name = ref_of(branch);
        let args = match to {
            Some(to) => vec!["update-ref", "--no-deref", &name, &to.0, &from.0],
            None => vec!["update-ref", "--no-deref", "-d", &name, &from.0],
        };
        let run = Run::new(args).committer(&self.who);
        self.git
            .text(&format!("move branch {branch} back"), run)
            .await?;
        Ok(())
    }

    /// The work trees that have a branch checked out and are there.
    pub(super) async fn work_trees_of(
        &self,
        branch: &str,
    ) -> Result<Vec<WorkTreeEntry>, ForgeError> {
        let repository = self.repository.clone();
        let mut all = blocking(move || repository.work_trees()).await?;
        all.retain(|tree| tree.branch.as_deref() == Some(branch));
        Ok(all)
    }

    /// Refused for the default branch and for one that is checked out. Deleting fails if the branch
    /// moves between the look and the deletion, so no new commit is lost.
    pub(super) async fn remove_branch(&self, branch: &str) -> Result<(), ForgeError> {
        let Some(head) = self.branch_head(branch).await? else {
            return Ok(());
        };
        if branch == self.find_default_branch().await? {
            return Err(ForgeError::Refused(format!(
                "{branch} is the default branch; it is not deleted"
            )));
        }
        if let [tree, ..] = &self.work_trees_of(branch).await?[..] {
            return Err(in_use(branch, &tree.path));
        }
        let name = ref_of(branch);
        let run = Run::new(["update-ref", "--no-deref", "-d", &name, &head.0]);
        let ran = self.git.run(run).await?;
        if ran.code != Some(0) && self.branch_head(branch).await?.is_some() {
            return Err(ran.failure(&format!("delete branch {branch}")));
        }
        Ok(())
    }
}

pub(super) fn in_use(branch: &str, tree: &Path) -> ForgeError {
    ForgeError::Refused(format!(
        "branch {branch} is checked out in {}; switch to another branch there first",
        tree.display()
    ))
}
