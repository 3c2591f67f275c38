//! The tests before and after.

use codespar_protocol::StopReason;
use codespar_testkit::Turn;
use serde_json::{Value, json};

use crate::{
    common::PATIENCE,
    repair::TALKATIVE,
    repository::{FIX, GREET, answer, branches, dev, git, greeting, pull, repository, script},
};

#[test]
fn a_fix_is_proved_before_and_after_and_the_evidence_is_in_the_pull_request() {
    let bench = greeting(script(
        &["greet.sh"],
        [answer("Say hi instead of hello", FIX)],
    ));
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["status"], "completed");
    assert_eq!(
        report["files"],
        json!([{"path": "greet.sh", "change": "modified", "added": 1, "removed": 1}])
    );
    let verification = &report["verification"];
    assert_eq!(verification["command"], "make test");
    assert_eq!(
        verification["before"]["counts"],
        json!({"passed": 0, "failed": 1})
    );
    assert_eq!(
        verification["after"]["counts"],
        json!({"passed": 1, "failed": 0})
    );
    let shown = pull(&bench, 1);
    let pull = &shown["pull_request"];
    assert_eq!(pull["title"], "Say hi instead of hello");
    assert_eq!(pull["draft"], false);
    let body = pull["body"].as_str().unwrap();
    for expected in [
        "> make it say hi",
        "`make test`",
        "| before | ❌ 1 of 1 failed |",
        "| after | ✅ 1 passed |",
        "## Changes\n\nSay hi instead of hello\n\n## Task\n\n> make it say hi\n",
        "## Files Modified\n\n- `greet.sh` (modified, +1 −1)\n\n## Verification\n",
        "## Risk\n\nLevel: **low**\n\n- no test was added or changed\n- the tests pass, and some fail without the change\n",
        "Made by [CodeSpar](https://github.com/codespar/codespar) for Ada",
    ] {
        assert!(body.contains(expected), "{expected} is not in\n{body}");
    }
    let branch = report["branch"].as_str().unwrap();
    let message = git(&bench.work(), &["log", "-1", "--format=%B", branch]);
    let task = report["task_id"].as_str().unwrap();
    assert!(
        message.starts_with("Say hi instead of hello\n\n"),
        "{message}"
    );
    assert!(
        message.contains(&format!("CodeSpar-Task: {task}\n")),
        "{message}"
    );
    assert!(message.contains("Requested-by: Ada\n"), "{message}");
    assert_eq!(
        git(&bench.work(), &["show", &format!("{branch}:greet.sh")]),
        GREET.replace("hello", "hi")
    );
    assert_eq!(shown["checks"][0]["state"], "success");
    // Two calls: the picker on the small model, the writer on the large one.
    let models: Vec<String> = bench
        .server
        .requests()
        .iter()
        .map(|request| request.json()["model"].as_str().unwrap().to_owned())
        .collect();
    assert!(
        models[0].contains("haiku") && models[1].contains("sonnet"),
        "{models:?}"
    );
    assert!(report["cost_usd"].as_f64().unwrap() > 0.0);
    assert_eq!(
        bench.room.wait_until_empty(PATIENCE).unwrap(),
        Vec::<u32>::new()
    );
    let left = bench.room.codespar_home().join("dev/runs");
    assert!(!left.exists() || std::fs::read_dir(left).unwrap().next().is_none());
}

