//! A git worktree and branch of its own for an agent.
//!
//! The agent may write what it likes in its worktree, also a `.git` file that leads elsewhere. So
//! ours is found by the repository's own record, and nothing in the tree is run.
//!
//! The worktree is made when the agent starts and settled when it ends: removed with its branch if
//! nothing came of it, otherwise left for the user. Path and branch are chosen by the caller from
//! the task's id, so an agent that is resumed in another process opens the same one again.

use std::{
    io,
    path::{Path, PathBuf},
};

pub use codespar_git::{Git, GitError, Snapshot, SnapshotNames, SnapshotTaken};
use codespar_git::{Repository, Trust, is_branch_name, zero_separated};

/// A worktree on a branch. Dropping it removes nothing.
#[derive(Debug)]
pub struct Worktree {
    /// The user's repository.
    repository: Repository,
    /// The same repository seen from the worktree: its own `HEAD` and index.
    tree: Repository,
    path: PathBuf,
    branch: String,
    /// Where the branch began.
    base: String,
}

impl Worktree {
    /// Makes the worktree at `path` from the repository's current commit, or opens it again. The
    /// files of an existing one stay as they are.
    pub async fn open(
        repository: &Path,
        path: &Path,
        branch: &str,
        trust: Trust,
    ) -> io::Result<Self> {
        let (repository, path) = (repository.to_owned(), path.to_owned());
        let branch = branch.to_owned();
        blocking(move || make(&repository, path, branch, trust, None)).await?
    }

    /// The same for work that began at `base`, here or on another host.
    pub async fn open_at(
        repository: &Path,
        path: &Path,
        branch: &str,
        trust: Trust,
        base: &str,
    ) -> io::Result<Self> {
        let (repository, path) = (repository.to_owned(), path.to_owned());
        let (branch, base) = (branch.to_owned(), base.to_owned());
        blocking(move || make(&repository, path, branch, trust, Some(&base))).await?
    }

    /// Git on its files.
    pub fn git(&self) -> Result<Git, GitError> {
        self.tree.git_with_files()
    }

    /// The commit where its branch began.
    pub fn base(&self) -> &str {
        &self.base
    }

