//! Commands as people type them: on the command line, after `-p`, and in a session.

use codespar_testkit::{Conversation, Matcher, Script, Turn};

use crate::{
    common::{Bench, parsed, session},
    repository::{FIX, answer, branches, git, greeting, pull, script},
};

fn fixing() -> Script {
    script(&["greet.sh"], [answer("Say hi", FIX)])
}

/// With a pull request #1 that can be merged.
fn with_pull_request(script: Script) -> Bench {
    let bench = greeting(script);
    let made = bench.run(&["fix", "the", "greeting"]);
    assert_eq!(
        made.status.code(),
        Some(0),
        "{}{}",
        made.stdout,
        made.stderr
    );
    bench
}

#[test]
fn an_instruction_needs_no_dev_before_it() {
    for (words, instruction) in [
        (&["fix", "the", "greeting"][..], "fix the greeting"),
        (&["implement", "a greeting"], "implement a greeting"),
        (&["refactor", "greet.sh"], "refactor greet.sh"),
        (&["add", "a", "greeting"], "add a greeting"),
        (&["instruct", "say", "hi"], "say hi"),
    ] {
        let bench = greeting(fixing());
        let finished = bench.run(&[words, &["--json"]].concat());
        let report = parsed(&finished.stdout);
        assert_eq!(finished.status.code(), Some(0), "{report}");
        let body = pull(&bench, 1)["pull_request"]["body"].clone();
        let quoted = format!("> {instruction}\n");
        assert!(body.as_str().unwrap().contains(&quoted), "{body}");
    }
    let bench = greeting(fixing());
    let alone = bench.run(&["fix"]);
    assert_eq!(alone.status.code(), Some(2));
    assert!(
        alone.stderr.contains("codespar fix <text>"),
        "{}",
        alone.stderr
    );
    assert_eq!(bench.server.request_count(), 0);
}

#[test]
fn a_merge_is_typed_in_many_ways() {
    for words in [
        &["merge", "PR", "#1", "squash"][..],
        &["merge", "PR #1", "squash"],
        &["merge", "PR #1 squash"],
        &["merge", "#1", "Squash"],
        &["merge", "1", "squash"],
        &["pr", "merge", "1", "--squash"],
        &["-p", "@codespar merge PR #1 squash"],
    ] {
        let bench = with_pull_request(fixing());
        let merged = bench.run(words);
        assert_eq!(
            merged.status.code(),
            Some(0),
            "{words:?}: {}",
            merged.stderr
        );
        assert!(
            merged.stdout.contains("merged #1 into main by squash"),
            "{}",
            merged.stdout
        );
        assert_eq!(git(&bench.work(), &["rev-list", "--count", "HEAD"]), "2\n");
        assert_eq!(branches(&bench), Vec::<String>::new());
    }
    let bench = with_pull_request(fixing());
    let rebased = bench.run(&["merge", "#1", "rebase", "--json"]);
    assert_eq!(parsed(&rebased.stdout)["strategy"], "rebase");
}

#[test]
fn a_mistake_in_a_command_merges_nothing_and_says_what_is_wrong() {
    let bench = with_pull_request(fixing());
    for (words, message) in [
        // What a shell makes of `merge PR #1`.
        (
            &["merge", "PR"][..],
            "the number of the pull request is missing",
        ),
        (
            &["merge", "PR", "one"],
            "`one` is not the number or the URL",
        ),
        (&["merge", "1", "fast"], "`fast` is no way to merge"),
        (
            &["merge", "1", "squash", "now"],
            "`now` is not expected here",
        ),
        (
            &["merge", "1", "rebase", "--squash"],
            "both `--squash` and `rebase` are given",
        ),
        (
            &["merge", "https://git.example/o/n/pull/1"],
            "is not a repository at https://github.com",
        ),
        (
            &["review", "1", "2"],
            "`2` is not expected after the pull request",
        ),
        (
            &["-p", "@codespar merge PR"],
            "the number of the pull request is missing",
        ),
        (
            &["-p", "@codespar merge PR #1 with opus"],
            "`merge` takes no model",
        ),
        (
            &["-p", "--max-turns", "2", "@codespar merge PR #1"],
            "is not a prompt",
        ),
    ] {
        let refused = bench.run(words);
        assert_eq!(
            refused.status.code(),
            Some(2),
            "{words:?}: {}",
            refused.stderr
        );
        assert!(
            refused.stderr.contains(message),
            "{words:?}: {}",
            refused.stderr
        );
    }
    assert_eq!(pull(&bench, 1)["pull_request"]["state"], "open");
}

