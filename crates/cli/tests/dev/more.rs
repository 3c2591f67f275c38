//! The model asks to see more before it answers.

use codespar_testkit::Turn;
use serde_json::Value;

use crate::{
    common::Bench,
    repair::talkative_with,
    repository::{
        FIX, GREET, TEST, answer, branches, commit_all, dev, dev_resume, git, greeting,
        killed_after, repository, script,
    },
};

const TOKEN: &str = "ghp_0123456789abcdefghijABCDEFGHIJ012345";

/// The last message of the request with this number.
fn message(bench: &Bench, number: usize) -> String {
    let request = bench.server.requests()[number].json().clone();
    let messages = request["messages"].as_array().unwrap();
    let content = &messages.last().unwrap()["content"];
    match content.as_str() {
        Some(text) => text.to_owned(),
        None => content[0]["text"].as_str().unwrap().to_owned(),
    }
}

fn asks(lines: &str) -> Turn {
    Turn::text(format!("I have to see more.\n\n{lines}\n"))
}

fn title(report: &Value) -> &Value {
    &report["pull_request"]["title"]
}

#[test]
fn files_lines_and_places_are_shown_and_the_change_follows() {
    let long: String = (1..=50).map(|n| format!("echo line {n}\n")).collect();
    let turns = [
        asks("===SHOW: say.sh===\n===SHOW: long.sh:3-4===\n===SEARCH: hello==="),
        answer("Say hi", FIX),
    ];
    let bench = repository(
        script(&["greet.sh"], turns),
        &[
            ("greet.sh", GREET),
            ("say.sh", "echo hello\n"),
            ("long.sh", &long),
        ],
    );
    let (report, code) = dev(&bench, &["make it say hi", "--no-verify"]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(title(&report), "Say hi");
    let told = message(&bench, 2);
    for part in [
        "<file path=\"say.sh\">\necho hello\n</file>",
        "<file path=\"long.sh\" lines=\"3-4 of 50\" shown=\"in part\">\necho line 3\necho line 4\n</file>",
        "<search text=\"hello\">\ngreet.sh:2: greeting=hello\nsay.sh:1: echo hello\n</search>",
    ] {
        assert!(told.contains(part), "{part} in {told}");
    }
    // The picker, the request and the answer.
    assert_eq!(bench.server.request_count(), 3);
}

#[test]
fn a_file_that_was_shown_whole_may_be_replaced_whole_and_others_may_not() {
    let whole = |path: &str| {
        answer(
            "Say hi",
            &format!("===FILE: {path}===\necho hi\n===END===\n"),
        )
    };
    let turns = [
        asks("===SHOW: say.sh===\n===SHOW: long.sh:1-1==="),
        whole("long.sh"),
        whole("say.sh"),
    ];
    let bench = repository(
        script(&["greet.sh"], turns),
        &[
            ("greet.sh", GREET),
            ("say.sh", "echo hello\n"),
            ("long.sh", "echo 1\necho 2\n"),
        ],
    );
    let (report, code) = dev(&bench, &["make it say hi", "--no-verify"]);
    assert_eq!(code, Some(0), "{report}");
    let branch = report["branch"].as_str().unwrap();
    assert_eq!(
        git(&bench.work(), &["show", &format!("{branch}:say.sh")]),
        "echo hi\n"
    );
    assert_eq!(
        git(&bench.work(), &["show", &format!("{branch}:long.sh")]),
        "echo 1\necho 2\n"
    );
}

#[test]
fn nothing_outside_the_files_of_the_commit_is_shown() {
    let lines = "===SHOW: ../../etc/passwd===\n===SHOW: /etc/passwd===\n===SHOW: .git/config===\n\
                 ===SHOW: link.sh===\n===SHOW: linked/passwd===\n===SHOW: .hidden===\n\
                 ===SHOW: none.sh===\n===SHOW: greet.sh:9-12===";
    let rest = "===SHOW: data.bin===\n===SHOW: untracked.sh===\n===SHOW: dir===\n===SHOW: secret.sh===\n\
                ===SEARCH: 0123456789===\n===SEARCH: root:===";
    let bench = repository(
        script(
            &["greet.sh"],
            [asks(lines), asks(rest), answer("Say hi", FIX)],
        ),
        &[
            ("greet.sh", GREET),
            (".hidden", "a secret place\n"),
            ("dir/inner.sh", "echo\n"),
            ("sub/none.sh", "echo\n"),
            ("secret.sh", &format!("token={TOKEN}\n")),
        ],
    );
    let work = bench.work();
    std::os::unix::fs::symlink("/etc/passwd", work.join("link.sh")).unwrap();
    std::os::unix::fs::symlink("/etc", work.join("linked")).unwrap();
    std::fs::write(work.join("data.bin"), b"\0\x01\x02").unwrap();
    commit_all(&bench, "Add files");
    bench.file("untracked.sh", "not in the commit\n");
    let (report, code) = dev(&bench, &["make it say hi", "--no-verify"]);
    assert_eq!(code, Some(0), "{report}");
    let told = format!("{}{}", message(&bench, 2), message(&bench, 3));
    for part in [
        "`../../etc/passwd` is not shown: it leaves the repository.",
        "`/etc/passwd` is not shown: it is not relative to the repository.",
        "`.git/config` is not shown: it is in the repository's own `.git`.",
        "`link.sh` is not shown: it is a symbolic link.",
        "`linked/passwd` is not shown: it is not there.",
        "`.hidden` is not shown: hidden files are not shown.",
        "`none.sh` is not shown: it is not there; of that name there is sub/none.sh.",
        "`greet.sh` is not shown: it has 3 lines.",
        "`data.bin` is not shown: it is not text.",
        "`untracked.sh` is not shown: it is not there.",
        "`dir` is not shown: it is not there; it is a directory with dir/inner.sh.",
        "token=[redacted]",
        "<search text=\"0123456789\">\nnothing was found\n</search>",
        "<search text=\"root:\">\nnothing was found\n</search>",
    ] {
        assert!(told.contains(part), "{part} in {told}");
    }
    for leak in [
        "root:x",
        "a secret place",
        "not in the commit",
        TOKEN,
        "[core]",
    ] {
        assert!(!told.contains(leak), "{leak} in {told}");
    }
}

#[test]
fn after_two_rounds_the_model_has_to_answer() {
    let ask = || asks("===SHOW: test.sh===");
    let bench = greeting(script(
        &["greet.sh"],
        [ask(), ask(), ask(), answer("Say hi", FIX)],
    ));
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    assert!(message(&bench, 3).contains(TEST), "{}", message(&bench, 3));
    let told = message(&bench, 4);
    assert!(
        told.contains("Answer now") && !told.contains("<file"),
        "{told}"
    );

    let bench = greeting(script(
        &["greet.sh"],
        [ask(), ask(), ask(), ask(), answer("Say hi", FIX)],
    ));
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(1), "{report}");
    assert_eq!(branches(&bench), Vec::<String>::new());
    assert_eq!(bench.server.request_count(), 5);
}

