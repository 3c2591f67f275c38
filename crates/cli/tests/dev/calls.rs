//! What can be asked for, what is refused, and what it may cost.

use codespar_testkit::{Conversation, Matcher, Script, Turn};
use serde_json::json;

use crate::{
    common::{Bench, PATIENCE, parsed},
    repository::{FIX, answer, branches, dev, git, greeting, pull, repository, script},
};

#[test]
fn what_is_wrong_with_the_call_is_said_before_there_is_a_task() {
    let bench = greeting(Script::new());
    let not_git = tempfile::tempdir().unwrap();
    let dir = not_git.path().to_str().unwrap();
    let text = bench.file("a.txt", "no picture");
    for (args, expected) in [
        (vec!["dev", "x", "--repo", dir], "git"),
        (
            vec!["dev", "x", "--repo", "nowhere"],
            "neither a directory nor owner/name",
        ),
        (vec!["dev", "x", "--repo", "a/b"], "GITHUB_TOKEN"),
        (
            vec!["dev", "x", "--image", text.to_str().unwrap()],
            "is not a PNG",
        ),
        (vec!["dev", "  "], "the instruction is empty"),
        (vec!["dev"], "INSTRUCTION"),
        (vec!["dev", "--resume", "w-00000000"], "w-00000000"),
    ] {
        let finished = bench.run(&args);
        assert_ne!(finished.status.code(), Some(0), "{args:?}");
        assert!(
            finished.stderr.contains(expected),
            "{args:?}: {}",
            finished.stderr
        );
    }
    let tasks = parsed(&bench.run(&["task", "list", "--json"]).stdout);
    assert_eq!(tasks, json!({"tasks": []}));
    git(&bench.work(), &["tag", "v1"]);
    for base in ["nowhere", "main~0", "v1", "-x"] {
        let missing = bench.run(&["dev", "x", &format!("--base={base}")]);
        assert_eq!(missing.status.code(), Some(1));
        let expected = format!("no branch `{base}`");
        assert!(missing.stderr.contains(&expected), "{}", missing.stderr);
    }
}

#[test]
fn a_question_is_one_call_and_needs_a_model() {
    let script = Script::new().conversation(
        Conversation::new(
            "ask",
            Matcher::system_contains("answers questions about software"),
        )
        .turn(Turn::text("A conflict.")),
    );
    let bench = greeting(script);
    let finished = bench.run(&["ask", "what is 409?"]);
    assert_eq!(finished.stdout, "A conflict.\n", "{}", finished.stderr);
    let mut command = bench.command(&["ask", "what is 409?"]);
    command.env_remove("ANTHROPIC_API_KEY");
    let finished = codespar_testkit::process::spawn(&mut command)
        .unwrap()
        .wait(PATIENCE)
        .unwrap();
    assert_eq!(finished.status.code(), Some(2));
    assert!(
        finished.stderr.contains("ANTHROPIC_API_KEY"),
        "{}",
        finished.stderr
    );
}

#[test]
fn the_demo_tells_the_whole_story_offline() {
    let bench = Bench::new(Script::new());
    let finished = bench.run(&["demo"]);
    let out = &finished.stdout;
    assert_eq!(finished.status.code(), Some(0), "{out}{}", finished.stderr);
    for expected in [
        "FAILED  median of two-digit numbers: expected 10, got 100",
        "before: 1 of 3 failed",
        "after: 3 passed",
        "→ PR #1: Sort numbers as numbers when taking the median",
        "+    sort -n | awk",
        "reviewed #1",
        "stats.sh:9",
        "merged #1 into main by squash",
        "3 passed, 0 failed",
        "Scripted:",
        "set ANTHROPIC_API_KEY",
    ] {
        assert!(out.contains(expected), "{expected} is not in\n{out}");
    }
    assert_eq!(bench.server.request_count(), 0);
    assert_eq!(
        bench.room.wait_until_empty(PATIENCE).unwrap(),
        Vec::<u32>::new()
    );
}

