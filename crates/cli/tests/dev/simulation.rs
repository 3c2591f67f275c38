//! Runs without a model's key: what is not real never looks like success.

use codespar_testkit::Script;
use serde_json::json;

use crate::{
    common::parsed,
    repository::{branches, greeting, pull, without_a_key},
};

#[test]
fn a_local_simulated_run_says_so_first_last_and_in_json() {
    let bench = greeting(Script::new());
    let run = without_a_key(&bench, &["dev", "make greet.sh say hi"]);
    assert_eq!(run.status.code(), Some(0), "{}", run.stderr);
    assert!(run.stdout.contains("⚠️  Simulated"), "{}", run.stdout);
    assert!(!run.stdout.contains('✅'), "{}", run.stdout);
    let last = run.stdout.trim_end().lines().last().unwrap();
    assert_eq!(last, "Simulated, nothing was changed: codespar pr diff 1");
    let run = without_a_key(&bench, &["dev", "--json", "make greet.sh say hi"]);
    assert_eq!(parsed(&run.stdout)["simulated"], true);
    assert_eq!(pull(&bench, 1)["pull_request"]["draft"], false);
}

#[test]
fn simulate_calls_no_model_though_a_key_is_set() {
    let bench = greeting(Script::new());
    let run = bench.run(&["dev", "--json", "--simulate", "make greet.sh say hi"]);
    assert_eq!(run.status.code(), Some(0), "{}", run.stderr);
    let report = parsed(&run.stdout);
    assert_eq!(
        (&report["simulated"], &report["why_simulated"]),
        (&json!(true), &json!("--simulate was given"))
    );
    let prompted = bench.run(&["-p", "do things", "--simulate"]);
    assert_eq!(prompted.status.code(), Some(0), "{}", prompted.stderr);
    assert!(
        prompted.stdout.starts_with("[Simulated]"),
        "{}",
        prompted.stdout
    );
    let asked = bench.run(&["ask", "why?", "--simulate"]);
    assert_eq!(asked.status.code(), Some(0), "{}", asked.stderr);
    assert!(asked.stdout.starts_with("[Simulated]"), "{}", asked.stdout);
    assert_eq!(bench.server.request_count(), 0);
}

#[test]
fn a_prompt_and_a_question_without_a_key_fail_and_say_what_to_set() {
    let bench = greeting(Script::new());
    for args in [&["-p", "do things"][..], &["ask", "why?"]] {
        let failed = without_a_key(&bench, args);
        assert_eq!(failed.status.code(), Some(2), "{}", failed.stdout);
        assert_eq!(failed.stdout, "");
        for expected in ["ANTHROPIC_API_KEY", "--simulate"] {
            assert!(failed.stderr.contains(expected), "{}", failed.stderr);
        }
    }
    let sessions = bench.run(&["session", "list", "--json"]);
    assert_eq!(parsed(&sessions.stdout)["sessions"], json!([]));
}

#[test]
fn a_project_that_requires_a_model_refuses_to_simulate() {
    let bench = greeting(Script::new());
    bench.file(
        ".codespar/settings.json",
        r#"{"dev": {"requireModel": true}}"#,
    );
    bench.trust();
    for args in [
        &["dev", "make greet.sh say hi"][..],
        &["dev", "--simulate", "make greet.sh say hi"],
    ] {
        let refused = without_a_key(&bench, args);
        assert_eq!(refused.status.code(), Some(2), "{}", refused.stdout);
        let reason = "`dev.requireModel` is set";
        assert!(refused.stderr.contains(reason), "{}", refused.stderr);
    }
    assert_eq!(branches(&bench), [""; 0]);
}
