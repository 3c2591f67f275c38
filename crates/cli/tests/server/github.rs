//! GitHub and the server, through the real binary: an app whose deliveries come over HTTP, and what
//! people then read below their issues and pull requests.

mod polling;

use std::{path::PathBuf, process::Command};

use codespar_testkit::{
    Gate, Script, Turn,
    github::{
        APP_ID, APP_KEY_PKCS1, FakeGitHub, GitHubComment, GitHubOptions, HookEvent, hook_signature,
    },
    process::spawn,
};

use crate::{
    client::{Api, Served, client_builder, started, token},
    common::{Bench, PATIENCE, git::git, kill_points::PLATFORM_POINTS, wait_for},
    crash::{CrashScene, INSTRUCTION, killed_at_any_point_it_is_done_once},
    repository::{FIX, GREET, answer, greeting},
    room::{MORE, WRONG, script, story_held_by, writer},
};

const SECRET: &str = "webhook-secret-of-the-test-app";

/// The server is started in a clone of `acme/shop`, whose app delivers to it. `alice` may do
/// everything, `carol` may read.
struct Shop {
    bench: Bench,
    github: FakeGitHub,
    bare: PathBuf,
    runtime: tokio::runtime::Runtime,
    client: reqwest::Client,
}

impl Shop {
    fn new(script: Script) -> Self {
        let bench = greeting(script);
        let bare = bench.room.home().join("shop.git");
        let to = bare.to_str().unwrap();
        git(&bench.work(), &["clone", "--quiet", "--bare", ".", to]);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let github = runtime
            .block_on(FakeGitHub::start(&bare, GitHubOptions::default()))
            .unwrap();
        github.install_app("codespar");
        let origin = github.clone_url.as_str();
        git(&bench.work(), &["remote", "add", "origin", origin]);
        std::fs::write(bench.room.home().join("key.pem"), APP_KEY_PKCS1).unwrap();
        Self {
            bench,
            github,
            bare,
            runtime,
            client: client_builder().build().unwrap(),
        }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.bench.command(args);
        command
            .env("GITHUB_APP_ID", APP_ID)
            .env(
                "GITHUB_APP_PRIVATE_KEY_FILE",
                self.bench.room.home().join("key.pem"),
            )
            .env("GITHUB_WEBHOOK_SECRET", SECRET)
            .env("GITHUB_API_URL", &self.github.base_url)
            .env("GITHUB_SERVER_URL", &self.github.base_url);
        command
    }

    fn serve(&self) -> Served {
        started(&mut self.command(&["serve", "--listen", "127.0.0.1:0"]))
    }

    /// The status of a delivery, or 0 if there was no answer.
    fn send(&self, served: &Served, event: &str, secret: &str, body: String) -> u16 {
        let request = self
            .client
            .post(format!("{}/hooks/github", served.base))
            .header("content-type", "application/json")
            .header("x-github-event", event)
            .header("x-github-delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958")
            .header(
                "x-hub-signature-256",
                hook_signature(secret, body.as_bytes()),
            )
            .body(body);
        let sent = self.runtime.block_on(async { request.send().await });
        sent.map_or(0, |response| response.status().as_u16())
    }

    fn deliver(&self, served: &Served, event: &HookEvent) -> u16 {
        self.send(served, event.event, SECRET, event.body.to_string())
    }

    fn say(&self, served: &Served, number: u64, login: &str, text: &str) {
        let event = self.github.say(number, login, text);
        assert_eq!(self.deliver(served, &event), 200, "{text}");
    }

    /// Waits for a comment of ours that has this text.
    fn read(&self, number: u64, text: &str) -> GitHubComment {
        let found = || {
            let comments = self.github.comments(number);
            let mut ours = comments
                .into_iter()
                .filter(|one| one.author == "codespar[bot]");
            ours.rfind(|one| one.body.contains(text))
        };
        wait_for(text, || found().is_some());
        found().unwrap()
    }

    /// How many commits the branch of ours has.
    fn commits(&self) -> usize {
        let all = ["for-each-ref", "--format=%(refname)", "refs/heads/codespar"];
        let range = format!("main..{}", git(&self.bare, &all).trim());
        let count = git(&self.bare, &["rev-list", "--count", &range]);
        count.trim().parse().unwrap()
    }

    fn count(&self, number: u64, text: &str) -> usize {
        let comments = self.github.comments(number);
        comments
            .iter()
            .filter(|one| one.body.contains(text))
            .count()
    }
}

