//! From the answer to the commit.

use codespar_protocol::StopReason;
use codespar_testkit::{Conversation, Matcher, Script, Turn};
use serde_json::json;

use crate::{
    common::{Bench, PATIENCE, parsed, type_into},
    repository::{FIX, GREET, answer, branches, dev, git, greeting, pull, repository, script},
};

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
fn paths_that_leave_the_repository_or_are_protected_are_refused_by_name() {
    for (block, expected) in [
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
        assert!(error.contains(expected), "{block}: {error}");
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
fn without_a_picker_only_the_writer_is_asked() {
    for (variable, setting) in [(Some(""), None), (Some("none"), None), (None, Some("none"))] {
        let bench = greeting(script(&["greet.sh"], [answer("Say hi", FIX)]));
        if let Some(setting) = setting {
            let settings = json!({"dev": {"pickerModel": setting}}).to_string();
            std::fs::write(bench.room.codespar_home().join("settings.json"), settings).unwrap();
        }
        let mut command = bench.command(&["dev", "--json", "make it say hi"]);
        if let Some(variable) = variable {
            command.env("PICKER_MODEL", variable);
        }
        let finished = codespar_testkit::process::spawn(&mut command).unwrap();
        let finished = finished.wait(PATIENCE).unwrap();
        assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
        assert_eq!(bench.server.requests().len(), 1);
    }
}

#[test]
fn what_an_agent_was_denied_is_not_told_to_reviewers() {
    let agent = Conversation::new(
        "agent",
        Matcher::first_user_contains("throw-away copy at one commit"),
    )
    .turn(Turn::tool("Bash", &json!({"command": "rm -rf /etc/x"})))
    .turn(Turn::tool("Read", &json!({"file_path": "greet.sh"})))
    .turn(Turn::tool(
        "Edit",
        &json!({"file_path": "greet.sh", "old_string": "hello", "new_string": "hi"}),
    ))
    .turn(Turn::text("Say hi\n\nOne word changes."));
    let picker = Conversation::new("picker", Matcher::system_contains("You choose the files"))
        .turn(Turn::text("[\"greet.sh\"]"));
    let bench = greeting(Script::new().conversation(picker).conversation(agent));
    bench.file(
        ".codespar/settings.json",
        r#"{"permissions": {"deny": ["Bash(rm *)"]}}"#,
    );
    bench.trust();
    let (report, code) = dev(&bench, &["make it say hi", "--engine", "agent"]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["summary"], "Say hi\n\nOne word changes.");
    let branch = report["branch"].as_str().unwrap();
    let message = git(&bench.work(), &["log", "-1", "--format=%B", branch]);
    let start = "Say hi\n\nOne word changes.\n\nMade by CodeSpar";
    assert!(message.starts_with(start), "{message}");
    let body = crate::repository::pull(&bench, 1)["pull_request"]["body"].to_string();
    assert!(
        !body.contains("denied") && !message.contains("denied"),
        "{body}"
    );
    // The agent itself is told what it may do instead.
    let last = bench.server.last_request().unwrap();
    let denied = &last.tool_results()[0].text;
    assert!(denied.contains("Free here, without asking"), "{denied}");
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
        json!([
            {"path": "docs/why.md", "change": "new", "added": 1, "removed": 0},
            {"path": "greet.sh", "change": "modified", "added": 1, "removed": 1}
        ])
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
fn a_secret_in_a_file_is_not_published() {
    let key = "sk-test-key-of-the-bench-0001";
    let blocks = format!("===FILE: key.txt===\nthe key is {key}\n===END===\n");
    let bench = greeting(script(&["greet.sh"], [answer("Add it", &blocks)]));
    let (report, code) = dev(&bench, &["add a file", "--no-verify"]);
    assert_eq!(code, Some(1), "{report}");
    let error = report["error"].as_str().unwrap();
    assert!(
        error.contains("`key.txt:1` would publish a secret (the value of ANTHROPIC_API_KEY)"),
        "{error}"
    );
    assert!(!error.contains(key), "{error}");
    assert_eq!(branches(&bench), Vec::<String>::new());
}

#[test]
fn a_token_in_a_change_is_not_published_unless_it_was_there() {
    let token = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let blocks = format!("===FILE: key.txt===\nfirst\nTOKEN = \"{token}\"\n===END===\n");
    let bench = greeting(script(&["greet.sh"], [answer("Add it", &blocks)]));
    let (report, code) = dev(&bench, &["add a file", "--no-verify"]);
    assert_eq!(code, Some(1), "{report}");
    let error = report["error"].as_str().unwrap();
    assert!(
        error.contains("`key.txt:2` would publish a secret (a token by its shape)"),
        "{error}"
    );
    assert!(!error.contains(token), "{error}");
    assert_eq!(branches(&bench), Vec::<String>::new());

    let old = format!("x\nTOKEN = \"{token}\"\n");
    let blocks = "===FILE: fixture.txt===\n<<<SEARCH\nx\n>>>REPLACE\ny\n===END===\n";
    let bench = repository(
        script(&["fixture.txt"], [answer("Change it", blocks)]),
        &[("fixture.txt", &old)],
    );
    let (report, code) = dev(&bench, &["change x in fixture.txt", "--no-verify"]);
    assert_eq!(code, Some(0), "{report}");
}

#[test]
fn what_a_failing_test_prints_is_not_published() {
    let key = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEMARKER5d1AAAA\n\
               -----END OPENSSH PRIVATE KEY-----\n";
    let summary = "Ask @team <!-- hidden --> \u{1b}[2J\n```\nopen";
    let bench = repository(
        script(&["greet.sh"], (0..3).map(|_| answer(summary, FIX))),
        &[("greet.sh", GREET), ("key", key)],
    );
    let verify =
        "cat key; echo plain words; echo 'FAIL: test_add (calc.Case)'; echo '1 failed'; false";
    let (report, code) = dev(&bench, &["make it say hi", "--verify", verify]);
    assert_eq!(code, Some(3), "{report}");
    let shown = pull(&bench, 1);
    let body = shown["pull_request"]["body"].as_str().unwrap();
    assert!(!body.contains("MARKER"), "{body}");
    assert!(!body.contains("BEGIN OPENSSH"), "{body}");
    assert!(!body.contains("\nplain words"), "{body}");
    assert!(body.contains("- `test_add`"), "{body}");
    assert!(body.contains("1 of 1 failed"), "{body}");
    assert!(
        !body.contains("@team") && !body.contains("<!-- hidden"),
        "{body}"
    );
    assert!(body.contains("```\nopen\n```\n"), "{body}");
    let id = report["task_id"].as_str().unwrap();
    let output = bench.run(&["task", "output", id]).stdout;
    assert!(output.contains("plain words"), "{output}");
    assert!(!output.contains("MARKER"), "{output}");
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
fn a_person_at_a_terminal_is_asked_once_and_a_pipe_is_not() {
    let unclear = || Turn::text("Should it say hi or hey?");
    let bench = greeting(script(&["greet.sh"], [unclear(), answer("Say hi", FIX)]));
    let piped = bench.run(&["dev", "make it friendlier", "--no-verify"]);
    assert_eq!(piped.status.code(), Some(1));
    assert!(
        piped.stderr.contains("Should it say hi or hey?"),
        "{}",
        piped.stderr
    );
    assert_eq!(branches(&bench), Vec::<String>::new());

    let line = format!(
        "{} dev 'make it friendlier' --no-verify",
        env!("CARGO_BIN_EXE_codespar")
    );
    let on_terminal = |bench: &Bench, cues: &[(&str, &str)]| {
        let mut command = bench.room.command("script");
        command
            .current_dir(bench.work())
            .env("ANTHROPIC_BASE_URL", bench.server.url())
            .env("ANTHROPIC_API_KEY", "sk-test-key-of-the-bench-0001")
            .args(["-qec", &line, "/dev/null"]);
        type_into(&mut command, cues)
    };
    let shown = on_terminal(&bench, &[("your answer", "hi, please")]);
    assert!(shown.contains("PR #1: Say hi"), "{shown}");
    let last = bench.server.last_request().unwrap().json().to_string();
    assert!(last.contains("hi, please"), "{last}");

    let stubborn = greeting(script(&["greet.sh"], [unclear(), unclear()]));
    let shown = on_terminal(&stubborn, &[("your answer", "hi")]);
    assert!(shown.contains("no changes were generated"), "{shown}");
    let silent = greeting(script(&["greet.sh"], [unclear()]));
    let shown = on_terminal(&silent, &[("your answer", "")]);
    assert!(shown.contains("no changes were generated"), "{shown}");
    assert_eq!(silent.server.request_count(), 2);
}
