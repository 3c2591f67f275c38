//! The dev agent against a GitHub: real HTTP, real git behind it.

use std::process::Command;

use codespar_testkit::{
    Conversation, Matcher, Script, Turn,
    github::{FakeGitHub, GitHubFault, GitHubOptions},
    process::{Finished, spawn},
};
use serde_json::{Value, json};

use crate::{
    common::{Bench, PATIENCE, parsed},
    repository::{GREET, TEST, git},
};

const FIX: &str = "Say hi\n\n===FILE: greet.sh===\n<<<SEARCH\ngreeting=hello\n>>>REPLACE\ngreeting=hi\n===END===\n\
                   ===MOVE: old.txt -> new/name.txt===\n===DELETE: gone.txt===\n";

/// A bench, a GitHub over a bare repository, and the runtime it lives on.
pub(crate) struct Hub {
    pub(crate) bench: Bench,
    pub(crate) github: FakeGitHub,
    pub(crate) bare: std::path::PathBuf,
    runtime: tokio::runtime::Runtime,
}

impl Hub {
    pub(crate) fn new(script: Script) -> Self {
        Self::with_files(
            script,
            &[
                ("greet.sh", GREET),
                ("test.sh", TEST),
                ("Makefile", "test:\n\t@sh test.sh\n"),
                ("old.txt", "same\r\n"),
                ("gone.txt", "x\n"),
            ],
        )
    }

    pub(crate) fn with_files(script: Script, files: &[(&str, &str)]) -> Self {
        Self::with_seed(script, files, |_| {})
    }

    /// With what else `prepare` adds to the index of the first commit.
    pub(crate) fn with_seed(
        script: Script,
        files: &[(&str, &str)],
        prepare: impl FnOnce(&std::path::Path),
    ) -> Self {
        let bench = Bench::new(script);
        std::fs::remove_dir(bench.work().join(".git")).unwrap();
        let seed = bench.room.home().join("seed");
        let bare = bench.room.home().join("shop.git");
        std::fs::create_dir(&seed).unwrap();
        for (name, text) in files {
            std::fs::write(seed.join(name), text).unwrap();
        }
        git(&seed, &["init", "--quiet", "-b", "main"]);
        git(&seed, &["add", "."]);
        prepare(&seed);
        git(
            &seed,
            &["commit", "--quiet", "--no-gpg-sign", "-m", "Begin"],
        );
        git(
            &seed,
            &["clone", "--quiet", "--bare", ".", bare.to_str().unwrap()],
        );
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let github = runtime
            .block_on(FakeGitHub::start(&bare, GitHubOptions::default()))
            .unwrap();
        Self {
            bench,
            github,
            bare,
            runtime,
        }
    }

    pub(crate) fn command(&self, who: &str, args: &[&str]) -> Command {
        let mut command = self.bench.command(args);
        command
            .env("GITHUB_TOKEN", format!("{who}-token"))
            .env("GITHUB_API_URL", &self.github.base_url)
            .env("GITHUB_SERVER_URL", &self.github.base_url);
        command
    }

    pub(crate) fn run_as(&self, who: &str, args: &[&str]) -> Finished {
        spawn(&mut self.command(who, args))
            .unwrap()
            .wait(PATIENCE)
            .unwrap()
    }

    pub(crate) fn dev(&self, args: &[&str]) -> (Value, Option<i32>) {
        self.dev_with(&[], args)
    }

    pub(crate) fn dev_with(&self, env: &[(&str, String)], args: &[&str]) -> (Value, Option<i32>) {
        let base = ["dev", "--json", "--repo", "acme/shop"];
        let mut command = self.command("alice", &[&base[..], args].concat());
        command.envs(env.iter().cloned());
        let finished = spawn(&mut command).unwrap().wait(PATIENCE).unwrap();
        let json = finished.stdout.starts_with('{');
        assert!(json, "{} {}", finished.stdout, finished.stderr);
        (parsed(&finished.stdout), finished.status.code())
    }

    fn branches(&self) -> String {
        git(
            &self.bare,
            &[
                "branch",
                "--list",
                "--format=%(refname:short)",
                "codespar/*",
            ],
        )
    }
}

