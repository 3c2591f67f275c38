//! A throw-away copy of a repository at one commit, in which tests run.
//!
//! It borrows the objects of the person's repository and shares nothing else with it: neither a
//! worktree entry nor a lock is left there, whatever happens to us.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use codespar_protocol::{ChangeSet, CommitId};

use crate::{Failure, apply};

/// What would point git at another repository than the one we name.
const FOREIGN: [&str; 8] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
];

/// The copy. It goes when this is dropped.
pub(crate) struct Tree {
    path: PathBuf,
    commit: CommitId,
    stays: bool,
}

impl Tree {
    /// Makes it, in place of one that an earlier attempt left.
    pub(crate) fn open(clone: &Path, path: &Path, commit: &CommitId) -> Result<Self, Failure> {
        let _ = std::fs::remove_dir_all(path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)
                .map_err(|error| Failure::Broken(format!("{}: {error}", parent.display())))?;
        }
        let tree = Self {
            path: path.to_path_buf(),
            commit: commit.clone(),
            stays: false,
        };
        let (from, to) = (clone.to_string_lossy(), path.to_string_lossy());
        git(
            clone,
            &[
                "clone",
                "--quiet",
                "--shared",
                "--no-checkout",
                "--no-tags",
                "--single-branch",
                &from,
                &to,
            ],
        )
        .or_else(|_| {
            // A detached or empty head cannot be cloned as one branch.
            let _ = std::fs::remove_dir_all(path);
            git(
                clone,
                &["clone", "--quiet", "--shared", "--no-checkout", &from, &to],
            )
        })?;
        git(path, &["checkout", "--quiet", "--detach", &commit.0])?;
        // What a test pushes goes nowhere.
        let _ = git(path, &["remote", "remove", "origin"]);
        Ok(tree)
    }

    /// Leaves it there for whoever works in it.
    pub(crate) fn keep(mut self) {
        self.stays = true;
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Puts the files to the commit with these changes; what is ignored (build output) stays.
    pub(crate) fn set(&self, changes: &ChangeSet) -> Result<(), Failure> {
        git(&self.path, &["reset", "--quiet", "--hard", &self.commit.0])?;
        git(&self.path, &["clean", "--quiet", "-fd"])?;
        apply::write(&self.path, changes)
            .map_err(|error| Failure::Broken(format!("the throw-away tree: {error}")))
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if !self.stays {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// Runs git without hooks and watchers, which are not ours to run.
pub(crate) fn git(dir: &Path, args: &[&str]) -> Result<String, Failure> {
    let mut command = Command::new("git");
    for name in FOREIGN {
        command.env_remove(name);
    }
    let output = command
        .arg("-C")
        .arg(dir)
        .args([
            "-c",
            "core.hooksPath=/dev/null",
            "-c",
            "core.fsmonitor=",
            "-c",
            "protocol.file.allow=always",
        ])
        .args([
            "-c",
            "core.quotepath=off",
            "-c",
            "advice.detachedHead=false",
        ])
        .args(args)
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("LC_ALL", "C")
        .output()
        .map_err(|error| Failure::Broken(format!("git could not be run: {error}")))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let words = String::from_utf8_lossy(&output.stderr);
    Err(Failure::Broken(format!(
        "git {}: {}",
        args[0],
        words.trim()
    )))
}