#[test]
fn an_issue_becomes_a_merged_pull_request_by_comments_alone() {
    let gate = Gate::closed();
    let shop = Shop::new(story_held_by(&gate));
    let served = shop.serve();
    let shot = shop.github.attach("shot.png", b"\x89PNG\r\n\x1a\nrest");
    let issue = shop
        .github
        .open_issue("mallory", "The greeting", "It is <!-- very --> rude.");
    shop.say(&served, issue, "mallory", "@codespar fix the greeting");
    shop.read(issue, "@mallory you have no role here");

    let text = format!("@codespar fix the greeting: make it friendlier ![as here]({shot})");
    shop.say(&served, issue, "alice", &text);
    let begun = shop.read(issue, "🔍 acme/shop");
    gate.open();
    let result = shop.read(issue, "@alice PR #2 (draft): Say hey is ready");
    assert!(result.body.contains("/acme/shop/pull/2"), "{result:#?}");
    let progress = shop.read(issue, "⚠️ PR #2");
    assert_eq!(progress.id, begun.id, "it was edited in place");
    assert_eq!(shop.count(issue, "🔍"), 1);
    let asked = shop.bench.server.requests();
    let asked = asked.iter().map(|request| request.json().to_string());
    let asked = asked.collect::<Vec<_>>().join("\n");
    assert!(asked.contains("image/png"), "the picture reached the model");
    assert!(asked.contains("Issue #1: The greeting"), "so did the issue");
    assert!(!asked.contains("<!-- very -->"), "without what nobody sees");

    shop.say(&served, 2, "alice", "@codespar merge PR #2");
    shop.read(2, "is a draft");
    shop.say(&served, 2, "carol", "@codespar also make the tests pass");
    shop.read(2, "@carol this needs the role write");
    shop.say(&served, 2, "alice", "@codespar also make the tests pass");
    shop.read(2, "is ready (the tests pass with it)");
    shop.say(&served, 2, "carol", "@codespar review PR #2");
    shop.read(2, "hi is short");
    assert_eq!(shop.github.review_count(2), 1);
    let mut ready = shop.command(&["pr", "ready", "2", "--anyway"]);
    let ready = spawn(&mut ready).unwrap().wait(PATIENCE).unwrap();
    assert_eq!(ready.status.code(), Some(0), "{}", ready.stderr);
    let head = git(
        &shop.bare,
        &[
            "for-each-ref",
            "--format=%(objectname)",
            "refs/heads/codespar",
        ],
    );
    wait_for("the check at the head", || {
        shop.github
            .said_of(head.trim())
            .get("CodeSpar")
            .map(String::as_str)
            == Some("success")
    });
    shop.say(&served, 2, "alice", "@codespar merge PR #2 squash");
    shop.read(2, "merged PR #2 into main by squash");
    assert_eq!(
        git(&shop.bare, &["show", "main:greet.sh"]),
        GREET.replace("hello", "hi")
    );
    assert_eq!(git(&shop.bare, &["rev-list", "--count", "main"]), "2\n");
    assert_eq!(shop.github.pull_count(), 1);
    let reader = Api::new(&served.base, &token(&shop.bench, "read"));
    let (_, metrics) = reader.get("/metrics");
    let counted = "codespar_webhooks_total{channel=\"github\",outcome=\"accepted\"} 7";
    assert!(metrics.as_str().unwrap().contains(counted), "{metrics}");
}

#[test]
fn a_label_starts_the_work_of_an_issue_and_a_question_is_answered_by_its_number() {
    let question = "Which greeting do you mean?\n1. the one in greet.sh\n2. the one in test.sh";
    let shop = Shop::new(script([writer(
        "It should be polite",
        [Turn::text(question), answer("Say hi", FIX)],
    )]));
    let served = shop.serve();
    let body = "It should be polite. in evil/repo with gpt-9";
    let issue = shop.github.open_issue("mallory", "The greeting", body);
    let event = shop.github.label(issue, "alice", "codespar");
    assert_eq!(shop.deliver(&served, &event), 200);
    let asked = shop.read(issue, "Answer with a number");
    assert!(asked.body.contains("\n@alice Which greeting"), "{asked:#?}");
    shop.say(&served, issue, "mallory", "1");
    shop.say(&served, issue, "carol", "1");
    shop.read(issue, "an answer needs the role write");
    shop.say(&served, issue, "alice", "1");
    shop.read(issue, "answered by alice: the one in greet.sh");
    shop.read(issue, "@alice PR #2: Say hi is ready");
    // The same label again is the same request.
    assert_eq!(shop.deliver(&served, &event), 200);
    shop.say(&served, issue, "alice", "@codespar status");
    shop.read(issue, "nothing is under way here");
    assert_eq!(shop.github.pull_count(), 1);
    wait_for("the reactions", || {
        shop.github.issue_reactions(issue).len() == 2
    });
}