#[test]
fn a_session_carries_out_commands_and_sends_only_sentences_to_the_model() {
    let talk = Conversation::new("talk", Matcher::first_user_contains("why is it short"))
        .turn(Turn::text("because it was asked for"));
    let bench = greeting(fixing().conversation(talk));
    let shown = session(
        &bench,
        &[
            ("›", "@codespar fix the greeting"),
            ("›", "@codespar prs"),
            ("›", "@codespar merge PR #1 sqash"),
            ("›", "@codespar, why is it short?"),
            ("›", "@codespar merge PR #1 squash"),
            ("›", "@codespar status"),
            ("›", "@codespar plan a parade"),
            ("›", "@codespar help merge"),
            ("›", "/quit"),
        ],
    );
    let order = [
        "PR #1",
        "Say hi",
        "`sqash` is no way to merge",
        "because it was asked for",
        "merged #1 into main by squash",
        "completed",
        "`plan` and `approve` are for shared channels",
        "merge PR #n [squash|rebase|merge]",
    ];
    let mut from = 0;
    for text in order {
        let at = shown[from..].find(text);
        from += at.unwrap_or_else(|| panic!("no `{text}` after byte {from} of {shown}"));
    }
    assert_eq!(pull(&bench, 1)["pull_request"]["state"], "merged");
    // The picker, the writer and the one sentence.
    assert_eq!(bench.server.request_count(), 3);
}

#[test]
fn an_id_is_typed_without_its_letter_or_by_its_beginning() {
    let bench = with_pull_request(fixing());
    let listed = parsed(&bench.run(&["task", "list", "--json"]).stdout);
    let id = listed["tasks"][0]["task_id"].as_str().unwrap().to_owned();
    let digits = id.split_once('-').unwrap().1;
    for typed in [&id, digits, &digits[..4], &id[..5], &id.to_uppercase()] {
        let got = bench.run(&["task", "get", typed, "--json"]);
        assert_eq!(parsed(&got.stdout)["task_id"], id.as_str(), "{typed}");
    }
    let cues = format!("/task-status {digits}");
    let shown = session(
        &bench,
        &[
            ("›", "/stop"),
            ("›", &cues),
            ("›", "/stop zz"),
            ("›", "/quit"),
        ],
    );
    assert!(shown.matches(&id).count() >= 2, "{shown}");
    assert!(
        shown.contains("`zz` is not a task id or a prefix of one"),
        "{shown}"
    );
}

#[test]
fn a_draft_becomes_ready_after_its_checks_or_anyway_and_a_closed_one_loses_its_branch() {
    let wrong = FIX.replace("greeting=hi", "greeting=ho");
    let stubborn = (0..3).map(|_| answer("Say ho", &wrong));
    let bench = greeting(script(&["greet.sh"], stubborn));
    assert_eq!(bench.run(&["fix", "it"]).status.code(), Some(3));
    let refused = bench.run(&["pr", "ready", "#1"]);
    assert_eq!(refused.status.code(), Some(1));
    for text in [
        "#1 stays a draft",
        "check `codespar/verify` failed",
        "--anyway",
    ] {
        assert!(refused.stderr.contains(text), "{text}: {}", refused.stderr);
    }
    assert_eq!(pull(&bench, 1)["pull_request"]["draft"], true);
    let ready = bench.run(&["pr", "ready", "1", "--anyway", "--json"]);
    assert_eq!(parsed(&ready.stdout)["draft"], false, "{}", ready.stderr);
    let again = bench.run(&["pr", "ready", "1"]);
    assert_eq!(again.status.code(), Some(1));
    assert!(
        again.stderr.contains("#1 is not a draft"),
        "{}",
        again.stderr
    );

    let branch = branches(&bench);
    assert_eq!(branch.len(), 1);
    let closed = bench.run(&["pr", "close", "PR", "1"]);
    assert_eq!(closed.status.code(), Some(0), "{}", closed.stderr);
    assert!(
        closed.stdout.contains(&format!("deleted {}", branch[0])),
        "{}",
        closed.stdout
    );
    assert_eq!(branches(&bench), Vec::<String>::new());
    let again = bench.run(&["pr", "close", "1"]);
    assert!(again.stderr.contains("#1 is closed"), "{}", again.stderr);

    let green = greeting(fixing());
    let made = green.run(&["fix", "it", "--draft"]);
    assert_eq!(made.status.code(), Some(0), "{}", made.stderr);
    let ready = green.run(&["pr", "ready", "1"]);
    assert_eq!(ready.stdout, "#1 is ready: Say hi\n", "{}", ready.stderr);
    assert_eq!(green.run(&["merge", "1"]).status.code(), Some(0));
}
