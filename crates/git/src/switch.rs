//! Switching a work tree to a branch, as `git switch` does, without what the repository configures.
//!
//! Files and index are brought along by git's own two-way merge of trees, which keeps changes that
//! are not committed where the two commits agree and refuses where they would be lost. `HEAD` is
//! written here, under git's own lock, because a view has only a copy of it.

use std::{
    fs, io,
    io::Write as _,
    path::{Path, PathBuf},
};

use crate::{Git, GitError, Repository, is_branch_name};

/// Files that git leaves while something is not finished.
const UNDER_WAY: &[&str] = &[
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "BISECT_LOG",
    "rebase-merge",
    "rebase-apply",
];

/// What became of switching.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Switched {
    /// The work tree is on the branch, at the commit.
    Done {
        /// The branch that was checked out before; `None` when HEAD was detached.
        from: Option<String>,
        /// The commit that was checked out before.
        from_commit: String,
    },
    /// It stays where it was, for this reason.
    Refused(String),
}

/// Takes the lock away unless the file was put in its place.
struct HeadLock {
    path: PathBuf,
    head: PathBuf,
    is_done: bool,
}

impl HeadLock {
    fn take(git_dir: &Path) -> Result<(Self, fs::File), GitError> {
        let lock = Self {
            path: git_dir.join("HEAD.lock"),
            head: git_dir.join("HEAD"),
            is_done: false,
        };
        let mut options = fs::OpenOptions::new();
        match options.write(true).create_new(true).open(&lock.path) {
            Ok(file) => Ok((lock, file)),
            Err(error) => {
                let path = lock.path.clone();
                // It belongs to somebody else.
                std::mem::forget(lock);
                Err(GitError::file(path)(error))
            }
        }
    }

    fn finish(mut self, mut file: fs::File, content: &str) -> io::Result<()> {
        file.write_all(content.as_bytes())?;
        file.sync_all()?;
        fs::rename(&self.path, &self.head)?;
        self.is_done = true;
        Ok(())
    }
}

