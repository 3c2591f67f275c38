//! GitHub over real HTTP: the webhook, polling, and an API whose faults are chosen.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests"
)]

mod answers;
#[path = "../common/mod.rs"]
mod common;
mod deliveries;
mod later;
mod polling;
mod rights;
mod setup;

use std::sync::Arc;

use codespar_channels::{
    HookMethod, HookRequest, Webhook,
    github::{GITHUB, GitHubChannel, GitHubChannelSetup, GitHubHook},
};
use codespar_runtime::github_access;
use codespar_testkit::github::{
    APP_ID, APP_KEY_PKCS1, FakeGitHub, GitHubComment, GitHubOptions, HookEvent, hook_signature,
};
use http::HeaderMap;

use common::Room;

const SECRET: &str = "webhook-secret-of-the-test-app";
const SETTINGS: &str = r#"{"channels": {"githubRepositories": ["acme/*"]}}"#;

/// A server that `acme/shop` delivers to. `alice` and `bob` may write, `carol` may read.
struct World {
    room: Room,
    github: FakeGitHub,
    channel: Arc<GitHubChannel>,
    hook: GitHubHook,
    dir: tempfile::TempDir,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum With {
    Token,
    App,
}

impl World {
    async fn new(with: With) -> Self {
        Self::set(with, SETTINGS).await
    }

    async fn set(with: With, settings: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let shop = dir.path().join("shop");
        std::fs::create_dir(&shop).unwrap();
        common::repository(&shop);
        let github = FakeGitHub::start(&shop.join(".git"), GitHubOptions::default())
            .await
            .unwrap();
        github.install_app("codespar");
        let key = dir.path().join("key.pem");
        std::fs::write(&key, APP_KEY_PKCS1).unwrap();
        let mut vars = vec![
            ("GITHUB_API_URL", github.base_url.clone()),
            ("GITHUB_SERVER_URL", github.base_url.clone()),
        ];
        match with {
            With::Token => vars.push(("GITHUB_TOKEN", "bob-token".to_owned())),
            With::App => vars.extend([
                ("GITHUB_APP_ID", APP_ID.to_owned()),
                ("GITHUB_APP_PRIVATE_KEY_FILE", key.display().to_string()),
            ]),
        }
        let room = Room::with(settings, &vars).await;
        let access = github_access(&room.core_dir()).unwrap().unwrap();
        let setup = GitHubChannelSetup {
            api: github.base_url.parse().unwrap(),
            server: github.base_url.parse().unwrap(),
            proxy: None,
            access,
        };
        let channel = GitHubChannel::new(&setup).unwrap();
        room.serve(channel.clone());
        let hook = GitHubHook::new(room.core.clone(), channel.clone(), SECRET.into());
        Self {
            room,
            github,
            channel,
            hook,
            dir,
        }
    }

    async fn post(&self, event: &str, signature: &str, body: &[u8]) -> u16 {
        let mut headers = HeaderMap::new();
        headers.insert("x-github-event", event.parse().unwrap());
        headers.insert("x-hub-signature-256", signature.parse().unwrap());
        let request = HookRequest {
            method: HookMethod::Post,
            query: "",
            headers: &headers,
            body,
        };
        self.hook.handle(request).await.status
    }

    async fn deliver(&self, event: &HookEvent) -> u16 {
        let body = event.body.to_string();
        let signature = hook_signature(SECRET, body.as_bytes());
        self.post(event.event, &signature, body.as_bytes()).await
    }

    /// Someone says something, and everything that follows from it happens.
    async fn say(&self, number: u64, login: &str, text: &str) {
        let event = self.github.say(number, login, text);
        assert_eq!(self.deliver(&event).await, 200, "{text}");
        self.room.idle(GITHUB).await;
    }

    /// Makes a branch of the repository.
    fn branch(&self, name: &str) {
        let mut git = std::process::Command::new("git");
        git.arg("-C").arg(self.dir.path().join("shop"));
        assert!(git.args(["branch", name]).status().unwrap().success());
    }

    /// The commit that a branch is at.
    fn head(&self, branch: &str) -> String {
        let mut git = std::process::Command::new("git");
        git.arg("-C").arg(self.dir.path().join("shop"));
        let found = git.args(["rev-parse", branch]).output().unwrap();
        String::from_utf8(found.stdout).unwrap().trim().to_owned()
    }

    /// What we have said below an issue.
    fn ours(&self, number: u64) -> Vec<GitHubComment> {
        let mut comments = self.github.comments(number);
        comments.retain(|one| one.body.starts_with("<!-- codespar:"));
        comments
    }

    /// How often we have said something below an issue; a result comes before the last edit.
    fn said(&self, number: u64, text: &str) -> usize {
        let ours = self.ours(number);
        ours.iter().filter(|one| one.body.contains(text)).count()
    }

    fn last(&self, number: u64) -> String {
        let last = self.ours(number).pop();
        last.map(|one| one.body).unwrap_or_default()
    }
}
