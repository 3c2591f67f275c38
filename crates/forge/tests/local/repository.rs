//! Repositories to try the forge on, made and looked at with git itself.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use codespar_forge::{Author, Draft, Forge, LocalForge, MergeOrder, NewCommit, NewPullRequest};
use codespar_git::Trust;
use codespar_protocol::{
    Bytes, ChangeSet, CommitId, FileChange, FileMode, MergeStrategy, PullRequest, RepoPath,
};
use codespar_store::SqliteStore;

/// A repository with a work tree, a store beside it, and the forge on both.
pub(crate) struct Repository {
    pub(crate) home: tempfile::TempDir,
    pub(crate) root: PathBuf,
    pub(crate) forge: LocalForge,
}

pub(crate) fn git_raw(dir: &Path, args: &[&str]) -> Vec<u8> {
    let output = Command::new("git")
        .arg("-C")
        .arg(dir)
        .args(args)
        .env("GIT_AUTHOR_DATE", "1700000000 +0200")
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {args:?}: {stderr}");
    output.stdout
}

pub(crate) fn git(dir: &Path, args: &[&str]) -> String {
    let out = git_raw(dir, args);
    String::from_utf8(out).unwrap().trim_end().to_owned()
}

pub(crate) fn write(root: &Path, path: &str, content: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// An empty repository with somebody to commit.
pub(crate) fn init(root: &Path) {
    fs::create_dir_all(root).unwrap();
    git(root, &["init", "--quiet", "-b", "main"]);
    git(root, &["config", "user.name", "Ada"]);
    git(root, &["config", "user.email", "ada@example.invalid"]);
}

pub(crate) fn commit_all(root: &Path, message: &str) -> CommitId {
    git(root, &["add", "-A"]);
    git(root, &["commit", "--quiet", "--allow-empty", "-m", message]);
    CommitId(git(root, &["rev-parse", "HEAD"]))
}

pub(crate) async fn forge_of(home: &Path, root: &Path) -> LocalForge {
    let store = SqliteStore::open(&home.join("state")).await.unwrap();
    LocalForge::open(root, Trust::Untrusted, Arc::new(store), None)
        .await
        .unwrap()
}

impl Repository {
    /// On `main` with two files.
    pub(crate) async fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().canonicalize().unwrap().join("repo");
        init(&root);
        write(&root, "src/a.txt", "one\ntwo\nthree\nfour\nfive\n");
        write(&root, "b.txt", "b\n");
        commit_all(&root, "start");
        let forge = forge_of(home.path(), &root).await;
        Self { home, root, forge }
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        git(&self.root, args)
    }

    pub(crate) fn at(&self, name: &str) -> CommitId {
        CommitId(self.git(&["rev-parse", "--verify", &format!("{name}^{{commit}}")]))
    }

    pub(crate) fn parents(&self, commit: &CommitId) -> Vec<CommitId> {
        let line = self.git(&["show", "-s", "--format=%P", &commit.0]);
        line.split(' ').map(|id| CommitId(id.to_owned())).collect()
    }

    pub(crate) fn shown(&self, commit: &CommitId, path: &str) -> String {
        let object = format!("{commit}:{path}");
        String::from_utf8(git_raw(&self.root, &["cat-file", "blob", &object])).unwrap()
    }

    pub(crate) fn files(&self, commit: &CommitId) -> Vec<String> {
        let list = self.git(&["ls-tree", "-r", "--name-only", &commit.0]);
        list.lines().map(str::to_owned).collect()
    }

    pub(crate) fn message(&self, commit: &CommitId) -> String {
        self.git(&["show", "-s", "--format=%B", &commit.0])
    }

    /// Commits on a branch through the forge.
    pub(crate) async fn on(&self, branch: &str, key: &str, changes: Vec<FileChange>) -> CommitId {
        let at = self.forge.head(branch).await.unwrap();
        let new = new_commit(branch, at.unwrap_or_else(|| self.at("main")), key, changes);
        self.forge.commit(&new).await.unwrap()
    }

    /// A pull request of one branch for `main`.
    pub(crate) async fn pull(&self, branch: &str, changes: Vec<FileChange>) -> PullRequest {
        self.on(branch, branch, changes).await;
        self.open(branch).await
    }

    pub(crate) async fn open(&self, branch: &str) -> PullRequest {
        self.forge
            .open_pull_request(&request(branch))
            .await
            .unwrap()
    }

    /// All that is the user's own.
    pub(crate) fn belongings(&self) -> Belongings {
        let mut files = BTreeMap::new();
        collect(&self.root, &self.root, &mut files);
        Belongings {
            files,
            index: fs::read(self.root.join(".git/index")).unwrap(),
            head: fs::read_to_string(self.root.join(".git/HEAD")).unwrap(),
            main: self.at("main"),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Belongings {
    files: BTreeMap<PathBuf, Vec<u8>>,
    index: Vec<u8>,
    head: String,
    main: CommitId,
}

fn collect(root: &Path, dir: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path == root.join(".git") {
            continue;
        }
        if path.is_dir() {
            collect(root, &path, files);
        } else {
            let content = fs::read(&path).unwrap();
            files.insert(path, content);
        }
    }
}

pub(crate) fn path(text: &str) -> RepoPath {
    RepoPath::new(text).unwrap()
}

pub(crate) fn added(at: &str, content: &str) -> FileChange {
    FileChange::Added {
        path: path(at),
        content: Bytes(content.into()),
        mode: FileMode::Regular,
    }
}

pub(crate) fn modified(at: &str, content: &str) -> FileChange {
    FileChange::Modified {
        path: path(at),
        content: Bytes(content.into()),
        mode: FileMode::Regular,
    }
}

pub(crate) fn new_commit(
    branch: &str,
    parent: CommitId,
    key: &str,
    changes: Vec<FileChange>,
) -> NewCommit {
    NewCommit {
        branch: branch.to_owned(),
        parent,
        merged: None,
        changes: ChangeSet(changes),
        message: format!("codespar: {key}\n\nCodeSpar-Key: {key}\n"),
        author: Some(Author {
            name: "Gr\u{e4}ce".to_owned(),
            email: "grace@example.invalid".to_owned(),
        }),
        key: key.to_owned(),
    }
}

pub(crate) fn request(branch: &str) -> NewPullRequest {
    NewPullRequest {
        head: branch.to_owned(),
        base: "main".to_owned(),
        title: format!("Change by {branch}"),
        body: "What and why".to_owned(),
        draft: Draft::Ready,
    }
}

pub(crate) fn order(strategy: MergeStrategy, head: &CommitId) -> MergeOrder {
    MergeOrder {
        strategy,
        expected_head: head.clone(),
        title: None,
    }
}