impl Drop for HeadLock {
    fn drop(&mut self) {
        if !self.is_done {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Repository {
    /// Puts the work tree on a branch at a commit. The branch is made if there is none; one that is
    /// elsewhere is moved forward, and left alone if the commit does not follow from it. Nothing
    /// that is not committed is lost: where it would be, all stays as it was. No hook runs.
    pub fn switch(&self, branch: &str, commit: &str) -> Result<Switched, GitError> {
        if !is_branch_name(branch) {
            return Ok(Switched::Refused(format!(
                "`{branch}` cannot be the name of a branch"
            )));
        }
        let git = self.git_with_files()?;
        let commit = git.known_commit(commit)?;
        git.check_size(&commit)?;
        let git_dir = &self.location().git_dir;
        if let Some(name) = UNDER_WAY.iter().find(|name| git_dir.join(name).exists()) {
            return Ok(Switched::Refused(format!(
                "another operation is under way here ({name}); finish or abort it first"
            )));
        }
        if let Some(reason) = self.in_use_elsewhere(branch)? {
            return Ok(Switched::Refused(reason));
        }
        let (lock, file) = HeadLock::take(git_dir)?;
        let Some(from_commit) = git.commit_id("HEAD")? else {
            return Ok(Switched::Refused("there is no commit here yet".to_owned()));
        };
        let name = format!("refs/heads/{branch}");
        let known = git.commit_id(&name)?;
        if let Some(known) = known.as_deref().filter(|known| *known != commit)
            && !is_ancestor(&git, known, &commit)?
        {
            return Ok(Switched::Refused(format!(
                "branch {branch} has commits here that the pull request does not have; rename it \
                 first: git branch -m {branch} {branch}-mine"
            )));
        }
        let head = git.call(["symbolic-ref", "--quiet", "HEAD"]).run()?;
        let from = (head.code == Some(0)).then(|| head.text());
        let merge = ["read-tree", "-m", "-u", &from_commit, &commit];
        let merged = git.call(merge).run()?;
        if merged.code != Some(0) {
            return Ok(Switched::Refused(in_the_way(&merged.message)));
        }
        let old = known.as_deref().unwrap_or_default();
        let log = "codespar: pr checkout";
        git.run(["update-ref", "--no-deref", "-m", log, &name, &commit, old])?;
        let left = from.as_deref().unwrap_or(&from_commit);
        let left = left.strip_prefix("refs/heads/").unwrap_or(left);
        // For the log of HEAD, which `git switch -` reads. The file itself is written below.
        let log = format!("checkout: moving from {left} to {branch}");
        git.run(["symbolic-ref", "-m", &log, "HEAD", &name])?;
        let path = lock.head.clone();
        lock.finish(file, &format!("ref: {name}\n"))
            .map_err(GitError::file(path))?;
        let from = from.and_then(|from| Some(from.strip_prefix("refs/heads/")?.to_owned()));
        Ok(Switched::Done { from, from_commit })
    }

    /// A branch has one work tree at a time, or commits in one would change the others.
    fn in_use_elsewhere(&self, branch: &str) -> Result<Option<String>, GitError> {
        let own = &self.location().git_dir;
        let other = self
            .work_trees()?
            .into_iter()
            .find(|tree| tree.branch.as_deref() == Some(branch) && tree.location.git_dir != *own);
        Ok(other.map(|tree| {
            format!(
                "branch {branch} is checked out in {}; work on it there, or switch that one first",
                tree.path.display()
            )
        }))
    }
}

fn is_ancestor(git: &Git, one: &str, other: &str) -> Result<bool, GitError> {
    let output = git
        .call(["merge-base", "--is-ancestor", one, other])
        .run()?;
    Ok(output.code == Some(0))
}

/// Git names a file in quotes, or files on lines that begin with a tab.
fn in_the_way(message: &str) -> String {
    let listed = message.lines().filter_map(|line| line.strip_prefix('\t'));
    let mut files: Vec<&str> = listed.collect();
    if files.is_empty() {
        let quoted = message.lines().filter_map(|line| line.split('\'').nth(1));
        files.extend(quoted);
    }
    match &files[..] {
        [] => format!("git could not switch: {}", message.trim()),
        files => format!(
            "changes that are not committed would be overwritten: {}; commit them, or put them \
             aside with git stash",
            files.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::Trust;

    fn git(dir: &Path, args: &[&str]) -> String {
        let output = Command::new("git")
            .arg("-C")
            .arg(dir)
            .args(["-c", "user.name=A", "-c", "user.email=a@example.invalid"])
            .args(args)
            .output()
            .unwrap();
        assert!(output.status.success(), "git {args:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// `main` with two files, and `topic` that changes one and adds one.
    fn repository() -> (tempfile::TempDir, String) {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path();
        git(at, &["init", "--quiet", "-b", "main"]);
        fs::write(at.join("a"), "one\n").unwrap();
        fs::write(at.join("b"), "one\n").unwrap();
        git(at, &["add", "."]);
        git(at, &["commit", "--quiet", "-m", "Begin"]);
        git(at, &["switch", "--quiet", "-c", "topic"]);
        fs::write(at.join("a"), "two\n").unwrap();
        fs::write(at.join("new"), "new\n").unwrap();
        git(at, &["add", "."]);
        git(at, &["commit", "--quiet", "-m", "Topic"]);
        let commit = git(at, &["rev-parse", "HEAD"]);
        git(at, &["switch", "--quiet", "main"]);
        (dir, commit)
    }

    fn switch(dir: &Path, branch: &str, commit: &str) -> Switched {
        let found = Repository::find(dir, Trust::Untrusted).unwrap();
        found.switch(branch, commit).unwrap()
    }

    #[test]
    fn files_index_and_head_go_to_the_branch_and_other_changes_stay() {
        let (dir, commit) = repository();
        let at = dir.path();
        fs::write(at.join("b"), "mine\n").unwrap();
        let hook = at.join(".git/hooks/post-checkout");
        fs::create_dir_all(hook.parent().unwrap()).unwrap();
        fs::write(&hook, "#!/bin/sh\ntouch ran\n").unwrap();
        let done = Switched::Done {
            from: Some("main".to_owned()),
            from_commit: git(at, &["rev-parse", "main"]),
        };
        assert_eq!(switch(at, "topic", &commit), done);
        assert_eq!(git(at, &["symbolic-ref", "HEAD"]), "refs/heads/topic");
        assert_eq!(git(at, &["status", "--porcelain"]), "M b");
        assert_eq!(fs::read_to_string(at.join("a")).unwrap(), "two\n");
        assert_eq!(fs::read_to_string(at.join("b")).unwrap(), "mine\n");
        assert!(!at.join("ran").exists());
        git(at, &["switch", "--quiet", "-"]);
        assert_eq!(git(at, &["symbolic-ref", "HEAD"]), "refs/heads/main");
        // Another branch is made at the commit.
        assert!(matches!(switch(at, "made", &commit), Switched::Done { .. }));
        assert_eq!(git(at, &["rev-parse", "made"]), commit);
    }

    #[test]
    fn nothing_that_is_not_committed_is_overwritten() {
        let (dir, commit) = repository();
        let at = dir.path();
        for (file, text) in [("a", "mine\n"), ("new", "mine\n")] {
            fs::write(at.join(file), text).unwrap();
            let Switched::Refused(reason) = switch(at, "topic", &commit) else {
                panic!("{file} was overwritten");
            };
            assert!(reason.contains(file), "{reason}");
            assert_eq!(fs::read_to_string(at.join(file)).unwrap(), text);
            assert_eq!(git(at, &["symbolic-ref", "HEAD"]), "refs/heads/main");
            git(at, &["checkout", "--quiet", "."]);
            git(at, &["clean", "--quiet", "-fd"]);
        }
        assert!(!at.join(".git/HEAD.lock").exists());
        fs::write(at.join(".git/MERGE_HEAD"), &commit).unwrap();
        assert!(matches!(switch(at, "topic", &commit), Switched::Refused(_)));
    }

    #[test]
    fn a_hostile_name_a_diverged_branch_and_one_in_use_are_refused() {
        let (dir, commit) = repository();
        let at = dir.path();
        for name in ["-f", "a..b", "HEAD", "x y", "../../evil", "@{-1}"] {
            assert!(
                matches!(switch(at, name, &commit), Switched::Refused(_)),
                "{name}"
            );
        }
        git(at, &["branch", "other", "main"]);
        git(at, &["switch", "--quiet", "other"]);
        git(at, &["commit", "--quiet", "--allow-empty", "-m", "Mine"]);
        git(at, &["switch", "--quiet", "main"]);
        let Switched::Refused(reason) = switch(at, "other", &commit) else {
            panic!("commits were lost");
        };
        assert!(reason.contains("has commits here"), "{reason}");
        let tree = at.join("../linked-tree");
        let _ = fs::remove_dir_all(&tree);
        git(
            at,
            &[
                "worktree",
                "add",
                "--quiet",
                tree.to_str().unwrap(),
                "topic",
            ],
        );
        let outcome = switch(at, "topic", &commit);
        git(
            at,
            &["worktree", "remove", "--force", tree.to_str().unwrap()],
        );
        assert!(matches!(outcome, Switched::Refused(_)), "{outcome:?}");
    }

    #[test]
    fn a_tree_with_links_writes_nothing_outside() {
        let (dir, _) = repository();
        let at = dir.path();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("x"), "theirs\n").unwrap();
        // `d` is a link where we are, and a directory in the commit.
        git(at, &["switch", "--quiet", "-c", "evil"]);
        fs::create_dir(at.join("d")).unwrap();
        fs::write(at.join("d/x"), "evil\n").unwrap();
        git(at, &["add", "."]);
        git(at, &["commit", "--quiet", "-m", "Evil"]);
        let commit = git(at, &["rev-parse", "HEAD"]);
        git(at, &["switch", "--quiet", "main"]);
        std::os::unix::fs::symlink(outside.path(), at.join("d")).unwrap();
        let outcome = switch(at, "evil", &commit);
        assert!(matches!(outcome, Switched::Refused(_)), "{outcome:?}");
        let kept = fs::read_to_string(outside.path().join("x")).unwrap();
        assert_eq!(kept, "theirs\n");
    }
}