#[test]
fn a_change_that_breaks_a_test_is_repaired_or_becomes_a_draft() {
    let bad = FIX.replace("greeting=hi", "greeting=ho");
    let mended = FIX.replace("greeting=hello", "greeting=ho");
    let repaired = script(
        &["greet.sh"],
        [answer("Say ho", &bad), answer("Say hi after all", &mended)],
    );
    let talkative = [("greet.sh", GREET), ("Makefile", TALKATIVE)];
    let bench = repository(repaired, &talkative);
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["pull_request"]["draft"], false);
    assert_eq!(report["pull_request"]["title"], "Say hi after all");
    let repair = bench.server.last_request().unwrap().json().to_string();
    assert!(
        repair.contains("make test") && repair.contains("1 failed"),
        "{repair}"
    );

    let stubborn = || {
        let turns = (0..3).map(|_| answer("Say ho", &bad)).collect::<Vec<_>>();
        script(&["greet.sh"], turns)
    };
    let bench = greeting(stubborn());
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(3), "{report}");
    assert_eq!(report["pull_request"]["draft"], true);
    assert_eq!(report["risk"]["level"], "high");
    let shown = pull(&bench, 1);
    let body = shown["pull_request"]["body"].as_str().unwrap();
    assert!(
        body.contains("The tests do not pass with this change"),
        "{body}"
    );
    // A draft with a red check is not merged, and both reasons are said.
    let merged = bench.run(&["merge", "1"]);
    assert_eq!(merged.status.code(), Some(1));
    assert!(merged.stderr.contains("it is a draft"), "{}", merged.stderr);
    assert!(
        merged.stderr.contains("check `codespar/verify` failed"),
        "{}",
        merged.stderr
    );

    let bench = greeting(stubborn());
    bench.file(
        ".codespar/settings.json",
        r#"{"verify": {"onFailure": "nothing"}}"#,
    );
    bench.trust();
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(1), "{report}");
    assert!(
        report["error"]
            .as_str()
            .unwrap()
            .contains("nothing was published"),
        "{report}"
    );
    assert_eq!(branches(&bench), Vec::<String>::new());
}

#[test]
fn the_result_before_the_change_is_known_the_second_time() {
    let bench = greeting(script(&["greet.sh"], [answer("Say hi", FIX)]));
    let (first, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(0), "{first}");
    let (second, code) = dev(&bench, &["make it say hi, once more"]);
    assert_eq!(code, Some(0), "{second}");
    let cached = |report: &Value| report["verification"]["before"]["from_cache"].clone();
    assert_eq!(
        (cached(&first), cached(&second)),
        (json!(false), json!(true))
    );
    let (other, code) = dev(&bench, &["make it say hi", "--verify", "sh test.sh"]);
    assert_eq!(code, Some(0), "{other}");
    assert_eq!(cached(&other), json!(false));
}

#[test]
fn a_change_whose_repair_is_declined_becomes_a_draft_and_every_call_is_paid_for() {
    let bad = FIX.replace("greeting=hi", "greeting=ho");
    let declined = || Turn::text("No.").stop(StopReason::Refusal);
    let bench = repository(
        script(&["greet.sh"], [answer("Say ho", &bad), declined()]),
        &[("greet.sh", GREET), ("Makefile", TALKATIVE)],
    );
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(3), "{report}");
    assert_eq!(bench.server.request_count(), 3);
    assert_eq!(report["pull_request"]["draft"], true);
    assert_eq!(report["pull_request"]["title"], "Say ho");

    // One file, named: no picker is asked, so the writer's refusal is all that was paid for.
    let bench = greeting(script(&["greet.sh"], [declined()]));
    bench.file(".codespar/settings.json", r#"{"dev": {"maxFiles": 1}}"#);
    bench.trust();
    let (report, code) = dev(&bench, &["make greet.sh say hi"]);
    assert_eq!(code, Some(1), "{report}");
    assert_eq!(bench.server.request_count(), 1);
    assert!(report["cost_usd"].as_f64().unwrap() > 0.0, "{report}");
}

#[test]
fn tests_that_were_red_before_are_said_to_be_and_a_missing_program_is_no_failure() {
    let red = "test:\n\t@echo '2 failed, 3 passed'; exit 1\n";
    let bench = repository(
        script(&["greet.sh"], [answer("Say hi", FIX)]),
        &[("greet.sh", GREET), ("Makefile", red)],
    );
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(3), "{report}");
    assert_eq!(bench.server.request_count(), 2);
    let shown = pull(&bench, 1);
    let body = shown["pull_request"]["body"].as_str().unwrap();
    assert!(
        body.contains("They failed in the same way before it."),
        "{body}"
    );

    let bench = greeting(script(&["greet.sh"], [answer("Say hi", FIX)]));
    let missing = "echo '/usr/bin/python3: No module named pytest'; exit 1";
    let (report, code) = dev(&bench, &["make it say hi", "--verify", missing]);
    assert_eq!(code, Some(0), "{report}");
    assert!(
        report["not_verified"]
            .as_str()
            .unwrap()
            .starts_with("cannot verify here: the module `pytest` is missing"),
        "{report}"
    );
    assert_eq!(bench.server.request_count(), 2);
}