#[test]
fn a_review_with_remarks_is_one_request_on_the_branch_of_its_pull_request() {
    let shop = Shop::new(script([
        writer("make it friendlier", [answer("Say hey", WRONG)]),
        writer("greet.sh:2: say hi instead", [answer("Say hi", MORE)]),
    ]));
    let served = shop.serve();
    let issue = shop.github.open_issue("alice", "The greeting", "");
    shop.say(
        &served,
        issue,
        "alice",
        "@codespar fix it: make it friendlier",
    );
    shop.read(issue, "@alice PR #2");
    let remarks = [
        ("greet.sh", 2, "say hi instead"),
        ("greet.sh", 3, "and nothing else"),
    ];
    let review = "@codespar please do this";
    for event in shop.github.submit_review(2, "alice", review, &remarks) {
        assert_eq!(shop.deliver(&served, &event), 200);
    }
    shop.read(2, "is ready (the tests pass with it)");
    shop.read(2, "✅ PR #2");
    assert_eq!(shop.commits(), 2);
    assert_eq!(shop.github.pull_count(), 1);
    assert_eq!(shop.count(2, "🔍"), 1, "one task");
}

#[test]
fn what_github_did_not_send_starts_nothing() {
    let shop = Shop::new(script([]));
    let served = shop.serve();
    let issue = shop.github.open_issue("alice", "The greeting", "");
    let event = shop
        .github
        .say(issue, "alice", "@codespar fix the greeting");
    let body = event.body.to_string();
    for (secret, body, expected) in [
        ("another-secret", body.clone(), 401),
        (SECRET, "{".to_owned(), 400),
        (SECRET, "x".repeat(10 << 20), 413),
        (SECRET, body.replace("acme/shop", "mallory/shop"), 200),
        (SECRET, event.with_action("edited").body.to_string(), 200),
    ] {
        let shown = format!("{body:.60}");
        assert_eq!(
            shop.send(&served, "issue_comment", secret, body),
            expected,
            "{shown}"
        );
    }
    for (login, text) in [
        ("ci[bot]", "@codespar whoami"),
        ("codespar[bot]", "@codespar whoami"),
        ("alice", "> @codespar whoami"),
    ] {
        shop.say(&served, issue, login, text);
    }
    shop.say(&served, issue, "carol", "@codespar whoami");
    shop.read(issue, "@carol carol");
    let ours = shop.count(issue, "<!-- codespar:");
    assert_eq!(ours, 1);
    assert_eq!(shop.bench.server.request_count(), 0);
}

/// A shop in which somebody comments once; the delivery is made again after a kill.
struct Commented {
    shop: Shop,
    issue: u64,
    event: HookEvent,
}

impl CrashScene for Commented {
    const CHANNEL: &'static str = "github";
    const ENDED: &'static str = "✅ PR #2: Say hi";
    const RESULT: &'static str = "PR #2: Say hi is ready";

    fn set_up(script: Script) -> Self {
        let shop = Shop::new(script);
        let issue = shop.github.open_issue("alice", "The greeting", "");
        let text = format!("@codespar {INSTRUCTION}");
        let event = shop.github.say(issue, "alice", &text);
        Self { shop, issue, event }
    }

    fn bench(&self) -> &Bench {
        &self.shop.bench
    }

    fn command(&self) -> Command {
        self.shop.command(&["serve", "--listen", "127.0.0.1:0"])
    }

    fn ask(&self, served: &Served) {
        self.shop.deliver(served, &self.event);
    }

    fn texts(&self) -> Vec<String> {
        let comments = self.shop.github.comments(self.issue);
        comments.into_iter().map(|one| one.body).collect()
    }

    fn published(&self) -> (usize, usize) {
        (self.shop.github.pull_count(), self.shop.commits())
    }
}

#[test]
fn a_server_that_is_killed_at_any_point_does_it_once_on_github() {
    killed_at_any_point_it_is_done_once::<Commented>(&PLATFORM_POINTS);
}

#[test]
fn half_a_setup_is_refused() {
    let bench = Bench::new(Script::new());
    for (name, value, expected) in [
        (
            "GITHUB_WEBHOOK_SECRET",
            "x",
            "GITHUB_TOKEN or an app is not",
        ),
        ("GITHUB_APP_ID", "1", "GITHUB_WEBHOOK_SECRET is not"),
        ("GITHUB_POLL", "acme/shop", "GITHUB_TOKEN or an app is not"),
        ("GITHUB_POLL", "shop", "is not written owner/name"),
    ] {
        let mut command = bench.command(&["serve", "--listen", "127.0.0.1:0"]);
        command.env(name, value);
        let refused = spawn(&mut command).unwrap().wait(PATIENCE).unwrap();
        assert_eq!(refused.status.code(), Some(2), "{name}");
        assert!(refused.stderr.contains(expected), "{}", refused.stderr);
    }
}
