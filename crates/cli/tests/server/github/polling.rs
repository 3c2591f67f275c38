//! GitHub without an app and without a public address: a token, and polling.

use std::{process::Command, sync::OnceLock, time::Duration};

use codespar_testkit::Script;

use super::Shop;
use crate::{
    client::Served,
    common::{Bench, wait_for},
    crash::{CrashScene, INSTRUCTION, killed_at_any_point_it_is_done_once},
};

/// A shop that is asked with the token of bob, and in which alice comments once.
struct PolledShop {
    shop: Shop,
    issue: u64,
    said: OnceLock<()>,
}

impl CrashScene for PolledShop {
    const CHANNEL: &'static str = "github";
    const ENDED: &'static str = "✅ PR #2: Say hi";
    const RESULT: &'static str = "PR #2: Say hi is ready";

    fn set_up(script: Script) -> Self {
        let shop = Shop::new(script);
        let issue = shop.github.open_issue("alice", "The greeting", "");
        Self {
            shop,
            issue,
            said: OnceLock::new(),
        }
    }

    fn bench(&self) -> &Bench {
        &self.shop.bench
    }

    fn command(&self) -> Command {
        let serve = ["serve", "--listen", "127.0.0.1:0"];
        let mut command = self.shop.bench.command(&serve);
        command
            .env("GITHUB_TOKEN", "bob-token")
            .env("GITHUB_POLL", "acme/shop")
            .env("GITHUB_POLL_SECONDS", "1")
            .env("GITHUB_API_URL", &self.shop.github.base_url)
            .env("GITHUB_SERVER_URL", &self.shop.github.base_url);
        command
    }

    /// What is said before the first look does not count, and GitHub's times have no fractions.
    fn ask(&self, _: &Served) {
        self.said.get_or_init(|| {
            let home = self.shop.bench.room.codespar_home();
            let cursor = home.join("channels/github-poll.json");
            wait_for("the first look", || cursor.exists());
            std::thread::sleep(Duration::from_millis(1_100));
            let text = format!("@codespar {INSTRUCTION}");
            self.shop.github.say(self.issue, "alice", &text);
        });
    }

    fn texts(&self) -> Vec<String> {
        let comments = self.shop.github.comments(self.issue);
        comments.into_iter().map(|one| one.body).collect()
    }

    fn published(&self) -> (usize, usize) {
        (self.shop.github.pull_count(), self.shop.commits())
    }
}

/// A look is noted also if it found nothing; the first ones are over before the server listens.
#[test]
fn a_server_that_polls_github_and_is_killed_does_it_once() {
    killed_at_any_point_it_is_done_once::<PolledShop>(&[
        ("AT", "arrived"),
        ("AT", "received"),
        ("AT", "noted:3"),
        ("AT", "noted:5"),
        ("AT", "begun"),
        ("AT", "posted"),
    ]);
}
