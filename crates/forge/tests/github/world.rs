//! A repository, a GitHub that serves it, and a forge that uses it.

use std::{path::PathBuf, process::Command, time::Duration};

use codespar_forge::{
    Author, Draft, Forge, GitHubAccess, GitHubForge, GitHubSetup, NewCommit, NewPullRequest,
    Patience, github_client,
};
use codespar_protocol::{Bytes, ChangeSet, CommitId, FileChange, FileMode, PullRequest, RepoPath};
use codespar_testkit::github::{FakeGitHub, GitHubOptions};
use secrecy::SecretString;
use tempfile::TempDir;
use url::Url;

pub(crate) const LONG_FILE: &str =
    "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\n18\n19\n20\n";

pub(crate) struct World {
    dir: TempDir,
    pub(crate) github: FakeGitHub,
    /// As `bob`, who may write.
    pub(crate) forge: GitHubForge,
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(GitHubOptions::default()).await
    }

    /// A repository with a few files on `main`.
    pub(crate) async fn with(options: GitHubOptions) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let run = |args: &[&str]| git(dir.path().to_path_buf(), args);
        run(&["init", "-q", "--bare", "-b", "main", "shop.git"]);
        run(&["clone", "-q", "shop.git", "work"]);
        let work = dir.path().join("work");
        std::fs::create_dir_all(work.join("src/deep/er")).unwrap();
        std::fs::write(work.join("README.md"), "# Shop\n").unwrap();
        std::fs::write(
            work.join("src/login.ts"),
            "const timeout = 10;\r\nsession();\r\n",
        )
        .unwrap();
        std::fs::write(work.join("src/long.txt"), LONG_FILE).unwrap();
        std::fs::write(work.join("src/deep/er/ü b.rs"), "fn ü() {}").unwrap();
        std::fs::write(work.join("src/raw.bin"), [0xff, 0x00, 0xfe]).unwrap();
        std::fs::write(work.join("run.sh"), "#!/bin/sh\n").unwrap();
        std::os::unix::fs::symlink("README.md", work.join("link")).unwrap();
        git(work.clone(), &["add", "-A"]);
        git(work.clone(), &["update-index", "--chmod=+x", "run.sh"]);
        git(work.clone(), &["commit", "-q", "-m", "Begin"]);
        git(work, &["push", "-q", "origin", "HEAD:main"]);
        let github = FakeGitHub::start(dir.path().join("shop.git"), options)
            .await
            .unwrap();
        let forge = forge_for(&github, "bob-token");
        Self { dir, github, forge }
    }

    /// A forge with another token, with nothing kept.
    pub(crate) fn forge_as(&self, token: &str) -> GitHubForge {
        forge_for(&self.github, token)
    }

    /// Runs git in the bare repository.
    pub(crate) fn git(&self, args: &[&str]) -> String {
        git(self.dir.path().join("shop.git"), args)
    }

    /// A folder for a test's own use.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) async fn main(&self) -> CommitId {
        self.forge.head("main").await.unwrap().unwrap()
    }

    /// A commit on a branch that begins at `main`, with one file changed.
    pub(crate) async fn branch(&self, branch: &str, path: &str, content: &str) -> CommitId {
        let parent = self.main().await;
        self.forge
            .commit(&new_commit(branch, &parent, path, content))
            .await
            .unwrap()
    }

    /// The same with a pull request.
    pub(crate) async fn pull(&self, branch: &str, path: &str, content: &str) -> PullRequest {
        self.branch(branch, path, content).await;
        self.forge
            .open_pull_request(&new_pull(branch))
            .await
            .unwrap()
    }

    /// `METHOD path` of every request so far, below the repository where it can be.
    pub(crate) fn asked(&self) -> Vec<String> {
        let short = |path: &str| path.replacen("/repos/acme/shop", "", 1);
        let requests = self.github.requests();
        requests
            .iter()
            .map(|request| format!("{} {}", request.method, short(&request.path)))
            .collect()
    }

    pub(crate) fn count(&self, asked: &str) -> usize {
        self.asked()
            .iter()
            .filter(|request| *request == asked)
            .count()
    }
}

pub(crate) fn forge_for(github: &FakeGitHub, token: &str) -> GitHubForge {
    GitHubForge::new(setup(&github.base_url, token)).unwrap()
}

pub(crate) fn setup(base_url: &str, token: &str) -> GitHubSetup {
    let api: Url = base_url.parse().unwrap();
    GitHubSetup {
        http: github_client(&api, None).unwrap(),
        api,
        owner: "acme".to_owned(),
        name: "shop".to_owned(),
        access: GitHubAccess::Token(SecretString::from(token.to_owned())),
        patience: Patience {
            first_delay: Duration::from_millis(1),
            longest_delay: Duration::from_millis(5),
            longest_limit_wait: Duration::from_secs(20),
            ..Patience::default()
        },
    }
}

pub(crate) fn path(text: &str) -> RepoPath {
    RepoPath::new(text).unwrap()
}

pub(crate) fn modified(file: &str, content: &[u8]) -> FileChange {
    FileChange::Modified {
        path: path(file),
        content: Bytes(content.to_vec()),
        mode: FileMode::Regular,
    }
}

pub(crate) fn new_commit(branch: &str, parent: &CommitId, file: &str, content: &str) -> NewCommit {
    NewCommit {
        branch: branch.to_owned(),
        parent: parent.clone(),
        merged: None,
        changes: ChangeSet(vec![modified(file, content.as_bytes())]),
        message: format!("codespar: change {file}\n\nCodeSpar-Key: {branch}/commit"),
        author: Some(Author {
            name: "CodeSpar".to_owned(),
            email: "codespar@acme.example".to_owned(),
        }),
        key: format!("{branch}/commit"),
    }
}

pub(crate) fn new_pull(branch: &str) -> NewPullRequest {
    NewPullRequest {
        head: branch.to_owned(),
        base: "main".to_owned(),
        title: format!("Change on {branch}"),
        body: "What and why.".to_owned(),
        draft: Draft::Ready,
    }
}

fn git(dir: PathBuf, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=Ann", "-c", "user.email=ann@acme.example"])
        .args(["-c", "core.autocrlf=false", "-c", "core.quotepath=false"])
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_TERMINAL_PROMPT", "0")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "git {args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned()
}
