//! A git worktree and branch of its own for an agent.

use std::{
    ffi::OsStr,
    io,
    path::{Path, PathBuf},
    process::Command,
};

/// A worktree on a branch.
#[derive(Debug)]
pub struct Worktree {
    repository: PathBuf,
    path: PathBuf,
    branch: String,
    /// Where the branch began.
    base: String,
}

impl Worktree {
    /// Makes the worktree at `path` from the repository's current commit, or opens it again.
    pub fn open(repository: &Path, path: &Path, branch: &str) -> io::Result<Self> {
        let base = git(repository, &["rev-parse", "HEAD"]).map_err(|error| {
            io::Error::other(format!(
                "{} has no commit to start from: {error}",
                repository.display()
            ))
        })?;
        if !path.join(".git").exists() {
            if let Some(parent) = path.parent() {
                std::fs::create_dir_all(parent)?;
            }
            let path = path.to_string_lossy();
            git(
                repository,
                &["worktree", "add", "--quiet", "-b", branch, &path, "HEAD"],
            )?;
        }
        let base = git(path, &["merge-base", "HEAD", &base]).unwrap_or(base);
        Ok(Self {
            repository: repository.to_path_buf(),
            path: path.to_path_buf(),
            branch: branch.to_owned(),
            base,
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The place in it that corresponds to `dir` of the original.
    pub fn matching(&self, root: &Path, dir: &Path) -> PathBuf {
        match dir.strip_prefix(root) {
            Ok(below) if self.path.join(below).is_dir() => self.path.join(below),
            _ => self.path.clone(),
        }
    }

    /// Removes it if nothing was changed or committed; otherwise says where the work is.
    pub fn settle(self) -> Option<String> {
        let clean = git(&self.path, &["status", "--porcelain"]).is_ok_and(|text| text.is_empty());
        let still = git(&self.path, &["rev-parse", "HEAD"]).is_ok_and(|head| head == self.base);
        if clean && still {
            let path = self.path.to_string_lossy();
            let _ = git(&self.repository, &["worktree", "remove", "--force", &path]);
            let _ = git(&self.repository, &["branch", "-D", &self.branch]);
            return None;
        }
        Some(format!(
            "The work is on branch {} in {}.",
            self.branch,
            self.path.display()
        ))
    }
}

/// Runs git without the repository's hooks and watchers, which are not ours to run.
fn git(dir: &Path, args: &[&str]) -> io::Result<String> {
    let guarded = ["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor="];
    let output = Command::new("git")
        .arg("-C")
        .arg(dir)
        .args(guarded.iter().map(OsStr::new))
        .args(args)
        .output()?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let words = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(words.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("repo");
        std::fs::create_dir_all(root.join("sub")).unwrap();
        std::fs::write(root.join("sub/a.txt"), "a\n").unwrap();
        git(&root, &["init", "--quiet"]).unwrap();
        git(&root, &["add", "."]).unwrap();
        let who = ["-c", "user.name=t", "-c", "user.email=t@example.invalid"];
        git(
            &root,
            &[&who[..], &["commit", "--quiet", "-m", "one"]].concat(),
        )
        .unwrap();
        (dir, root)
    }

    #[test]
    fn an_unchanged_worktree_goes_and_a_changed_one_stays() {
        let (dir, root) = repository();
        let path = dir.path().join("trees/one");
        let tree = Worktree::open(&root, &path, "codespar/one").unwrap();
        assert_eq!(tree.matching(&root, &root.join("sub")), path.join("sub"));
        assert_eq!(tree.settle(), None);
        assert!(!path.exists());
        assert_eq!(git(&root, &["branch", "--list", "codespar/*"]).unwrap(), "");

        let tree = Worktree::open(&root, &path, "codespar/one").unwrap();
        std::fs::write(path.join("new.txt"), "x").unwrap();
        let again = Worktree::open(&root, &path, "codespar/one").unwrap();
        assert!(again.settle().unwrap().contains("codespar/one"));
        assert!(path.join("new.txt").exists() && !root.join("new.txt").exists());
        drop(tree);
    }

    #[test]
    fn without_a_commit_there_is_no_worktree() {
        let dir = tempfile::tempdir().unwrap();
        git(dir.path(), &["init", "--quiet"]).unwrap();
        let error = Worktree::open(dir.path(), &dir.path().join("t"), "b").unwrap_err();
        assert!(
            error.to_string().contains("no commit to start from"),
            "{error}"
        );
    }
}
