//! How the work tree differs from the commit that is checked out.

use crate::{GitError, Repository, zero_separated};

/// What a work tree has checked out, and how many of its files are not committed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkTreeState {
    /// The branch that is checked out; `None` when HEAD is detached.
    pub branch: Option<String>,
    /// Files that are modified, added, deleted or untracked. Ignored files and submodules do not
    /// count.
    pub uncommitted_files: usize,
}

impl Repository {
    /// Looks at the work tree; nothing is written, not even the index.
    pub fn work_tree_state(&self) -> Result<WorkTreeState, GitError> {
        let git = self.git_with_files()?;
        let status = [
            "status",
            "--porcelain",
            "-z",
            "--no-renames",
            "--untracked-files=all",
            "--ignore-submodules=all",
        ];
        let call = git.call(status).env("GIT_OPTIONAL_LOCKS", "0");
        let listed = call.run()?.checked()?;
        let head = git.call(["symbolic-ref", "--quiet", "--short", "HEAD"]);
        let head = head.run()?;
        Ok(WorkTreeState {
            branch: (head.code == Some(0)).then(|| head.text()),
            uncommitted_files: zero_separated(&listed.out).count(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path, process::Command};

    use super::*;
    use crate::Trust;

    fn git(dir: &Path, args: &[&str]) {
        let output = Command::new("git")
            .arg("-C")
            .arg(dir)
            .args(["-c", "user.name=A", "-c", "user.email=a@example.invalid"])
            .args(args)
            .output()
            .unwrap();
        assert!(output.status.success(), "git {args:?}: {output:?}");
    }

    fn state(dir: &Path) -> WorkTreeState {
        let repository = Repository::find(dir, Trust::Untrusted).unwrap();
        repository.work_tree_state().unwrap()
    }

    #[test]
    fn every_file_that_is_not_committed_counts_and_a_detached_head_has_no_branch() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        git(dir, &["init", "--quiet", "-b", "main"]);
        for name in ["kept", "modified", "moved"] {
            fs::write(dir.join(name), name).unwrap();
        }
        fs::write(dir.join(".gitignore"), "ignored\n").unwrap();
        git(dir, &["add", "."]);
        git(dir, &["commit", "--quiet", "-m", "Begin"]);
        let clean = WorkTreeState {
            branch: Some("main".to_owned()),
            uncommitted_files: 0,
        };
        assert_eq!(state(dir), clean);

        fs::write(dir.join("modified"), "otherwise").unwrap();
        fs::write(dir.join("ignored"), "").unwrap();
        fs::create_dir(dir.join("new")).unwrap();
        fs::write(dir.join("new/one"), "").unwrap();
        fs::write(dir.join("new/two"), "").unwrap();
        git(dir, &["mv", "moved", "elsewhere"]);
        git(dir, &["checkout", "--quiet", "--detach"]);
        let dirty = WorkTreeState {
            branch: None,
            uncommitted_files: 5,
        };
        assert_eq!(state(dir), dirty);
    }
}