    pub fn branch(&self) -> &str {
        &self.branch
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Files in it that are pointers to files which Git LFS keeps elsewhere; none where that cannot
    /// be told.
    pub async fn lfs_pointers(&self) -> Vec<String> {
        let tree = self.tree.clone();
        let look = move || tree.git_with_files().and_then(|git| git.lfs_pointers());
        match blocking(look).await {
            Ok(Ok(pointers)) => pointers,
            _ => Vec::new(),
        }
    }

    /// The place in it that corresponds to `dir` of the original.
    pub fn matching(&self, root: &Path, dir: &Path) -> PathBuf {
        match dir.strip_prefix(root) {
            Ok(below) if self.path.join(below).is_dir() => self.path.join(below),
            _ => self.path.clone(),
        }
    }

    /// Removes it if nothing was changed or committed; otherwise says where the work is. When that
    /// cannot be told, it stays. Ignored files do not count as changes.
    pub async fn settle(self) -> Option<String> {
        let place = format!(
            "The work is on branch {} in {}.",
            self.branch,
            self.path.display()
        );
        let removed = blocking(move || self.remove_if_unchanged()).await;
        match removed {
            Ok(Ok(true)) => None,
            _ => Some(place),
        }
    }

    /// The branch is deleted last, and only if it is still where it began: a commit that is made in
    /// between is not lost.
    fn remove_if_unchanged(&self) -> Result<bool, GitError> {
        let files = self.tree.git_with_files()?;
        let still = files.commit_id("HEAD")?.as_ref() == Some(&self.base);
        if !still || !is_clean(&files, &self.path)? {
            return Ok(false);
        }
        self.repository.remove_work_tree(&self.path)?;
        let name = format!("refs/heads/{}", self.branch);
        let git = self.repository.git()?;
        git.run(["update-ref", "--no-deref", "-d", &name, &self.base])?;
        Ok(true)
    }
}

fn make(
    dir: &Path,
    path: PathBuf,
    branch: String,
    trust: Trust,
    began_at: Option<&str>,
) -> io::Result<Worktree> {
    if !is_branch_name(&branch) {
        let reason = format!("`{branch}` cannot be the name of a branch");
        return Err(io::Error::other(reason));
    }
    let repository = Repository::find(dir, trust).map_err(io::Error::other)?;
    let git = repository.git().map_err(io::Error::other)?;
    let start = began_at.unwrap_or("HEAD");
    let head = git.commit_id(start).map_err(io::Error::other)?;
    let head = head.ok_or_else(|| {
        io::Error::other(match began_at {
            Some(commit) => format!(
                "{} does not have commit {commit}, on which the work stands; fetch it there, or \
                 push it from the host where the work began",
                dir.display()
            ),
            None => format!("{} has no commit to start from", dir.display()),
        })
    })?;
    let known = repository.work_tree_at(&path).map_err(io::Error::other)?;
    let (tree, base) = match known.filter(|_| path.join(".git").exists()) {
        Some(tree) if began_at.is_some() => (tree, head),
        Some(tree) => {
            let base = begin_of(&tree, &head).map_err(io::Error::other)?;
            (tree, base)
        }
        None => {
            let made = add(&repository, &git, &path, &branch, &head);
            (made.map_err(io::Error::other)?, head)
        }
    };
    let path = tree.location().work_tree.clone().unwrap_or(path);
    Ok(Worktree {
        repository,
        tree,
        path,
        branch,
        base,
    })
}

/// Makes the branch and the worktree on it. A branch of that name that has commits of its own is
/// not taken over; one without is what a crash left between the two steps. If the worktree cannot
/// be made, the branch is removed again.
fn add(
    repository: &Repository,
    git: &Git,
    path: &Path,
    branch: &str,
    head: &str,
) -> Result<Repository, GitError> {
    // What a crash left half made.
    repository.remove_work_tree(path)?;
    let name = format!("refs/heads/{branch}");
    let left = git.commit_id(&name)?;
    let has_own = match &left {
        Some(left) => {
            let query = ["merge-base", "--is-ancestor", left, head];
            git.call(query).run()?.code != Some(0)
        }
        None => false,
    };
    // Git refuses the change where the branch is not as it was seen here.
    let before = left.filter(|_| !has_own).unwrap_or_default();
    git.call(["update-ref", "--no-deref", &name, head, &before])
        .env("GIT_COMMITTER_NAME", "CodeSpar")
        .env("GIT_COMMITTER_EMAIL", "codespar@localhost")
        .run()?
        .checked()?;
    let made = repository.add_work_tree(path, head, Some(branch));
    if made.is_err() {
        let _ = repository.remove_work_tree(path);
        git.run(["update-ref", "--no-deref", "-d", &name, head])?;
    }
    made
}

/// Where a branch and the repository's commit of now parted.
fn begin_of(tree: &Repository, head: &str) -> Result<String, GitError> {
    let ran = tree.git()?.call(["merge-base", "HEAD", head]).run()?;
    Ok(match ran.code {
        Some(0) => ran.text(),
        _ => head.to_owned(),
    })
}

/// Repositories within the tree are not entered, so one that has files counts as a change.
fn is_clean(files: &Git, path: &Path) -> Result<bool, GitError> {
    let status = ["status", "--porcelain", "--ignore-submodules=all"];
    if !files.run(status)?.out.is_empty() {
        return Ok(false);
    }
    let staged = files.run(["ls-files", "-z", "--stage"])?;
    let is_filled = |line: &[u8]| {
        let Some(name) = line.strip_prefix(b"160000 ") else {
            return false;
        };
        let name = name.split(|byte| *byte == b'\t').nth(1).unwrap_or_default();
        let entries = std::fs::read_dir(path.join(String::from_utf8_lossy(name).as_ref()));
        !entries.is_ok_and(|mut entries| entries.next().is_none())
    };
    Ok(!zero_separated(&staged.out).any(is_filled))
}

/// Git and files belong on the pool of blocking threads.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn git(dir: &Path, args: &[&str]) -> String {
        let output = std::process::Command::new("git")
            .arg("-C")
            .arg(dir)
            .args(["-c", "user.name=t", "-c", "user.email=t@example.invalid"])
            .args(args)
            .output()
            .unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {args:?}: {message}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn repository() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap().join("repo");
        std::fs::create_dir_all(root.join("sub")).unwrap();
        std::fs::write(root.join("sub/a.txt"), "a\n").unwrap();
        git(&root, &["init", "--quiet"]);
        git(&root, &["add", "."]);
        git(&root, &["commit", "--quiet", "-m", "one"]);
        (dir, root)
    }

    async fn open(root: &Path, path: &Path) -> Worktree {
        let opened = Worktree::open(root, path, "codespar/one", Trust::Untrusted).await;
        opened.unwrap()
    }

    #[tokio::test]
    async fn an_unchanged_worktree_goes_and_a_changed_one_stays() {
        let (dir, root) = repository();
        let path = dir.path().canonicalize().unwrap().join("trees/one");
        let tree = open(&root, &path).await;
        assert_eq!(tree.matching(&root, &root.join("sub")), path.join("sub"));
        assert_eq!(
            git(&path, &["status", "--porcelain", "-b"]),
            "## codespar/one"
        );
        assert_eq!(tree.settle().await, None);
        assert!(!path.exists());
        assert_eq!(git(&root, &["branch", "--list", "codespar/*"]), "");
        assert_eq!(git(&root, &["worktree", "list"]).lines().count(), 1);

        let tree = open(&root, &path).await;
        std::fs::write(path.join("new.txt"), "x").unwrap();
        let again = open(&root, &path).await;
        assert!(again.settle().await.unwrap().contains("codespar/one"));
        assert!(path.join("new.txt").exists() && !root.join("new.txt").exists());
        drop(tree);
    }

    #[tokio::test]
    async fn a_branch_that_a_crash_left_alone_is_used_unless_it_has_commits() {
        let (dir, root) = repository();
        let path = dir.path().canonicalize().unwrap().join("trees/one");
        // The branch was made, then the process was killed, then somebody committed.
        git(&root, &["branch", "codespar/one"]);
        git(&root, &["commit", "-q", "--allow-empty", "-m", "later"]);
        let head = git(&root, &["rev-parse", "HEAD"]);
        let tree = open(&root, &path).await;
        assert_eq!(git(&path, &["rev-parse", "HEAD"]), head);
        assert_eq!(tree.settle().await, None);

        git(&root, &["switch", "-q", "-c", "codespar/one"]);
        git(
            &root,
            &["commit", "-q", "--allow-empty", "-m", "somebody's"],
        );
        git(&root, &["switch", "-q", "-"]);
        let refused = Worktree::open(&root, &path, "codespar/one", Trust::Untrusted).await;
        assert!(refused.is_err());
        assert_eq!(
            git(&root, &["log", "-1", "--format=%s", "codespar/one"]),
            "somebody's"
        );
    }

    /// How often other work of this single-threaded runtime was polled while `work` went on.
    async fn polls_during(work: impl Future) -> u32 {
        let polls = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
        let counter = polls.clone();
        let other = tokio::spawn(async move {
            loop {
                counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        });
        work.await;
        other.abort();
        polls.load(std::sync::atomic::Ordering::Relaxed)
    }

    #[tokio::test]
    async fn git_in_a_worktree_does_not_hold_up_other_work_of_the_runtime() {
        let (dir, root) = repository();
        let path = dir.path().canonicalize().unwrap().join("trees/one");
        let mut tree = None;
        let opening = async { tree = Some(open(&root, &path).await) };
        assert_ne!(polls_during(opening).await, 0, "open");
        let tree = tree.unwrap();
        assert_ne!(polls_during(tree.lfs_pointers()).await, 0, "lfs_pointers");
        assert_ne!(polls_during(tree.settle()).await, 0, "settle");
    }

    #[tokio::test]
    async fn a_worktree_with_a_commit_stays() {
        let (dir, root) = repository();
        let path = dir.path().canonicalize().unwrap().join("trees/one");
        let tree = open(&root, &path).await;
        git(&path, &["commit", "--quiet", "--allow-empty", "-m", "two"]);
        assert!(tree.settle().await.is_some());
        assert_eq!(
            git(&root, &["log", "--format=%s", "codespar/one"]),
            "two\none"
        );
    }

    #[tokio::test]
    async fn nothing_that_an_agent_left_in_its_worktree_is_run() {
        let (dir, root) = repository();
        let home = dir.path().canonicalize().unwrap();
        let (path, mark) = (home.join("trees/one"), home.join("ran"));
        let evil = format!("touch {}; cat", mark.display());
        let tree = open(&root, &path).await;
        let trap = home.join("trap");
        std::fs::create_dir(&trap).unwrap();
        git(&trap, &["init", "--quiet"]);
        git(&trap, &["config", "core.fsmonitor", &evil]);
        let link = format!("gitdir: {}\n", trap.join(".git").display());
        std::fs::write(path.join(".git"), link).unwrap();
        let nested = path.join("nested");
        std::fs::create_dir(&nested).unwrap();
        git(&nested, &["init", "--quiet"]);
        git(&nested, &["commit", "--quiet", "--allow-empty", "-m", "x"]);
        git(&nested, &["config", "core.fsmonitor", &evil]);
        let admin = root.join(".git/worktrees/one");
        let entry = format!("160000,{},nested", git(&root, &["rev-parse", "HEAD"]));
        let args = ["update-index", "--add", "--cacheinfo", &entry];
        git(
            &path,
            &[&["--git-dir", admin.to_str().unwrap()], &args[..]].concat(),
        );
        // Plain git runs it.
        let plain = ["--git-dir", admin.to_str().unwrap(), "--work-tree", "."];
        git(&path, &[&plain[..], &["status"]].concat());
        assert!(std::fs::remove_file(&mark).is_ok());

        assert!(tree.settle().await.is_some());
        assert!(open(&root, &path).await.settle().await.is_some());
        assert!(!mark.exists() && nested.exists());
    }

    #[tokio::test]
    async fn without_a_commit_there_is_no_worktree() {
        let dir = tempfile::tempdir().unwrap();
        git(dir.path(), &["init", "--quiet"]);
        let path = dir.path().join("t");
        let error = Worktree::open(dir.path(), &path, "b", Trust::Untrusted).await;
        let error = error.unwrap_err().to_string();
        assert!(error.contains("no commit to start from"), "{error}");
    }
}
