//! What a run says when it starts, while it waits and when it ends.

use std::time::Duration;

use codespar_testkit::{Conversation, Fault, Matcher, Turn};
use serde_json::json;

use crate::{
    common::PATIENCE,
    repository::{FIX, answer, dev, git, greeting, pull, script},
};

const RETRY: &str = "   try 1 failed (anthropic answered 529: too many requests); next in 0.1 s";

#[test]
fn the_base_and_what_is_not_part_of_the_run_are_said_first() {
    let bench = greeting(script(&["greet.sh"], [answer("Say hi", FIX)]));
    let head = git(&bench.work(), &["rev-parse", "HEAD"]);
    let head = head.trim();
    let base = format!("Base: main at {}", &head[..10]);

    let clean = bench.run(&["dev", "make it say hi"]);
    assert_eq!(clean.status.code(), Some(0), "{}", clean.stderr);
    assert_eq!(clean.stdout.lines().next(), Some(base.as_str()));

    bench.file("test.sh", "echo changed\n");
    bench.file("new/file.txt", "new\n");
    git(&bench.work(), &["checkout", "--quiet", "--detach"]);
    let dirty = bench.run(&["dev", "make it say hi, again"]);
    assert_eq!(dirty.status.code(), Some(0), "{}", dirty.stderr);
    assert_eq!(
        dirty.stdout.lines().take(3).collect::<Vec<_>>(),
        [
            "Note: HEAD is detached; the base is a branch, not the commit that is checked out",
            "Note: uncommitted changes are not part of the run (2 files)",
            &base,
        ]
    );

    let (report, code) = dev(&bench, &["make it say hi, once more"]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["base"], "main");
    assert_eq!(report["base_commit"], head);
    assert_eq!(
        report["working_tree"],
        json!({"branch": null, "detached_head": true, "uncommitted_files": 2})
    );
    assert_eq!(report["verified"], true);
}

#[test]
fn a_run_that_fails_says_its_base_and_how_to_resume_it_in_json() {
    let bench = greeting(script(&["greet.sh"], [Turn::text("I would rather not.")]));
    let head = git(&bench.work(), &["rev-parse", "HEAD"]);
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(1), "{report}");
    let id = report["task_id"].as_str().unwrap();
    for (field, value) in [
        ("status", json!("failed")),
        ("verified", json!(false)),
        ("base", json!("main")),
        ("base_commit", json!(head.trim())),
        ("resume", json!(format!("codespar dev --resume {id}"))),
        (
            "working_tree",
            json!({"branch": "main", "detached_head": false, "uncommitted_files": 0}),
        ),
    ] {
        assert_eq!(report[field], value, "{field} of {report}");
    }
}

/// A provider that has too much to do, once.
fn busy() -> Fault {
    let fault = Fault::status(529).error("overloaded_error", "too many requests");
    fault.retry_after_ms(100).into()
}

#[test]
fn retries_of_a_model_call_are_shown_as_they_happen() {
    let bench = greeting(script(&["greet.sh"], [answer("Say hi", FIX).fault(busy())]));
    let finished = bench.run(&["dev", "make it say hi"]);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    assert!(
        finished.stdout.lines().any(|line| line == RETRY),
        "{}",
        finished.stdout
    );
}

#[test]
fn retries_of_the_agent_engine_are_shown_too() {
    let edit = json!({"file_path": "greet.sh", "old_string": "hello", "new_string": "hi"});
    let agent = Conversation::new(
        "agent",
        Matcher::first_user_contains("throw-away copy at one commit"),
    )
    .turn(Turn::tool("Read", &json!({"file_path": "greet.sh"})).fault(busy()))
    .turn(Turn::tool("Edit", &edit))
    .turn(Turn::text("Say hi"));
    let bench = greeting(script(&["greet.sh"], []).conversation(agent));
    let finished = bench.run(&["dev", "make it say hi", "--engine", "agent"]);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    assert!(
        finished.stdout.lines().any(|line| line == RETRY),
        "{}",
        finished.stdout
    );
}

#[test]
fn a_run_names_its_task_and_the_command_to_resume_it_also_after_an_interrupt() {
    let slow = answer("Say hi", FIX).latency(Duration::from_secs(600));
    let bench = greeting(script(&["greet.sh"], [slow]));
    let mut running = bench.start(&["dev", "make it say hi"]);
    running.wait_for_output("Analysing", PATIENCE).unwrap();
    running.interrupt().unwrap();
    let ended = running.wait(PATIENCE).unwrap();
    assert_eq!(ended.status.code(), Some(130), "{}", ended.stderr);
    let (_, id) = ended.stderr.trim_end().rsplit_once(' ').unwrap();
    let lines: Vec<&str> = ended.stderr.lines().collect();
    assert_eq!(
        lines,
        ["started", "stopped"].map(|state| format!(
            "codespar: task {id}: {state}. Resume with: codespar dev --resume {id}"
        ))
    );
    assert_eq!(crate::common::task(&bench, id)["status"], "killed");
}

#[test]
fn a_draft_whose_tests_fail_is_not_called_verified_and_ends_with_exit_code_3() {
    let bad = FIX.replace("greeting=hi", "greeting=ho");
    let stubborn = || {
        let turns: Vec<Turn> = (0..3).map(|_| answer("Say ho", &bad)).collect();
        script(&["greet.sh"], turns)
    };
    let bench = greeting(stubborn());
    let finished = bench.run(&["dev", "make it say hi"]);
    assert_eq!(finished.status.code(), Some(3), "{}", finished.stderr);
    let tests = "→ Tests fail: make test: before 1 of 1 failed, after 1 of 1 failed";
    assert!(
        finished.stdout.lines().any(|line| line == tests),
        "{}",
        finished.stdout
    );
    assert!(!finished.stdout.contains("Verified"), "{}", finished.stdout);
    let resumed = bench.run(&["dev", "--resume", &pull_task(&bench), "--json"]);
    assert_eq!(resumed.status.code(), Some(3), "{}", resumed.stderr);

    let bench = greeting(stubborn());
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(3), "{report}");
    assert_eq!(report["verified"], false);
    assert_eq!(report["pull_request"]["draft"], true);
    assert_eq!(pull(&bench, 1)["pull_request"]["draft"], true);
}

/// The task of the only run.
fn pull_task(bench: &crate::common::Bench) -> String {
    let tasks = crate::common::parsed(&bench.run(&["task", "list", "--json"]).stdout);
    tasks["tasks"][0]["task_id"].as_str().unwrap().to_owned()
}

#[test]
fn a_change_without_tests_to_run_ends_with_exit_code_0_and_is_not_verified() {
    let bench = greeting(script(&["greet.sh"], [answer("Say hi", FIX)]));
    let (report, code) = dev(&bench, &["make it say hi", "--no-verify"]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["verified"], false);
}