#[test]
fn the_budget_stops_the_run_before_it_is_passed() {
    let bench = greeting(script(&["greet.sh"], [answer("Say hi", FIX)]));
    let (report, code) = dev(&bench, &["make it say hi", "--max-budget-usd", "0.002"]);
    assert_eq!(code, Some(1), "{report}");
    let error = report["error"].as_str().unwrap();
    assert!(error.contains("of $0.0020 (--max-budget-usd)"), "{error}");
    assert!(bench.server.request_count() <= 1);
    assert_eq!(branches(&bench), Vec::<String>::new());
}

#[test]
fn a_limit_on_money_needs_a_price() {
    let bench = greeting(script(&["greet.sh"], [answer("Say hi", FIX)]));
    let args = ["--model", "nobody-knows-9", "--max-budget-usd", "5"];
    let (report, code) = dev(&bench, &[&["make it say hi"], &args[..]].concat());
    assert_eq!(code, Some(1), "{report}");
    let error = report["error"].as_str().unwrap();
    assert!(
        error.contains("`nobody-knows-9` has no known price"),
        "{error}"
    );
    assert_eq!(branches(&bench), Vec::<String>::new());
}

#[test]
fn without_a_key_a_simulated_pull_request_is_made_and_the_work_tree_is_untouched() {
    let bench = greeting(Script::new());
    bench.file("greet.sh", "dirty\n");
    let head = git(&bench.work(), &["rev-parse", "HEAD"]);
    let mut command = bench.command(&["dev", "add a health check endpoint to greet.sh"]);
    command
        .env_remove("ANTHROPIC_API_KEY")
        .env_remove("ANTHROPIC_BASE_URL");
    let finished = codespar_testkit::process::spawn(&mut command)
        .unwrap()
        .wait(PATIENCE)
        .unwrap();
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    assert!(
        finished
            .stdout
            .contains("PR #1: [Simulated] Would fix: add a health check endpoint to greet.sh"),
        "{}",
        finished.stdout
    );
    assert!(
        finished.stdout.contains("greet.sh (named)"),
        "{}",
        finished.stdout
    );
    let shown = pull(&bench, 1);
    let body = shown["pull_request"]["body"].as_str().unwrap();
    assert!(body.contains("**Simulated**"), "{body}");
    let names = branches(&bench);
    assert_eq!(names.len(), 1, "{names:?}");
    assert!(
        names[0].starts_with("codespar/task-") && names[0].len() == 22,
        "{names:?}"
    );
    assert_eq!(git(&bench.work(), &["diff", "main", &names[0]]), "");
    assert_eq!(git(&bench.work(), &["rev-parse", "HEAD"]), head);
    assert_eq!(git(&bench.work(), &["branch", "--show-current"]), "main\n");
    assert_eq!(
        git(&bench.work(), &["status", "--porcelain"]),
        " M greet.sh\n"
    );
    assert_eq!(bench.server.request_count(), 0);
}

#[test]
fn files_are_located_offline_with_reasons_and_bad_calls_are_refused() {
    let bench = repository(
        Script::new(),
        &[
            (
                "src/auth/login.ts",
                "export function sessionTimeout() { return 5 }\n",
            ),
            ("src/cart.ts", "export const total = 1\n"),
            ("test/login.test.ts", "sessionTimeout()\n"),
        ],
    );
    for _ in 0..2 {
        let found = bench.run(&["locate", "sessions expire too fast in login.ts", "--json"]);
        assert_eq!(found.status.code(), Some(0), "{}", found.stderr);
        let found = parsed(&found.stdout);
        let first = &found["files"][0];
        assert_eq!(first["path"], "src/auth/login.ts", "{found}");
        assert!(first["score"].as_f64().unwrap() > 0.0, "{found}");
        let reasons = first["reasons"].as_array().unwrap();
        assert!(reasons.contains(&json!("named")), "{found}");
        assert!(found["elapsed_ms"].is_u64(), "{found}");
    }
    let one = parsed(
        &bench
            .run(&["locate", "login timeout", "--json", "-n", "1"])
            .stdout,
    );
    assert_eq!(one["files"].as_array().unwrap().len(), 1, "{one}");
    for args in [
        &["locate", " "][..],
        &["locate", "x", "-n", "0"],
        &["locate", "x", "--repo", "nowhere"],
        &["locate"],
    ] {
        assert_eq!(bench.run(args).status.code(), Some(2), "{args:?}");
    }
    assert_eq!(bench.server.request_count(), 0);
}
