//! Branches: which is the default, where they are, who has them checked out, moving them.

use std::path::{Path, PathBuf};

use codespar_protocol::CommitId;

use super::{
    LocalForge,
    git::{Place, Run, parts},
};
use crate::ForgeError;

/// The value of a branch that is not there, to `git update-ref`.
const NOWHERE: &str = "";

pub(super) fn ref_of(branch: &str) -> String {
    format!("refs/heads/{branch}")
}

impl LocalForge {
    pub(super) async fn branch_head(&self, branch: &str) -> Result<Option<CommitId>, ForgeError> {
        self.git.commit_of(&ref_of(branch)).await
    }

    /// Of a branch that has to be there.
    pub(super) async fn known_head(&self, branch: &str) -> Result<CommitId, ForgeError> {
        let head = self.branch_head(branch).await?;
        head.ok_or_else(|| ForgeError::NotFound(format!("branch {branch}")))
    }

    pub(super) async fn find_default_branch(&self) -> Result<String, ForgeError> {
        let origin = self.symbolic(&self.git, "refs/remotes/origin/HEAD").await?;
        let origin = origin
            .as_deref()
            .and_then(|name| name.strip_prefix("refs/remotes/origin/"));
        let configured = self.git.setting("init.defaultBranch").await?;
        let usual = [origin, configured.as_deref(), Some("main"), Some("master")];
        for name in usual.into_iter().flatten() {
            if self.branch_head(name).await?.is_some() {
                return Ok(name.to_owned());
            }
        }
        // Asked where the person is: each work tree has a branch of its own.
        let here = Place::Directory(self.dir.clone());
        let current = self.symbolic(&here, "HEAD").await?;
        if let Some(name) = current
            .as_deref()
            .and_then(|name| name.strip_prefix("refs/heads/"))
            && self.branch_head(name).await?.is_some()
        {
            return Ok(name.to_owned());
        }
        self.any_branch().await
    }

    /// The branch with the latest commit; for a detached HEAD and branches of unusual names.
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
        let here = Place::Directory(self.dir.clone());
        let reason = match here.commit_of("HEAD").await? {
            Some(_) => "has no branch; make one: `git switch -c main`",
            None => "has no commit yet; make a first commit: `git commit --allow-empty -m start`",
        };
        Err(ForgeError::Refused(format!(
            "{} {reason}",
            self.describe_it()
        )))
    }

    async fn symbolic(&self, place: &Place, name: &str) -> Result<Option<String>, ForgeError> {
        let run = Run::new(["symbolic-ref", "--quiet", name]);
        let ran = place.run(run).await?;
        Ok((ran.code == Some(0)).then(|| ran.text()))
    }

    /// Refuses what is no name of a branch.
    pub(super) async fn check_name(&self, branch: &str) -> Result<(), ForgeError> {
        let name = ref_of(branch);
        let ran = self.git.run(Run::new(["check-ref-format", &name])).await?;
        match ran.code {
            Some(0) if !branch.starts_with('-') => Ok(()),
            _ => Err(ForgeError::Refused(format!(
                "`{branch}` cannot be the name of a branch"
            ))),
        }
    }

    /// Moves a branch from where it was, or makes it; never from anywhere else.
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

    /// The work trees that have a branch checked out and are there.
    pub(super) async fn work_trees_of(&self, branch: &str) -> Result<Vec<PathBuf>, ForgeError> {
        let run = Run::new(["worktree", "list", "--porcelain", "-z"]);
        let ran = self.git.run(run).await?.checked("list the work trees")?;
        let on_branch = format!("branch {}", ref_of(branch));
        let mut path = None;
        let mut found = Vec::new();
        for line in parts(&ran.out) {
            if let Some(rest) = line.strip_prefix(b"worktree ") {
                path = Some(path_of(rest));
            } else if line == on_branch.as_bytes()
                && let Some(path) = path.take()
                && path.join(".git").exists()
            {
                found.push(path);
            }
        }
        Ok(found)
    }

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
            return Err(in_use(branch, tree));
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

#[cfg(unix)]
fn path_of(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

#[cfg(not(unix))]
fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(bytes).into_owned())
}
