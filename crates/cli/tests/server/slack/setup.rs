//! What is set up, and whether it is enough.

use codespar_testkit::{
    Script,
    process::{Finished, spawn},
    slack::{SLACK_APP_TOKEN, SLACK_SECRET, SLACK_TOKEN},
};

use super::Workspace;
use crate::common::{Bench, PATIENCE, parsed};

fn run(bench: &Bench, args: &[&str], variables: &[(&str, &str)]) -> Finished {
    let mut command = bench.command(args);
    command.envs(variables.iter().copied());
    spawn(&mut command).unwrap().wait(PATIENCE).unwrap()
}

#[test]
fn half_a_setup_is_refused() {
    let bench = Bench::new(Script::new());
    for (variable, value, missing) in [
        (
            "SLACK_BOT_TOKEN",
            SLACK_TOKEN,
            "neither SLACK_APP_TOKEN nor SLACK_SIGNING_SECRET",
        ),
        ("SLACK_APP_TOKEN", SLACK_APP_TOKEN, "SLACK_BOT_TOKEN is not"),
        (
            "SLACK_SIGNING_SECRET",
            SLACK_SECRET,
            "SLACK_BOT_TOKEN is not",
        ),
    ] {
        for args in [
            &["serve", "--listen", "127.0.0.1:0"][..],
            &["channels", "check"],
        ] {
            let refused = run(&bench, args, &[(variable, value)]);
            assert_eq!(refused.status.code(), Some(2), "{variable}");
            assert!(refused.stderr.contains(missing), "{}", refused.stderr);
            assert!(!refused.stderr.contains(value), "{}", refused.stderr);
        }
    }
}

#[test]
fn a_check_says_what_is_missing_and_fails() {
    let workspace = Workspace::new(Script::new());
    let bench = &workspace.bench;
    let none = run(bench, &["channels", "check"], &[]);
    assert_eq!(none.status.code(), Some(0));
    assert!(
        none.stdout.contains("no channel is set up"),
        "{}",
        none.stdout
    );

    let variables = [
        ("SLACK_BOT_TOKEN", SLACK_TOKEN),
        ("SLACK_APP_TOKEN", SLACK_APP_TOKEN),
        ("SLACK_API_URL", workspace.slack.url.as_str()),
    ];
    let fine = run(bench, &["channels", "check"], &variables);
    assert_eq!(fine.status.code(), Some(0), "{}", fine.stdout);
    assert!(fine.stdout.contains("codespar in Acme"), "{}", fine.stdout);
    let listed = run(bench, &["channels", "list", "--json"], &variables);
    let listed = parsed(&listed.stdout);
    assert_eq!(listed["channels"][0]["name"], "slack");
    assert_eq!(listed["channels"][0]["connects"], true);
    assert!(listed["channels"][0]["webhook"].is_null());

    workspace.slack.grant("chat:write");
    let lacking = run(bench, &["channels", "check", "--json"], &variables);
    assert_eq!(lacking.status.code(), Some(1));
    let findings = parsed(&lacking.stdout)["channels"][0]["findings"].clone();
    let findings = findings.as_array().unwrap().clone();
    let is_it = |one: &&serde_json::Value| {
        one["kind"] == "problem" && one["text"].as_str().unwrap().contains("app_mentions:read")
    };
    assert_eq!(findings.iter().filter(is_it).count(), 1, "{findings:#?}");
}
