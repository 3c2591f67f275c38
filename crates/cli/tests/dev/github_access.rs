//! With which token and which rights GitHub is reached, and what is done with less.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

use codespar_testkit::process::{Finished, spawn};
use serde_json::json;

use crate::{
    common::{PATIENCE, parsed},
    github::{Hub, script},
    repository::git,
};

fn program(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Without a token in the environment; programs are found in these directories first.
fn without_token(hub: &Hub, dirs: &[&Path], args: &[&str]) -> Command {
    let mut command = hub.command("nobody", args);
    let path = std::env::var_os("PATH").unwrap();
    let dirs = dirs.iter().map(|dir| dir.to_path_buf());
    let all = dirs.chain(std::env::split_paths(&path));
    command
        .env_remove("GITHUB_TOKEN")
        .env("PATH", std::env::join_paths(all).unwrap());
    command
}

fn run(mut command: Command) -> Finished {
    spawn(&mut command).unwrap().wait(PATIENCE).unwrap()
}

const LIST: &[&str] = &["pr", "list", "--repo", "acme/shop"];

/// A helper of the user's that knows one token.
fn helper(hub: &Hub, token: &str) {
    let config = format!("[credential]\n\thelper = \"!echo password={token}; echo username=x\"\n");
    fs::write(hub.bench.room.home().join(".gitconfig"), config).unwrap();
}

#[test]
fn a_token_comes_from_gh_and_then_from_the_users_credential_helper() {
    let hub = Hub::new(script());
    let bin = hub.bench.room.home().join("bin");
    let host = hub.github.base_url.trim_start_matches("http://");
    let gh =
        format!("#!/bin/sh\n[ \"$*\" = \"auth token --hostname {host}\" ] && echo alice-token\n");
    helper(&hub, "unknown-token");
    program(&bin.join("gh"), &gh);
    let by_gh = run(without_token(&hub, &[&bin], LIST));
    assert_eq!(by_gh.status.code(), Some(0), "{}", by_gh.stderr);

    program(
        &bin.join("gh"),
        "#!/bin/sh\necho not signed in >&2\nexit 1\n",
    );
    let refused = run(without_token(&hub, &[&bin], LIST));
    assert!(
        refused.stderr.contains("does not accept the token"),
        "{}",
        refused.stderr
    );
    assert!(!refused.stderr.contains("unknown-token"));
    helper(&hub, "bob-token");
    let by_helper = run(without_token(&hub, &[&bin], LIST));
    assert_eq!(by_helper.status.code(), Some(0), "{}", by_helper.stderr);

    let given = hub.run_as("nobody", LIST);
    assert!(
        given.stderr.contains("does not accept"),
        "the variable wins: {}",
        given.stderr
    );
}

#[test]
fn no_helper_and_no_gh_of_a_repository_is_run_for_a_token() {
    let hub = Hub::new(script());
    let work = hub.bench.work();
    git(&work, &["init", "--quiet", "-b", "main"]);
    let touch = format!("!touch {}/helped; echo password=x", work.display());
    git(&work, &["config", "credential.helper", &touch]);
    let scoped = format!("credential.{}.helper", hub.github.base_url);
    git(&work, &["config", &scoped, &touch]);
    program(
        &work.join("bin/gh"),
        "#!/bin/sh\ntouch ran\necho alice-token\n",
    );
    hub.bench.trust();
    let finished = run(without_token(&hub, &[&work.join("bin")], LIST));
    assert_eq!(finished.status.code(), Some(2), "{}", finished.stdout);
    assert!(
        finished.stderr.contains("gh auth login"),
        "{}",
        finished.stderr
    );
    assert!(!work.join("helped").exists() && !work.join("ran").exists());
}

#[test]
fn an_origin_is_found_through_the_users_rewriting_rules() {
    let hub = Hub::new(script());
    let work = hub.bench.work();
    git(&work, &["init", "--quiet", "-b", "main"]);
    git(&work, &["remote", "add", "origin", "gh:acme/shop"]);
    let list = || hub.run_as("alice", &["pr", "list"]);
    assert!(
        list()
            .stdout
            .contains("no pull requests in the repository in")
    );
    let rules = format!(
        "[url \"{0}/\"]\n\tinsteadOf = gh:\n[url \"ssh://git@host.invalid/\"]\n\tinsteadOf = {0}/\n",
        hub.github.base_url
    );
    fs::write(hub.bench.room.home().join(".gitconfig"), rules).unwrap();
    let listed = list();
    assert!(
        listed.stdout.contains("no pull requests in acme/shop on"),
        "{} {}",
        listed.stdout,
        listed.stderr
    );
    // The second rule is for the user's own git: a token is for the address itself.
    let (report, code) = hub.dev(&["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    let counts = &report["verification"]["after"]["counts"];
    assert_eq!(
        *counts,
        json!({"passed": 1, "failed": 0}),
        "it was not cloned: {report}"
    );
}

#[test]
fn a_token_that_may_not_read_checks_shows_and_reviews_and_merges_only_when_told_to() {
    let hub = Hub::new(script());
    let (report, code) = hub.dev(&["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    hub.github.refuse_checks(403);
    let at = ["--repo", "acme/shop"];
    let ran = |args: &[&str]| hub.run_as("alice", &[args, &at[..]].concat());

    let shown = ran(&["pr", "show", "1"]);
    assert_eq!(shown.status.code(), Some(0), "{}", shown.stderr);
    assert!(
        shown.stdout.contains("checks unknown: "),
        "{}",
        shown.stdout
    );
    let shown = parsed(&ran(&["pr", "show", "1", "--json"]).stdout);
    assert!(
        shown["checks_unknown"]
            .as_str()
            .unwrap()
            .contains("checks: read")
    );
    let reviewed = ran(&["review", "1"]);
    assert_eq!(reviewed.status.code(), Some(0), "{}", reviewed.stderr);

    let refused = ran(&["merge", "1"]);
    assert_eq!(refused.status.code(), Some(1), "{}", refused.stdout);
    assert!(
        refused.stderr.contains("its checks are unknown"),
        "{}",
        refused.stderr
    );
    assert!(
        refused.stderr.contains("--without-checks"),
        "{}",
        refused.stderr
    );
    let merged = ran(&["merge", "1", "--without-checks", "--json"]);
    assert_eq!(merged.status.code(), Some(0), "{}", merged.stderr);
    let merged = parsed(&merged.stdout);
    assert_eq!(merged["unchecked"], true);
    assert!(merged["checks_unknown"].is_string(), "{merged}");
}

#[test]
fn a_pull_request_that_changes_nothing_is_not_merged() {
    let hub = Hub::new(script());
    let tree = git(&hub.bare, &["rev-parse", "main^{tree}"]);
    let args = ["commit-tree", tree.trim(), "-p", "main", "-m", "nothing"];
    let commit = git(&hub.bare, &args);
    git(&hub.bare, &["branch", "nothing", commit.trim()]);
    hub.github.open_pull("alice", "nothing", "main").unwrap();
    for json_only in [false, true] {
        if json_only {
            hub.github.answer_json_only();
        }
        let refused = hub.run_as("alice", &["merge", "1", "--repo", "acme/shop"]);
        assert_eq!(refused.status.code(), Some(1), "{}", refused.stdout);
        assert!(
            refused.stderr.contains("it changes nothing"),
            "{}",
            refused.stderr
        );
    }
}
