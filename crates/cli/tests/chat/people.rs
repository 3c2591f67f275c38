//! Who may do what, and what is not for us.

use codespar_testkit::process::spawn_with_stdin;
use serde_json::json;

use crate::common::{PATIENCE, parsed};
use crate::room::{FIX, Record, answer, audit, decisions, greeting, say, script, settings, writer};

#[test]
fn a_stranger_is_refused_and_told_what_is_missing_only() {
    let bench = greeting(script([]));
    let finished = say(
        &bench,
        "eve",
        &["@codespar fix the greeting", "@codespar prs"],
    );
    assert_eq!(finished.stdout.matches("you have no role here").count(), 2);
    assert!(!finished.stdout.contains("work"), "{}", finished.stdout);
    assert!(Record::of(&bench).tasks.is_empty());
    assert_eq!(
        decisions(&bench),
        ["eve message refused", "eve message refused"]
    );
    assert_eq!(audit(&bench)[0]["role"], serde_json::Value::Null);
}

#[test]
fn a_role_is_enough_for_its_commands_and_no_others() {
    let bench = greeting(script([]));
    let finished = say(
        &bench,
        "bob",
        &[
            "@codespar whoami",
            "@codespar fix the greeting",
            "@codespar merge PR #1",
            "@codespar link acme/api",
        ],
    );
    for text in [
        "bob (bob), role read",
        "this needs the role write; you have read",
        "this needs the role merge; you have read",
        "this needs the role admin; you have read",
    ] {
        assert!(
            finished.stdout.contains(text),
            "{text}: {}",
            finished.stdout
        );
    }
    assert!(Record::of(&bench).tasks.is_empty());
}

#[test]
fn what_is_quoted_or_in_code_or_hidden_starts_nothing() {
    let bench = greeting(script([]));
    let finished = say(
        &bench,
        "ann",
        &[
            "> @codespar fix the greeting",
            "`@codespar fix the greeting`",
            "<!-- @codespar fix the greeting -->",
            "no mention at all",
        ],
    );
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    assert_eq!(finished.stdout, "");
    let record = Record::of(&bench);
    assert!(record.tasks.is_empty() && record.sent.is_empty());
    assert!(audit(&bench).is_empty());
}

#[test]
fn a_thread_has_so_many_turns_in_an_hour_and_says_so_once() {
    let bench = greeting(script([]));
    settings(&bench, &json!({"turnsPerThreadHour": 2}));
    let finished = say(&bench, "ann", &["@codespar whoami"; 5]);
    assert_eq!(finished.stdout.matches("role merge").count(), 2);
    let said = finished
        .stdout
        .matches("this thread had 2 turns in an hour");
    assert_eq!(said.count(), 1, "{}", finished.stdout);
}

#[test]
fn a_daily_budget_that_is_used_up_starts_nothing_more() {
    let bench = greeting(script([writer("say hi", [answer("Say hi", FIX)])]));
    settings(&bench, &json!({"dailyBudgetUsd": 0.5}));
    let first = say(&bench, "ann", &["@codespar fix it to say hi"]);
    assert!(
        first.stdout.contains("PR #1: Say hi is ready"),
        "{}",
        first.stdout
    );
    settings(&bench, &json!({"dailyBudgetUsd": 0.000_000_1}));
    let second = say(&bench, "ann", &["@codespar fix it again"]);
    assert!(
        second.stdout.contains("the daily budget"),
        "{}",
        second.stdout
    );
    assert!(second.stdout.contains("is used up"), "{}", second.stdout);
    assert_eq!(Record::of(&bench).tasks.len(), 1);
}

#[test]
fn without_a_model_the_nearest_command_is_suggested() {
    let bench = greeting(script([]));
    let mut command = bench.command(&["chat", "--as", "ann", "--simulate"]);
    let finished = spawn_with_stdin(&mut command, "@codespar mrege PR #1\n".into())
        .unwrap()
        .wait(PATIENCE)
        .unwrap();
    let text = "Did you mean: merge PR #n";
    assert!(finished.stdout.contains(text), "{}", finished.stdout);
}

#[test]
fn strangers_use_up_no_turns_and_are_told_so_often_only() {
    let bench = greeting(script([]));
    settings(&bench, &json!({"turnsPerThreadHour": 2}));
    let strange = say(&bench, "eve", &["@codespar whoami"; 9]);
    let told = strange.stdout.matches("you have no role here").count();
    assert_eq!(told, 5, "{}", strange.stdout);
    assert_eq!(decisions(&bench), ["eve message refused"; 9]);
    let known = say(&bench, "ann", &["@codespar whoami"; 3]);
    assert_eq!(known.stdout.matches("role merge").count(), 2);
    let said = "this thread had 2 turns in an hour";
    assert_eq!(known.stdout.matches(said).count(), 1, "{}", known.stdout);
}

#[test]
fn a_person_gets_a_role_and_loses_it_again() {
    let bench = greeting(script([]));
    let people = |args: &[&str]| {
        let line = [&["channels", "people"], args].concat();
        let finished = bench.run(&line);
        assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
        finished.stdout
    };
    assert_eq!(people(&["list"]), "no people\n");
    people(&["set", "terminal", "eve", "--role", "write"]);
    let set = people(&[
        "set",
        "terminal",
        "eve",
        "--forge-login",
        "eve-at-work",
        "--json",
    ]);
    let expected = json!({
        "channel": "terminal", "user": "eve", "role": "write", "forge_login": "eve-at-work",
        "set_by": parsed(&set)["set_by"],
    });
    assert_eq!(parsed(&set), expected);
    let listed = parsed(&people(&["list", "--json"]));
    assert_eq!(listed, json!({ "people": [expected] }));
    let known = say(&bench, "eve", &["@codespar whoami"]);
    assert!(known.stdout.contains("role write"), "{}", known.stdout);
    people(&["remove", "terminal", "eve"]);
    let again = bench.run(&["channels", "people", "remove", "terminal", "eve"]);
    assert_eq!(again.status.code(), Some(2), "{}", again.stderr);
    let strange = say(&bench, "eve", &["@codespar whoami"]);
    assert!(
        strange.stdout.contains("you have no role here"),
        "{}",
        strange.stdout
    );
}

#[test]
fn mentions_and_secrets_in_an_answer_reach_nobody() {
    let bench = greeting(script([]).turn(codespar_testkit::Turn::text(
        "@everyone look: ghp_0123456789abcdefghijABCDEFGHIJ012345",
    )));
    let finished = say(&bench, "bob", &["@codespar ask what is new?"]);
    assert!(finished.stdout.contains("look:"), "{}", finished.stdout);
    let record = Record::of(&bench);
    let text = record.texts("text").pop().unwrap();
    assert!(!text.contains("@everyone"), "{text}");
    assert!(!text.contains("ghp_0123456789"), "{text}");
}