pub(crate) fn script() -> Script {
    Script::new()
        .conversation(
            Conversation::new("picker", Matcher::system_contains("You choose the files"))
                .turn(Turn::text("[\"greet.sh\"]")),
        )
        .conversation(
            Conversation::new(
                "writer",
                Matcher::system_contains("turns an instruction into"),
            )
            .turn(Turn::text(FIX)),
        )
        .conversation(
            Conversation::new(
                "reviewer",
                Matcher::system_contains("You review a pull request"),
            )
            .turn(Turn::text(
                json!({"summary": "Fine.", "findings": [
                    {"path": "greet.sh", "line": 2, "severity": "low", "text": "short"}
                ]})
                .to_string(),
            )),
        )
}

/// Whoever can read the head can write the mark of its review, before we do.
#[test]
fn a_mark_that_somebody_else_wrote_does_not_have_a_review_paid_for_again() {
    let hub = Hub::new(script());
    let (report, code) = hub.dev(&["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    let head = git(
        &hub.bare,
        &["rev-parse", report["branch"].as_str().unwrap()],
    );
    let mark = format!("<!-- codespar-key: review-{} -->", head.trim());
    hub.github.submit_review(1, "carol", &mark, &[]);
    let asked = || {
        let reviewed = hub.run_as("bob", &["review", "1", "--repo", "acme/shop"]);
        assert_eq!(reviewed.status.code(), Some(0), "{}", reviewed.stderr);
        hub.bench.server.requests().len()
    };
    assert_eq!(asked(), asked());
    assert_eq!(hub.github.review_count(1), 2);
}

#[test]
fn a_change_reaches_github_as_one_commit_and_one_pull_request() {
    let hub = Hub::new(script());
    let (report, code) = hub.dev(&["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["pull_request"]["number"], 1);
    assert!(
        report["pull_request"]["url"]
            .as_str()
            .unwrap()
            .contains("/acme/shop/pull/1")
    );
    assert_eq!(
        report["verification"]["after"]["counts"],
        json!({"passed": 1, "failed": 0})
    );
    let branch = report["branch"].as_str().unwrap();
    let show = |path: &str| git(&hub.bare, &["show", &format!("{branch}:{path}")]);
    assert_eq!(show("greet.sh"), GREET.replace("hello", "hi"));
    assert_eq!(show("new/name.txt"), "same\r\n");
    let names = git(&hub.bare, &["ls-tree", "-r", "--name-only", branch]);
    assert_eq!(names, "Makefile\ngreet.sh\nnew/name.txt\ntest.sh\n");
    assert_eq!(
        git(
            &hub.bare,
            &["rev-list", "--count", &format!("main..{branch}")]
        ),
        "1\n"
    );

    let reviewed = hub.run_as("bob", &["review", "1", "--repo", "acme/shop"]);
    assert_eq!(reviewed.status.code(), Some(0), "{}", reviewed.stderr);
    assert_eq!(hub.github.review_count(1), 1);
    let merged = hub.run_as("alice", &["merge", "1", "--squash", "--repo", "acme/shop"]);
    assert_eq!(merged.status.code(), Some(0), "{}", merged.stderr);
    assert_eq!(
        git(&hub.bare, &["show", "main:greet.sh"]),
        GREET.replace("hello", "hi")
    );
    assert_eq!(hub.branches(), "");
    let everything = format!("{}{}{report}", reviewed.stdout, merged.stdout);
    assert!(!everything.contains("alice-token"));
}

#[test]
fn killed_while_it_publishes_it_finds_its_own_branch_and_pull_request_again() {
    for step in ["made commit", "commit", "made pull_request", "pull_request"] {
        let hub = Hub::new(script());
        let mut command = hub.command("alice", &["dev", "make it say hi", "--repo", "acme/shop"]);
        command.env("CODESPAR_TEST_DIE_AFTER", step);
        let died = spawn(&mut command).unwrap().wait(PATIENCE).unwrap();
        assert_eq!(died.status.code(), None, "{step}: {}", died.stderr);
        let tasks = parsed(&hub.bench.run(&["task", "list", "--json"]).stdout);
        let id = tasks["tasks"][0]["task_id"].as_str().unwrap().to_owned();
        let resumed = hub.run_as("alice", &["dev", "--json", "--resume", &id]);
        assert_eq!(resumed.status.code(), Some(0), "{step}: {}", resumed.stderr);
        assert_eq!(hub.branches().lines().count(), 1, "{step}");
        assert_eq!(hub.github.pull_count(), 1, "{step}");
        let branch = hub.branches().trim().to_owned();
        let count = git(
            &hub.bare,
            &["rev-list", "--count", &format!("main..{branch}")],
        );
        assert_eq!(count, "1\n", "{step}");
    }
}

#[test]
fn a_connection_that_breaks_after_the_effect_makes_nothing_twice() {
    let hub = Hub::new(script());
    hub.github
        .inject(GitHubFault::cut_after("POST", "/git/refs"));
    hub.github.inject(GitHubFault::cut_after("POST", "/pulls"));
    let (report, code) = hub.dev(&["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(hub.github.faults_left(), 0);
    assert_eq!(hub.branches().lines().count(), 1);
    assert_eq!(hub.github.pull_count(), 1);
}

#[test]
fn a_merge_says_every_reason_against_it() {
    let hub = Hub::new(script());
    let (report, code) = hub.dev(&["make it say hi", "--draft"]);
    assert_eq!(code, Some(0), "{report}");
    let commit = report["commit"].as_str().unwrap();
    hub.github.set_check_run(commit, "build", Some("failure"));
    hub.github.set_check_run(commit, "lint", None);
    hub.github.set_status(commit, "deploy", "pending");
    let refused = hub.run_as("carol", &["merge", "1", "--repo", "acme/shop"]);
    assert_eq!(refused.status.code(), Some(1));
    for expected in [
        "it is a draft",
        "check `build` failed",
        "check `lint` is not over",
        "check `deploy` is not over",
        "carol may not write",
    ] {
        assert!(
            refused.stderr.contains(expected),
            "{expected} is not in\n{}",
            refused.stderr
        );
    }
}

#[test]
fn without_a_clone_it_reads_through_the_api_and_says_that_it_is_not_verified() {
    let hub = Hub::new(script());
    let mut command = hub.command(
        "alice",
        &["dev", "make it say hi", "--repo", "acme/shop", "--json"],
    );
    command.env("GITHUB_SERVER_URL", "http://127.0.0.1:9");
    let finished = spawn(&mut command).unwrap().wait(PATIENCE).unwrap();
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    let report = parsed(&finished.stdout);
    assert!(
        report["not_verified"]
            .as_str()
            .unwrap()
            .contains("could not be cloned"),
        "{report}"
    );
    assert_eq!(hub.github.pull_count(), 1);
    let searched = hub
        .github
        .requests()
        .iter()
        .any(|request| request.path.contains("/search/code"));
    assert!(searched);
}

#[test]
fn a_bad_token_is_said_to_be_one() {
    let hub = Hub::new(script());
    let finished = hub.run_as("mallory", &["dev", "x", "--repo", "acme/shop"]);
    assert_ne!(finished.status.code(), Some(0));
    assert!(finished.stderr.contains("token"), "{}", finished.stderr);
    assert!(
        !finished.stderr.contains("mallory-token"),
        "{}",
        finished.stderr
    );
}

#[test]
fn a_run_that_was_proved_is_published_as_such_though_the_clone_is_out_of_reach_later() {
    let hub = Hub::new(script());
    let mut command = hub.command("alice", &["dev", "make it say hi", "--repo", "acme/shop"]);
    command.env("CODESPAR_TEST_DIE_AFTER", "commit");
    let died = spawn(&mut command).unwrap().wait(PATIENCE).unwrap();
    assert_eq!(died.status.code(), None, "{}", died.stderr);
    let tasks = parsed(&hub.bench.run(&["task", "list", "--json"]).stdout);
    let id = tasks["tasks"][0]["task_id"].as_str().unwrap().to_owned();
    let mut command = hub.command("alice", &["dev", "--json", "--resume", &id]);
    command.env("GITHUB_SERVER_URL", "http://127.0.0.1:9");
    let resumed = spawn(&mut command).unwrap().wait(PATIENCE).unwrap();
    assert_eq!(resumed.status.code(), Some(0), "{}", resumed.stderr);
    let report = parsed(&resumed.stdout);
    assert_eq!(
        report["verification"]["after"]["counts"],
        json!({"passed": 1, "failed": 0})
    );
}

#[test]
fn looking_at_pull_requests_clones_nothing() {
    let hub = Hub::new(script());
    let listed = hub.run_as("alice", &["pr", "list", "--repo", "acme/shop"]);
    assert_eq!(listed.status.code(), Some(0), "{}", listed.stderr);
    assert!(!hub.bench.room.codespar_home().join("clones").exists());
}

#[test]
fn a_commit_that_the_clone_does_not_get_is_read_through_the_api() {
    let hub = Hub::new(script());
    // Git is served from a copy that lags behind.
    let late = hub.bench.room.home().join("late.git");
    git(
        &hub.bare,
        &["clone", "--quiet", "--bare", ".", late.to_str().unwrap()],
    );
    let served = hub
        .runtime
        .block_on(FakeGitHub::start(&late, GitHubOptions::default()))
        .unwrap();
    let seed = hub.bench.room.home().join("seed");
    let commit = ["commit", "--quiet", "--no-gpg-sign", "--allow-empty"];
    git(&seed, &[&commit[..], &["-m", "Later"]].concat());
    git(
        &seed,
        &["push", "--quiet", hub.bare.to_str().unwrap(), "main"],
    );
    let mut command = hub.command(
        "alice",
        &["dev", "make it say hi", "--repo", "acme/shop", "--json"],
    );
    command.env("GITHUB_SERVER_URL", &served.base_url);
    let finished = spawn(&mut command).unwrap().wait(PATIENCE).unwrap();
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    let report = parsed(&finished.stdout);
    assert!(
        report["not_verified"]
            .as_str()
            .unwrap()
            .contains("could not be cloned"),
        "{report}"
    );
    assert_eq!(hub.github.pull_count(), 1);
}

#[test]
fn a_pull_request_is_named_by_its_url() {
    let hub = Hub::new(script());
    let (report, code) = hub.dev(&["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    let url = format!("{}/acme/shop/pull/1", hub.github.base_url);
    let reviewed = hub.run_as("alice", &["review", &url, "--json"]);
    assert_eq!(parsed(&reviewed.stdout)["number"], 1, "{}", reviewed.stderr);
    let other = hub.run_as("alice", &["merge", &url, "--repo", "acme/other"]);
    assert_eq!(other.status.code(), Some(2), "{}", other.stderr);
    assert!(
        other.stderr.contains("the pull request is in acme/shop"),
        "{}",
        other.stderr
    );
    // A directory of the same name is not meant.
    std::fs::create_dir_all(hub.bench.work().join("acme/shop")).unwrap();
    let words = ["merge", "acme/shop#1", "squash", "--json"];
    let merged = hub.run_as("alice", &words);
    assert_eq!(
        parsed(&merged.stdout)["strategy"],
        "squash",
        "{}",
        merged.stderr
    );
    let elsewhere = hub.run_as("alice", &["review", "https://github.com/acme/shop/pull/1"]);
    assert_eq!(elsewhere.status.code(), Some(2), "{}", elsewhere.stderr);
    assert!(
        elsewhere.stderr.contains("GITHUB_SERVER_URL"),
        "{}",
        elsewhere.stderr
    );
}

#[test]
fn a_draft_on_github_becomes_ready_after_its_checks() {
    let hub = Hub::new(script());
    let (report, code) = hub.dev(&["make it say hi", "--draft"]);
    assert_eq!(code, Some(0), "{report}");
    let commit = report["commit"].as_str().unwrap();
    let url = format!("{}/acme/shop/pull/1", hub.github.base_url);
    hub.github.set_check_run(commit, "build", None);
    let refused = hub.run_as("alice", &["pr", "ready", &url]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        refused.stderr.contains("check `build` is not over"),
        "{}",
        refused.stderr
    );
    hub.github.set_check_run(commit, "build", Some("success"));
    let ready = hub.run_as("alice", &["pr", "ready", &url, "--json"]);
    assert_eq!(parsed(&ready.stdout)["draft"], false, "{}", ready.stderr);
    assert_eq!(hub.branches().lines().count(), 1);
    let closed = hub.run_as("alice", &["pr", "close", &url, "--json"]);
    assert_eq!(
        parsed(&closed.stdout)["state"],
        "closed",
        "{}",
        closed.stderr
    );
    assert_eq!(hub.branches(), "");
}

/// A clone of the repository on GitHub as the user has it.
fn clone(hub: &Hub) {
    let work = hub.bench.work();
    let origin = format!("{}/acme/shop.git", hub.github.base_url);
    git(&work, &["init", "--quiet", "-b", "main"]);
    git(
        &work,
        &["pull", "--quiet", hub.bare.to_str().unwrap(), "main"],
    );
    git(&work, &["remote", "add", "origin", &origin]);
}

#[test]
fn the_branch_of_a_pull_request_on_github_is_fetched_and_checked_out() {
    let hub = Hub::new(script());
    clone(&hub);
    let (report, code) = hub.dev(&["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    let work = hub.bench.work();
    let finished = hub.run_as("alice", &["pr", "checkout", "1", "--json"]);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    let done = parsed(&finished.stdout);
    assert_eq!(done["branch"], report["branch"]);
    assert_eq!(done["back"], "git switch main");
    let text = std::fs::read_to_string(work.join("greet.sh")).unwrap();
    assert_eq!(text, GREET.replace("hello", "hi"));
    let config = std::fs::read_to_string(work.join(".git/config")).unwrap();
    assert!(
        !config.contains("alice-token") && !config.contains("Authorization"),
        "{config}"
    );
    git(&work, &["switch", "--quiet", "-"]);
    assert_eq!(git(&work, &["symbolic-ref", "--short", "HEAD"]), "main\n");

    let elsewhere = hub.bench.room.home().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    git(&elsewhere, &["init", "--quiet"]);
    let mut command = hub.command("alice", &["pr", "checkout", "acme/shop#1"]);
    let refused = spawn(command.current_dir(&elsewhere)).unwrap();
    let refused = refused.wait(PATIENCE).unwrap();
    assert_eq!(refused.status.code(), Some(1));
    let reason = "is not a clone of acme/shop";
    assert!(refused.stderr.contains(reason), "{}", refused.stderr);

    let closed = hub.run_as("alice", &["pr", "close", "1", "--repo", "acme/shop"]);
    assert_eq!(closed.status.code(), Some(0), "{}", closed.stderr);
    assert_eq!(hub.branches(), "");
}

#[test]
fn a_simulated_pull_request_on_github_is_a_draft_that_somebody_asked_for() {
    let hub = Hub::new(Script::new());
    let simulated = |more: &[&str]| {
        let base = ["dev", "make it say hi", "--repo", "acme/shop", "--json"];
        let mut command = hub.command("alice", &[&base[..], more].concat());
        command
            .env_remove("ANTHROPIC_API_KEY")
            .env_remove("ANTHROPIC_BASE_URL");
        spawn(&mut command).unwrap().wait(PATIENCE).unwrap()
    };
    let refused = simulated(&[]);
    assert_eq!(refused.status.code(), Some(2), "{}", refused.stdout);
    for expected in ["ANTHROPIC_API_KEY", "--simulate"] {
        assert!(refused.stderr.contains(expected), "{}", refused.stderr);
    }
    assert_eq!((hub.branches().as_str(), hub.github.pull_count()), ("", 0));
    for (number, answer) in [(1, "--yes"), (2, "--simulate")] {
        let made = simulated(&[answer]);
        assert_eq!(made.status.code(), Some(0), "{answer}: {}", made.stderr);
        let report = parsed(&made.stdout);
        assert_eq!(report["simulated"], true);
        assert_eq!(report["pull_request"]["number"], number);
        assert_eq!(report["pull_request"]["draft"], true, "{report}");
    }
}

#[test]
fn at_a_terminal_a_simulated_pull_request_on_github_is_asked_about() {
    let hub = Hub::new(Script::new());
    let run = |answer: &str| {
        let line = format!(
            "{} dev 'make it say hi' --repo acme/shop",
            env!("CARGO_BIN_EXE_codespar")
        );
        let mut command = hub.bench.room.command("script");
        command
            .current_dir(hub.bench.work())
            .env("GITHUB_TOKEN", "alice-token")
            .env("GITHUB_API_URL", &hub.github.base_url)
            .env("GITHUB_SERVER_URL", &hub.github.base_url)
            .args(["-qec", &line, "/dev/null"]);
        crate::common::type_into(&mut command, &[("y/N", answer)])
    };
    let shown = run("n");
    assert!(shown.contains("nothing was started"), "{shown}");
    assert_eq!(hub.github.pull_count(), 0);
    let shown = run("y");
    assert!(shown.contains("PR #1 (draft): [Simulated]"), "{shown}");
    assert!(
        shown
            .trim_end()
            .lines()
            .last()
            .unwrap()
            .contains("Simulated, nothing"),
        "{shown}"
    );
}
