//! The dev agent, through the real binary: real git, scripted model, real tests in the sandbox.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests"
)]

mod common;

use std::{path::Path, process::Command};

use codespar_protocol::StopReason;
use codespar_testkit::{Conversation, Matcher, Script, Turn};
use common::{Bench, PATIENCE, parsed};
use serde_json::{Value, json};

const GREET: &str = "#!/bin/sh\ngreeting=hello\necho \"$greeting world\"\n";
const TEST: &str = "#!/bin/sh\n[ \"$(sh greet.sh)\" = \"hi world\" ] && echo \"1 passed\" || { echo \"1 failed\"; exit 1; }\n";

pub(crate) fn git(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .arg("-C")
        .arg(dir)
        .args([
            "-c",
            "user.name=Ada",
            "-c",
            "user.email=ada@example.invalid",
        ])
        .args(args)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "git {args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A bench whose directory is a git repository with these files committed on `main`.
fn repository(script: Script, files: &[(&str, &str)]) -> Bench {
    let bench = Bench::new(script);
    std::fs::remove_dir(bench.work().join(".git")).unwrap();
    for (name, text) in files {
        bench.file(name, text);
    }
    let work = bench.work();
    git(&work, &["init", "--quiet", "-b", "main"]);
    git(&work, &["config", "user.name", "Ada"]);
    git(&work, &["config", "user.email", "ada@example.invalid"]);
    git(&work, &["add", "--all", "."]);
    git(
        &work,
        &["commit", "--quiet", "--no-gpg-sign", "-m", "Begin"],
    );
    bench
}

fn greeting(script: Script) -> Bench {
    repository(
        script,
        &[
            ("greet.sh", GREET),
            ("test.sh", TEST),
            ("Makefile", "test:\n\t@sh test.sh\n"),
        ],
    )
}

/// A picker that names these files and a writer that gives these answers.
fn script(picked: &[&str], answers: impl IntoIterator<Item = Turn>) -> Script {
    Script::new()
        .conversation(
            Conversation::new("picker", Matcher::system_contains("You choose the files"))
                .turn(Turn::text(json!(picked).to_string())),
        )
        .conversation(
            Conversation::new(
                "writer",
                Matcher::system_contains("turns an instruction into"),
            )
            .turns(answers),
        )
}

fn answer(summary: &str, blocks: &str) -> Turn {
    Turn::text(format!("{summary}\n\n{blocks}"))
}

const FIX: &str =
    "===FILE: greet.sh===\n<<<SEARCH\ngreeting=hello\n>>>REPLACE\ngreeting=hi\n===END===\n";

fn dev(bench: &Bench, args: &[&str]) -> (Value, Option<i32>) {
    let finished = bench.run(&[&["dev", "--json"], args].concat());
    assert!(
        finished.stdout.starts_with('{'),
        "{} {}",
        finished.stdout,
        finished.stderr
    );
    (parsed(&finished.stdout), finished.status.code())
}

fn pull(bench: &Bench, number: u64) -> Value {
    let number = number.to_string();
    parsed(&bench.run(&["pr", "show", &number, "--json"]).stdout)
}

fn branches(bench: &Bench) -> Vec<String> {
    git(
        &bench.work(),
        &[
            "branch",
            "--list",
            "--format=%(refname:short)",
            "codespar/*",
        ],
    )
    .lines()
    .map(str::to_owned)
    .collect()
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
        json!([{"path": "greet.sh", "change": "modified"}])
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
    for words in [
        "> make it say hi",
        "`make test`",
        "| before | ❌ 1 of 1 failed |",
        "| after | ✅ 1 passed |",
        "- `greet.sh` (modified)",
        "## Risk: low",
        "Made by CodeSpar for Ada",
    ] {
        assert!(body.contains(words), "{words} is not in\n{body}");
    }
    let branch = report["branch"].as_str().unwrap();
    let message = git(&bench.work(), &["log", "-1", "--format=%B", branch]);
    let task = report["task_id"].as_str().unwrap();
    assert!(
        message.starts_with("codespar: make it say hi\n"),
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
fn a_change_of_many_kinds_lands_as_one_commit_byte_for_byte() {
    let blocks = "===FILE: crlf.txt===\n<<<SEARCH\ntwo\n>>>REPLACE\nTWO\nand a half\n===END===\n\
                  ===FILE: run.sh===\n<<<SEARCH\necho old\n>>>REPLACE\necho $new\\1\n===END===\n\
                  ===FILE: tail.txt===\n<<<SEARCH\nlast\n>>>REPLACE\nvery last\n===END===\n\
                  ===FILE: new/deep.txt===\nfresh\n===END===\n\
                  ===DELETE: gone.txt===\n===MOVE: old.txt -> moved/new.txt===\n";
    let bench = repository(
        script(
            &["crlf.txt", "run.sh", "tail.txt"],
            [answer("Change many things", blocks)],
        ),
        &[
            ("crlf.txt", "one\r\ntwo\r\nthree\r\n"),
            ("run.sh", "#!/bin/sh\necho old\n"),
            ("tail.txt", "first\nlast"),
            ("gone.txt", "x\n"),
            ("old.txt", "same\n"),
        ],
    );
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(bench.work().join("run.sh"), mode).unwrap();
    git(
        &bench.work(),
        &["commit", "--quiet", "--no-gpg-sign", "-am", "Mode"],
    );
    let (report, code) = dev(&bench, &["change many things", "--no-verify"]);
    assert_eq!(code, Some(0), "{report}");
    let branch = report["branch"].as_str().unwrap();
    let show = |path: &str| git(&bench.work(), &["show", &format!("{branch}:{path}")]);
    assert_eq!(show("crlf.txt"), "one\r\nTWO\r\nand a half\r\nthree\r\n");
    assert_eq!(show("run.sh"), "#!/bin/sh\necho $new\\1\n");
    assert_eq!(show("tail.txt"), "first\nvery last");
    assert_eq!(show("new/deep.txt"), "fresh\n");
    assert_eq!(show("moved/new.txt"), "same\n");
    let names = git(&bench.work(), &["ls-tree", "-r", branch]);
    assert!(
        names.contains("100755") && names.lines().count() == 5,
        "{names}"
    );
    assert_eq!(
        git(
            &bench.work(),
            &["rev-list", "--count", &format!("main..{branch}")]
        ),
        "1\n"
    );
    assert_eq!(git(&bench.work(), &["status", "--porcelain"]), "");
    assert_eq!(report["not_verified"], "it was asked not to (--no-verify)");
}

#[test]
fn an_answer_cut_three_times_is_joined() {
    let whole = format!("Say hi\n\n{FIX}");
    let cuts = [
        10,
        whole.find("SEARCH").unwrap() + 3,
        whole.find("greeting=hi").unwrap() + 5,
    ];
    let mut turns = Vec::new();
    let mut from = 0;
    for cut in cuts {
        turns.push(Turn::text(&whole[from..cut]).stop(StopReason::MaxTokens));
        from = cut;
    }
    turns.push(Turn::text(&whole[from..]));
    let bench = greeting(script(&["greet.sh"], turns));
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    let branch = report["branch"].as_str().unwrap();
    assert_eq!(
        git(&bench.work(), &["show", &format!("{branch}:greet.sh")]),
        GREET.replace("hello", "hi")
    );
    assert_eq!(bench.server.request_count(), 5);
}

#[test]
fn an_ambiguous_block_is_repaired_and_an_unrepairable_one_publishes_nothing() {
    let two = "#!/bin/sh\nx=1\necho a\nx=1\necho b\n";
    let vague = "===FILE: greet.sh===\n<<<SEARCH\nx=1\n>>>REPLACE\nx=2\n===END===\n";
    let exact =
        "===FILE: greet.sh===\n<<<SEARCH\nx=1\necho b\n>>>REPLACE\nx=2\necho b\n===END===\n";
    let files = [("greet.sh", two)];
    let mended = script(
        &["greet.sh"],
        [answer("Set x", vague), answer("Set x to 2", exact)],
    );
    let bench = repository(mended, &files);
    let (report, code) = dev(&bench, &["set x", "--no-verify"]);
    assert_eq!(code, Some(0), "{report}");
    let repair = bench.server.last_request().unwrap().json().to_string();
    assert!(
        repair.contains("2 places") || repair.contains("lines 2"),
        "{repair}"
    );
    let branch = report["branch"].as_str().unwrap();
    assert_eq!(
        git(&bench.work(), &["show", &format!("{branch}:greet.sh")]),
        "#!/bin/sh\nx=1\necho a\nx=2\necho b\n"
    );

    let hopeless = script(
        &["greet.sh"],
        [answer("1", vague), answer("2", vague), answer("3", vague)],
    );
    let bench = repository(hopeless, &files);
    let (report, code) = dev(&bench, &["set x", "--no-verify"]);
    assert_eq!(code, Some(1));
    assert_eq!(report["status"], "failed");
    let error = report["error"].as_str().unwrap();
    assert!(
        error.contains("nothing was published") && error.contains("greet.sh"),
        "{error}"
    );
    assert_eq!(branches(&bench), Vec::<String>::new());
    let list = parsed(
        &bench
            .run(&["pr", "list", "--state", "all", "--json"])
            .stdout,
    );
    assert_eq!(list, json!({"pull_requests": []}));
    // Two repairs and no more.
    assert_eq!(bench.server.request_count(), 4);
}

#[test]
fn an_answer_without_blocks_publishes_nothing_and_is_shown() {
    let bench = greeting(script(&["greet.sh"], [Turn::text("I would rather not.")]));
    let finished = bench.run(&["dev", "make it say hi"]);
    assert_eq!(finished.status.code(), Some(1));
    assert!(
        finished.stderr.contains("no changes were generated")
            && finished.stderr.contains("I would rather not."),
        "{}",
        finished.stderr
    );
    assert_eq!(branches(&bench), Vec::<String>::new());
}

#[test]
fn a_change_that_breaks_a_test_is_repaired_or_becomes_a_draft() {
    let bad = FIX.replace("greeting=hi", "greeting=ho");
    let repaired = script(
        &["greet.sh"],
        [answer("Say ho", &bad), answer("Say hi after all", FIX)],
    );
    let bench = greeting(repaired);
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
    assert_eq!(code, Some(0), "{report}");
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
fn killed_after_any_step_the_run_goes_on_and_publishes_once() {
    let steps = [
        "simulated",
        "base",
        "made answer-pick",
        "answer-pick",
        "locate",
        "read",
        "made answer-write-1",
        "answer-write-1",
        "test_command",
        "before",
        "made after-1",
        "after-1",
        "made proven",
        "proven",
        "made commit",
        "commit",
        "made pull_request",
        "pull_request",
        "made report",
        "report",
    ];
    // Most of the time each waits for the lease of the dead process.
    for some in steps.chunks(6) {
        std::thread::scope(|scope| {
            for step in some {
                scope.spawn(|| dies_after(step));
            }
        });
    }
}

fn dies_after(step: &str) {
    let bench = greeting(script(&["greet.sh"], [answer("Say hi", FIX)]));
    let mut command = bench.command(&["dev", "make it say hi"]);
    command.env("CODESPAR_TEST_DIE_AFTER", step);
    let died = codespar_testkit::process::spawn(&mut command)
        .unwrap()
        .wait(PATIENCE)
        .unwrap();
    assert_eq!(died.status.code(), None, "{step}: {}", died.stderr);
    let tasks = parsed(&bench.run(&["task", "list", "--json"]).stdout);
    let id = tasks["tasks"][0]["task_id"].as_str().unwrap().to_owned();
    let (report, code) = dev_resume(&bench, &id);
    assert_eq!(code, Some(0), "{step}: {report}");
    assert_eq!(report["task_id"], id.as_str(), "{step}");
    let names = branches(&bench);
    assert_eq!(names.len(), 1, "{step}: {names:?}");
    assert_eq!(
        git(
            &bench.work(),
            &["rev-list", "--count", &format!("main..{}", names[0])]
        ),
        "1\n",
        "{step}"
    );
    let list = parsed(
        &bench
            .run(&["pr", "list", "--state", "all", "--json"])
            .stdout,
    );
    assert_eq!(list["pull_requests"].as_array().unwrap().len(), 1, "{step}");
    // An answer that is on record is not paid for again.
    let expected = match step {
        "made answer-pick" | "made answer-write-1" => 3,
        _ => 2,
    };
    assert_eq!(bench.server.request_count(), expected, "{step}");
    assert_eq!(
        bench.room.wait_until_empty(PATIENCE).unwrap(),
        Vec::<u32>::new(),
        "{step}"
    );
}

fn dev_resume(bench: &Bench, id: &str) -> (Value, Option<i32>) {
    let finished = bench.run(&["dev", "--json", "--resume", id]);
    assert!(
        finished.stdout.starts_with('{'),
        "{} {}",
        finished.stdout,
        finished.stderr
    );
    (parsed(&finished.stdout), finished.status.code())
}

#[test]
fn paths_that_leave_the_repository_or_are_protected_are_refused_by_name() {
    for (block, words) in [
        ("===FILE: ../../etc/x===\nx\n===END===\n", "../../etc/x"),
        ("===FILE: /etc/x===\nx\n===END===\n", "/etc/x"),
        ("===FILE: .git/config===\nx\n===END===\n", ".git/config"),
        ("===FILE: link/x===\nx\n===END===\n", "link"),
        (
            "===FILE: .github/workflows/ci.yml===\nx\n===END===\n",
            "--allow-protected",
        ),
        ("===DELETE: nowhere.txt===\n", "nowhere.txt"),
        (
            "===FILE: vendor/lib/x.c===\nx\n===END===\n",
            "`vendor/lib` is a repository of its own",
        ),
    ] {
        let turns = (0..3).map(|_| answer("Do it", block)).collect::<Vec<_>>();
        let bench = greeting(script(&["greet.sh"], turns));
        std::os::unix::fs::symlink("/tmp", bench.work().join("link")).unwrap();
        git(&bench.work(), &["add", "link"]);
        let head = git(&bench.work(), &["rev-parse", "HEAD"]);
        let submodule = format!("160000,{},vendor/lib", head.trim());
        git(
            &bench.work(),
            &["update-index", "--add", "--cacheinfo", &submodule],
        );
        git(
            &bench.work(),
            &["commit", "--quiet", "--no-gpg-sign", "-m", "Link"],
        );
        let (report, code) = dev(&bench, &["do it", "--no-verify"]);
        assert_eq!(code, Some(1), "{block}");
        let error = report["error"].as_str().unwrap();
        assert!(error.contains(words), "{block}: {error}");
        assert_eq!(branches(&bench), Vec::<String>::new(), "{block}");
    }
    let allowed = script(
        &["greet.sh"],
        [answer(
            "CI",
            "===FILE: .github/workflows/ci.yml===\non: push\n===END===\n",
        )],
    );
    let bench = greeting(allowed);
    let (report, code) = dev(&bench, &["add CI", "--no-verify", "--allow-protected"]);
    assert_eq!(code, Some(0), "{report}");
}

#[test]
fn a_file_that_was_shown_in_part_is_not_replaced_whole() {
    let long: String = (0..3_000)
        .map(|n| format!("line {n} of the long file\n"))
        .collect();
    let whole = "===FILE: long.txt===\nshort\n===END===\n";
    let edit = "===FILE: long.txt===\n<<<SEARCH\nline 7 of the long file\n>>>REPLACE\nline seven\n===END===\n";
    let bench = repository(
        script(
            &["long.txt"],
            [answer("Replace", whole), answer("Edit", edit)],
        ),
        &[("long.txt", &long)],
    );
    let (report, code) = dev(&bench, &["change line 7 of the long file", "--no-verify"]);
    assert_eq!(code, Some(0), "{report}");
    let first = bench.server.requests()[1].json().clone();
    let shown = first["messages"][0]["content"][0]["text"].as_str().unwrap();
    assert!(
        shown.len() < 25_000 && shown.contains("in part"),
        "{}",
        shown.len()
    );
    let repair = bench.server.last_request().unwrap().json().to_string();
    assert!(repair.contains("long.txt"), "{repair}");
    let branch = report["branch"].as_str().unwrap();
    assert_eq!(
        git(&bench.work(), &["show", &format!("{branch}:long.txt")]),
        long.replace("line 7 of the long file", "line seven")
    );
}

#[test]
fn a_follow_up_adds_a_commit_to_the_same_pull_request() {
    let more = "===FILE: greet.sh===\n<<<SEARCH\ngreeting=hi\n>>>REPLACE\ngreeting=hi # short\n===END===\n";
    let first = Conversation::new(
        "first",
        Matcher::system_contains("turns an instruction into")
            .and(Matcher::first_user_contains("make it say hi")),
    )
    .turn(answer("Say hi", FIX));
    let second = Conversation::new(
        "second",
        Matcher::system_contains("turns an instruction into")
            .and(Matcher::first_user_contains("also say why")),
    )
    .turn(answer("Say why", more));
    let picker = Conversation::new("picker", Matcher::system_contains("You choose the files"))
        .turn(Turn::text("[\"greet.sh\"]"));
    let bench = greeting(
        Script::new()
            .conversation(picker)
            .conversation(first)
            .conversation(second),
    );
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    let (follow, code) = dev(&bench, &["--pr", "1", "also say why"]);
    assert_eq!(code, Some(0), "{follow}");
    assert_eq!(follow["branch"], report["branch"]);
    assert_eq!(follow["pull_request"]["number"], 1);
    let branch = report["branch"].as_str().unwrap();
    assert_eq!(
        git(
            &bench.work(),
            &["rev-list", "--count", &format!("main..{branch}")]
        ),
        "2\n"
    );
    let shown = pull(&bench, 1);
    let body = shown["pull_request"]["body"].as_str().unwrap();
    assert!(
        body.contains("> make it say hi") && body.contains("> also say why"),
        "{body}"
    );

    let merged = bench.run(&["merge", "1", "--squash"]);
    assert_eq!(merged.status.code(), Some(0), "{}", merged.stderr);
    assert_eq!(branches(&bench), Vec::<String>::new());
    assert_eq!(
        std::fs::read_to_string(bench.work().join("greet.sh")).unwrap(),
        GREET.replace("hello", "hi # short")
    );
    let closed = bench.run(&["dev", "--pr", "1", "again"]);
    assert_eq!(closed.status.code(), Some(1));
    assert!(closed.stderr.contains("#1 is merged"), "{}", closed.stderr);
}

#[test]
fn the_budget_stops_the_run_before_it_is_passed() {
    let bench = greeting(script(&["greet.sh"], [answer("Say hi", FIX)]));
    let (report, code) = dev(&bench, &["make it say hi", "--max-budget-usd", "0.02"]);
    assert_eq!(code, Some(1), "{report}");
    let error = report["error"].as_str().unwrap();
    assert!(error.contains("of $0.0200 (--max-budget-usd)"), "{error}");
    assert!(bench.server.request_count() <= 1);
    assert_eq!(branches(&bench), Vec::<String>::new());
}

#[test]
fn a_secret_in_an_answer_does_not_reach_the_pull_request() {
    let key = "sk-test-key-of-the-bench-0001";
    let bench = greeting(script(
        &["greet.sh"],
        [answer(&format!("Say hi with {key}"), FIX)],
    ));
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    assert!(!report.to_string().contains(key), "{report}");
    assert!(!pull(&bench, 1).to_string().contains(key));
    let branch = report["branch"].as_str().unwrap();
    assert!(!git(&bench.work(), &["log", "-1", "--format=%B", branch]).contains(key));

    // Nor does the part of one that is left where words are cut.
    let bench = greeting(script(&["greet.sh"], [answer("Say hi", FIX)]));
    let instruction = format!("{} {key}", "hi ".repeat(62));
    let (report, code) = dev(&bench, &[&instruction]);
    assert_eq!(code, Some(0), "{report}");
    let branch = report["branch"].as_str().unwrap();
    let message = git(&bench.work(), &["log", "-1", "--format=%B", branch]);
    assert!(
        message.contains("hi") && !message.contains("sk-test"),
        "{message}"
    );
}

#[test]
fn a_review_keeps_only_findings_that_stand_on_the_diff() {
    let said = json!({
        "summary": "Fine but for one thing.",
        "findings": [
            {"path": "greet.sh", "line": 2, "severity": "high", "text": "hi is rude"},
            {"path": "greet.sh", "line": 900, "severity": "low", "text": "nowhere"},
            {"path": "other.sh", "line": 1, "severity": "low", "text": "nowhere"},
        ],
    });
    let script = script(&["greet.sh"], [answer("Say hi", FIX)]).conversation(
        Conversation::new(
            "reviewer",
            Matcher::system_contains("You review a pull request"),
        )
        .turn(Turn::text(said.to_string())),
    );
    let bench = greeting(script);
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    let reviewed = parsed(&bench.run(&["review", "1", "--json"]).stdout);
    assert_eq!(reviewed["dropped"], 2);
    assert_eq!(
        reviewed["findings"],
        json!([{"path": "greet.sh", "line": 2, "severity": "high", "text": "hi is rude"}])
    );
    let asked = bench.server.request_count();
    let again = parsed(&bench.run(&["review", "1", "--json"]).stdout);
    assert_eq!(again["findings"], reviewed["findings"]);
    assert_eq!(again["review"], reviewed["review"]);
    // It is there already, so nobody is asked and paid again.
    assert_eq!(bench.server.request_count(), asked);
    let shown = pull(&bench, 1);
    assert_eq!(shown["reviews"].as_array().unwrap().len(), 1, "{shown}");
    assert_eq!(shown["reviews"][0]["comments"][0]["line"], 2);
}

#[test]
fn a_merge_is_refused_for_a_conflict_and_a_closed_pull_request() {
    let bench = greeting(script(&["greet.sh"], [answer("Say hi", FIX)]));
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    bench.file("greet.sh", &GREET.replace("hello", "good day"));
    git(
        &bench.work(),
        &["commit", "--quiet", "--no-gpg-sign", "-am", "Other"],
    );
    let refused = bench.run(&["merge", "1"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        refused
            .stderr
            .contains("it conflicts with main in greet.sh"),
        "{}",
        refused.stderr
    );
    assert_eq!(bench.run(&["pr", "close", "1"]).status.code(), Some(0));
    let refused = bench.run(&["merge", "1"]);
    assert!(
        refused.stderr.contains("it is closed"),
        "{}",
        refused.stderr
    );
    let missing = bench.run(&["merge", "7"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(missing.stderr.contains("#7"), "{}", missing.stderr);
}

#[test]
fn what_is_wrong_with_the_call_is_said_before_there_is_a_task() {
    let bench = greeting(Script::new());
    let not_git = tempfile::tempdir().unwrap();
    let dir = not_git.path().to_str().unwrap();
    let text = bench.file("a.txt", "no picture");
    for (args, words) in [
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
            finished.stderr.contains(words),
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
        let words = format!("no branch `{base}`");
        assert!(missing.stderr.contains(&words), "{}", missing.stderr);
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
    for words in [
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
        assert!(out.contains(words), "{words} is not in\n{out}");
    }
    assert_eq!(bench.server.request_count(), 0);
    assert_eq!(
        bench.room.wait_until_empty(PATIENCE).unwrap(),
        Vec::<u32>::new()
    );
}

#[test]
fn pictures_go_to_picker_and_writer() {
    let bench = greeting(script(&["greet.sh"], [answer("Say hi", FIX)]));
    let png = bench.work().join("../shot.png");
    std::fs::write(&png, b"\x89PNG\r\n\x1a\nrest").unwrap();
    let (report, code) = dev(
        &bench,
        &["make it say hi", "--image", png.to_str().unwrap()],
    );
    assert_eq!(code, Some(0), "{report}");
    for request in bench.server.requests() {
        let content = request.json()["messages"][0]["content"]
            .as_array()
            .unwrap()
            .clone();
        let picture = content
            .iter()
            .find(|block| block["type"] == "image")
            .unwrap();
        assert_eq!(picture["source"]["media_type"], "image/png");
    }
}

#[test]
fn the_agent_engine_works_in_a_copy_and_its_changes_are_collected() {
    let agent = Conversation::new(
        "agent",
        Matcher::first_user_contains("throw-away copy at one commit"),
    )
    .turn(Turn::tool("Read", &json!({"file_path": "greet.sh"})))
    .turn(
        Turn::tool(
            "Edit",
            &json!({"file_path": "greet.sh", "old_string": "hello", "new_string": "hi"}),
        )
        .and_tool(
            "Write",
            &json!({"file_path": "docs/why.md", "content": "because\n"}),
        ),
    )
    .turn(Turn::text("Say hi and tell why\n\nOne word changes."));
    let picker = Conversation::new("picker", Matcher::system_contains("You choose the files"))
        .turn(Turn::text("[\"greet.sh\"]"));
    let bench = greeting(Script::new().conversation(picker).conversation(agent));
    let (report, code) = dev(&bench, &["make it say hi", "--engine", "agent"]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(
        report["files"],
        json!([{"path": "docs/why.md", "change": "new"}, {"path": "greet.sh", "change": "modified"}])
    );
    assert_eq!(report["pull_request"]["title"], "Say hi and tell why");
    assert_eq!(
        report["verification"]["after"]["counts"],
        json!({"passed": 1, "failed": 0})
    );
    let branch = report["branch"].as_str().unwrap();
    assert_eq!(
        git(&bench.work(), &["show", &format!("{branch}:greet.sh")]),
        GREET.replace("hello", "hi")
    );
    assert_eq!(git(&bench.work(), &["status", "--porcelain"]), "");
    assert!(report["cost_usd"].as_f64().unwrap() > 0.0, "{report}");
}

#[test]
fn a_coordinator_that_follows_a_pull_request_is_told_of_each_thing_once() {
    let coordinator = Conversation::new(
        "coordinator",
        Matcher::first_user_contains("follow number one"),
    )
    .turn(Turn::tool("subscribe_pr_activity", &json!({"number": 1})))
    .turn(Turn::text("I wait."))
    .turn(Turn::text("A review came."))
    .turn(Turn::text("It is merged."));
    let script = script(&["greet.sh"], [answer("Say hi", FIX)])
        .conversation(coordinator)
        .conversation(
            Conversation::new(
                "reviewer",
                Matcher::system_contains("You review a pull request"),
            )
            .turn(Turn::text("{\"summary\": \"Fine.\", \"findings\": []}")),
        );
    let bench = greeting(script);
    bench.file(".codespar/settings.json", r#"{"dev": {"pollSeconds": 1}}"#);
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    let mut session = bench.start(&[
        "-p",
        "follow number one",
        "--coordinator",
        "--output-format",
        "stream-json",
    ]);
    session.wait_for_output("I wait.", PATIENCE).unwrap();
    assert_eq!(bench.run(&["review", "1"]).status.code(), Some(0));
    session.wait_for_output("A review came.", PATIENCE).unwrap();
    assert_eq!(bench.run(&["merge", "1"]).status.code(), Some(0));
    let finished = session.wait(PATIENCE).unwrap();
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    let requests = bench.server.requests();
    let last = requests
        .iter()
        .rev()
        .find(|request| request.json().to_string().contains("follow number one"))
        .unwrap();
    let text = last.json()["messages"].to_string();
    assert_eq!(text.matches("<task-notification>").count(), 2, "{text}");
    assert_eq!(text.matches("Fine.").count(), 1, "{text}");
    assert!(text.contains("merged"), "{text}");
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

fn without_a_key(bench: &Bench, args: &[&str]) -> codespar_testkit::process::Finished {
    let mut command = bench.command(args);
    command
        .env_remove("ANTHROPIC_API_KEY")
        .env_remove("ANTHROPIC_BASE_URL");
    codespar_testkit::process::spawn(&mut command)
        .unwrap()
        .wait(PATIENCE)
        .unwrap()
}

/// A run that was killed after a step; the id of its task.
fn killed_after(bench: &Bench, step: &str, args: &[&str]) -> String {
    let mut command = bench.command(&[&["dev", "make it say hi"], args].concat());
    command.env("CODESPAR_TEST_DIE_AFTER", step);
    let died = codespar_testkit::process::spawn(&mut command)
        .unwrap()
        .wait(PATIENCE)
        .unwrap();
    assert_eq!(died.status.code(), None, "{step}: {}", died.stderr);
    let tasks = parsed(&bench.run(&["task", "list", "--json"]).stdout);
    let tasks = tasks["tasks"].as_array().unwrap();
    let run = tasks
        .iter()
        .find(|task| task["task_type"] == "local_workflow")
        .unwrap();
    run["task_id"].as_str().unwrap().to_owned()
}

#[test]
fn a_run_with_a_model_is_not_finished_as_a_simulation_by_a_process_without_one() {
    let bench = greeting(script(&["greet.sh"], [answer("Say hi", FIX)]));
    let id = killed_after(&bench, "answer-write-1", &[]);
    let resumed = without_a_key(&bench, &["dev", "--resume", &id]);
    assert_eq!(resumed.status.code(), Some(1), "{}", resumed.stdout);
    assert!(
        resumed.stderr.contains("begun with a model"),
        "{}",
        resumed.stderr
    );
    assert_eq!(branches(&bench), Vec::<String>::new());

    // What is settled needs no model any more.
    let bench = greeting(script(&["greet.sh"], [answer("Say hi", FIX)]));
    let id = killed_after(&bench, "commit", &[]);
    let resumed = without_a_key(&bench, &["dev", "--json", "--resume", &id]);
    assert_eq!(resumed.status.code(), Some(0), "{}", resumed.stderr);
    let report = parsed(&resumed.stdout);
    assert_eq!(report["simulated"], false);
    assert_eq!(report["pull_request"]["title"], "Say hi");
    assert_eq!(
        report["verification"]["after"]["counts"],
        json!({"passed": 1, "failed": 0})
    );
}

#[test]
fn a_change_whose_repair_is_declined_becomes_a_draft_and_every_call_is_paid_for() {
    let bad = FIX.replace("greeting=hi", "greeting=ho");
    let declined = || Turn::text("No.").stop(StopReason::Refusal);
    let bench = greeting(script(&["greet.sh"], [answer("Say ho", &bad), declined()]));
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["pull_request"]["draft"], true);
    assert_eq!(report["pull_request"]["title"], "Say ho");

    // One file, named: no picker is asked, so the writer's refusal is all that was paid for.
    let bench = greeting(script(&["greet.sh"], [declined()]));
    bench.file(".codespar/settings.json", r#"{"dev": {"maxFiles": 1}}"#);
    let (report, code) = dev(&bench, &["make greet.sh say hi"]);
    assert_eq!(code, Some(1), "{report}");
    assert_eq!(bench.server.request_count(), 1);
    assert!(report["cost_usd"].as_f64().unwrap() > 0.0, "{report}");
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
fn a_secret_in_a_file_is_not_published() {
    let key = "sk-test-key-of-the-bench-0001";
    let blocks = format!("===FILE: key.txt===\nthe key is {key}\n===END===\n");
    let bench = greeting(script(&["greet.sh"], [answer("Add it", &blocks)]));
    let (report, code) = dev(&bench, &["add a file", "--no-verify"]);
    assert_eq!(code, Some(1), "{report}");
    let error = report["error"].as_str().unwrap();
    assert!(
        error.contains("line 1 of `key.txt` would hold a secret"),
        "{error}"
    );
    assert!(!error.contains(key), "{error}");
    assert_eq!(branches(&bench), Vec::<String>::new());
}

#[test]
fn a_directory_within_a_repository_and_an_endless_instruction_are_fine() {
    let bench = greeting(script(&["greet.sh"], [answer("Say hi", FIX)]));
    let below = bench.work().join("below");
    std::fs::create_dir(&below).unwrap();
    let endless = "make it say hi ".repeat(6_000);
    let (report, code) = dev(&bench, &[&endless, "--repo", below.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(
        report["verification"]["after"]["counts"],
        json!({"passed": 1, "failed": 0})
    );
    let shown = pull(&bench, 1);
    assert!(shown["pull_request"]["body"].as_str().unwrap().len() <= 65_536);
    let tasks = parsed(&bench.run(&["task", "list", "--json"]).stdout);
    let subject = tasks["tasks"][0]["subject"].as_str().unwrap();
    assert!(subject.len() < 100, "{subject}");
}

#[test]
fn a_simulated_review_does_not_stand_in_the_way_of_a_real_one() {
    let script = script(&["greet.sh"], [answer("Say hi", FIX)]).conversation(
        Conversation::new(
            "reviewer",
            Matcher::system_contains("You review a pull request"),
        )
        .turn(Turn::text("{\"summary\": \"Fine.\", \"findings\": []}")),
    );
    let bench = greeting(script);
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    for _ in 0..2 {
        let simulated = parsed(&without_a_key(&bench, &["review", "1", "--json"]).stdout);
        assert_eq!(simulated["simulated"], true);
    }
    let real = parsed(&bench.run(&["review", "1", "--json"]).stdout);
    assert_eq!(real["simulated"], false);
    assert!(
        real["review"]["body"]
            .as_str()
            .unwrap()
            .starts_with("Fine.")
    );
    let late = parsed(&without_a_key(&bench, &["review", "1", "--json"]).stdout);
    assert_eq!(late["simulated"], false);
    let shown = pull(&bench, 1);
    assert_eq!(shown["reviews"].as_array().unwrap().len(), 2, "{shown}");
}

#[test]
fn killed_while_it_starts_its_agent_the_run_goes_on_with_that_one() {
    let agent = Conversation::new(
        "agent",
        Matcher::first_user_contains("throw-away copy at one commit"),
    )
    .turn(Turn::tool("Read", &json!({"file_path": "crlf.txt"})))
    .turn(Turn::tool(
        "Edit",
        &json!({"file_path": "crlf.txt", "old_string": "two", "new_string": "TWO"}),
    ))
    .turn(Turn::text("Shout two"));
    let picker = Conversation::new("picker", Matcher::system_contains("You choose the files"))
        .turn(Turn::text("[\"crlf.txt\"]"));
    let bench = repository(
        Script::new().conversation(picker).conversation(agent),
        &[
            // On disk with other line ends than in git.
            (".gitattributes", "crlf.txt text eol=crlf\n"),
            ("crlf.txt", "one\ntwo\n"),
        ],
    );
    let args = ["--engine", "agent", "--no-verify"];
    let id = killed_after(&bench, "made agent_task", &args);
    let (report, code) = dev_resume(&bench, &id);
    assert_eq!(code, Some(0), "{report}");
    let tasks = parsed(&bench.run(&["task", "list", "--json"]).stdout);
    let agents = tasks["tasks"].as_array().unwrap().iter();
    let agents = agents.filter(|task| task["task_type"] == "local_agent");
    assert_eq!(agents.count(), 1, "{tasks}");
    let branch = report["branch"].as_str().unwrap();
    assert_eq!(
        git(&bench.work(), &["show", &format!("{branch}:crlf.txt")]),
        "one\nTWO\n"
    );
}

#[test]
fn a_process_that_is_terminated_leaves_run_and_agent_to_the_next() {
    let slow = std::time::Duration::from_secs(3);
    let agent = Conversation::new(
        "agent",
        Matcher::first_user_contains("throw-away copy at one commit"),
    )
    .turn(Turn::tool("Read", &json!({"file_path": "greet.sh"})).latency(slow))
    .turn(Turn::tool(
        "Edit",
        &json!({"file_path": "greet.sh", "old_string": "hello", "new_string": "hi"}),
    ))
    .turn(Turn::text("Say hi"));
    let picker = Conversation::new("picker", Matcher::system_contains("You choose the files"))
        .turn(Turn::text("[\"greet.sh\"]"));
    let bench = greeting(Script::new().conversation(picker).conversation(agent));
    let mut running = bench.start(&["dev", "make it say hi", "--engine", "agent"]);
    running.wait_for_output("works on it", PATIENCE).unwrap();
    running.terminate().unwrap();
    let ended = running.wait(PATIENCE).unwrap();
    assert!(ended.stderr.contains("is not over"), "{}", ended.stderr);
    let (_, id) = ended.stderr.trim_end().rsplit_once(' ').unwrap();
    let (report, code) = dev_resume(&bench, id);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["pull_request"]["title"], "Say hi");
    assert_eq!(
        bench.room.wait_until_empty(PATIENCE).unwrap(),
        Vec::<u32>::new()
    );
}

#[test]
fn a_run_that_failed_goes_on_where_it_failed() {
    let bench = greeting(script(&["greet.sh"], [answer("Say hi", FIX)]));
    // The branch cannot be made while something else has its name.
    let heads = bench.work().join(".git/refs/heads/codespar");
    std::fs::write(&heads, "nonsense\n").unwrap();
    let (failed, code) = dev(&bench, &["make", "it", "say", "hi"]);
    assert_eq!(code, Some(1), "{failed}");
    assert_eq!(failed["status"], "failed");
    let asked = bench.server.request_count();
    std::fs::remove_file(&heads).unwrap();
    let id = failed["task_id"].as_str().unwrap();
    let (report, code) = dev_resume(&bench, &id[..6]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(
        bench.server.request_count(),
        asked,
        "nothing is paid for twice"
    );
    assert_eq!(
        report["verification"]["after"]["counts"],
        json!({"passed": 1, "failed": 0})
    );
    assert!(report["cost_usd"].as_f64().unwrap() > 0.0, "{report}");
    assert_eq!(branches(&bench), [format!("codespar/task-{}", &id[2..])]);
}

#[test]
fn tests_that_were_red_before_are_said_to_be_and_a_missing_program_is_no_failure() {
    let red = "test:\n\t@echo '2 failed, 3 passed'; exit 1\n";
    let turns = (0..3).map(|_| answer("Say hi", FIX)).collect::<Vec<_>>();
    let bench = repository(
        script(&["greet.sh"], turns),
        &[("greet.sh", GREET), ("Makefile", red)],
    );
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    let repair = bench.server.last_request().unwrap().json().to_string();
    assert!(repair.contains("failed in the same way before"), "{repair}");
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
            .contains("cannot be run here"),
        "{report}"
    );
    assert_eq!(bench.server.request_count(), 2);
}

#[test]
fn a_simulated_pull_request_is_not_merged_and_an_unchecked_one_is_said_to_be() {
    let bench = greeting(script(&["greet.sh"], [answer("Say hi", FIX)]));
    let mut command = bench.command(&["dev", "make it say hi"]);
    command
        .env_remove("ANTHROPIC_API_KEY")
        .env_remove("ANTHROPIC_BASE_URL");
    let simulated = codespar_testkit::process::spawn(&mut command)
        .unwrap()
        .wait(PATIENCE)
        .unwrap();
    assert_eq!(simulated.status.code(), Some(0), "{}", simulated.stderr);
    let refused = bench.run(&["merge", "1"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        refused.stderr.contains("it changes nothing"),
        "{}",
        refused.stderr
    );
    let (report, code) = dev(&bench, &["make it say hi", "--no-verify"]);
    assert_eq!(code, Some(0), "{report}");
    let merged = bench.run(&["merge", "2"]);
    assert_eq!(merged.status.code(), Some(0), "{}", merged.stderr);
    assert!(
        merged.stdout.contains("no check had looked at"),
        "{}",
        merged.stdout
    );
    assert_eq!(
        bench
            .run(&["session", "list", "--json"])
            .stdout
            .matches("\"id\"")
            .count(),
        0
    );
}

#[test]
fn what_a_pull_request_says_is_shown_and_not_obeyed() {
    let bench = greeting(script(
        &["greet.sh"],
        [answer("Say hi \u{1b}]0;gotcha\u{7}", FIX)],
    ));
    let (report, code) = dev(&bench, &["make it say hi", "--no-verify"]);
    assert_eq!(code, Some(0), "{report}");
    for args in [
        &["pr", "show", "1"][..],
        &["pr", "list"],
        &["pr", "diff", "1"],
    ] {
        let finished = bench.run(args);
        assert!(
            !finished.stdout.contains('\u{1b}'),
            "{args:?}: {}",
            finished.stdout
        );
    }
}