#[test]
fn what_is_shown_on_request_is_bounded_by_the_budget() {
    let long: String = (1..=2000).map(|n| format!("echo line {n}\n")).collect();
    let turns = [
        asks("===SHOW: long.sh===\n===SHOW: long.sh:1-1000===\n===SEARCH: echo==="),
        answer("Say hi", FIX),
    ];
    let bench = repository(
        script(&["greet.sh"], turns),
        &[
            ("greet.sh", GREET),
            ("long.sh", &long),
            (
                ".codespar/settings.json",
                r#"{"dev":{"contextBytes":4000}}"#,
            ),
        ],
    );
    bench.trust();
    let (report, code) = dev(&bench, &["make it say hi", "--no-verify"]);
    assert_eq!(code, Some(0), "{report}");
    let told = message(&bench, 2);
    assert!(told.len() < 4_500, "{}", told.len());
    assert!(
        told.contains("shown=\"in part\"") && told.contains("left out"),
        "{told}"
    );
    assert!(
        told.contains("No more can be shown: the context is full."),
        "{told}"
    );
}

#[test]
fn an_answer_that_asks_and_changes_is_sent_back() {
    let both = answer("Say hi", &format!("===SHOW: test.sh===\n{FIX}"));
    let bench = greeting(script(&["greet.sh"], [both, answer("Say hi", FIX)]));
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    let told = message(&bench, 2);
    assert!(told.contains("asks for more and changes files"), "{told}");
}

#[test]
fn a_repair_may_ask_too() {
    let wrong = FIX.replace("greeting=hi", "greeting=ho");
    let turns = [
        answer("Say ho", &wrong),
        asks("===SHOW: greet.sh==="),
        answer("Say hi", &FIX.replace("greeting=hello", "greeting=ho")),
    ];
    let bench = talkative_with(script(&["greet.sh"], turns));
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    // As the change left it.
    let told = message(&bench, 3);
    assert!(
        told.contains("greeting=ho\n") && !told.contains("hello"),
        "{told}"
    );
}

#[test]
fn a_run_that_is_killed_after_a_request_does_not_pay_for_it_again() {
    let bench = greeting(script(
        &["greet.sh"],
        [asks("===SHOW: test.sh==="), answer("Say hi", FIX)],
    ));
    let id = killed_after(&bench, "answer-write-1", &[]);
    let (report, code) = dev_resume(&bench, &id);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(bench.server.request_count(), 3);
    assert!(message(&bench, 2).contains(TEST), "{}", message(&bench, 2));
}
