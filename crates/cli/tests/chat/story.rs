//! The whole story in one thread.

use codespar_testkit::Turn;

use crate::{
    common::{git::git, type_into},
    room::{
        FIX, GREET, Record, answer, chat_command, decisions, greeting, pulls, say, script,
        whole_story, writer,
    },
};

#[test]
fn from_a_mention_to_the_merge_in_one_thread() {
    let bench = greeting(whole_story());
    let shown = type_into(
        &mut chat_command(&bench, "ann"),
        &[
            ("", "@codespar fix the greeting: make it friendlier"),
            ("PR #1 (draft): Say hey is ready", "@codespar merge PR #1"),
            ("is a draft", "@codespar also make the tests pass"),
            ("is ready (the tests pass with it)", "@codespar prs"),
            ("#1 draft", "@codespar review PR #1"),
            ("hi is short", "/quit"),
        ],
    );
    // The first answer names the repository, and each line of progress is printed once.
    assert!(
        shown.contains("🔍 work · Found 1 relevant file: greet.sh"),
        "{shown}"
    );
    assert!(
        shown.contains("🧪 make test: before 1 of 1 failed → after 1 passed"),
        "{shown}"
    );
    let ready = bench.run(&["pr", "ready", "1", "--anyway"]);
    assert_eq!(ready.status.code(), Some(0), "{}", ready.stderr);

    let merged = say(&bench, "ann", &["@codespar merge PR #1 squash"]);
    assert!(
        merged.stdout.contains("merged PR #1 into main by squash"),
        "{}",
        merged.stdout
    );
    assert_eq!(
        std::fs::read_to_string(bench.work().join("greet.sh")).unwrap(),
        GREET.replace("hello", "hi")
    );
    assert_eq!(pulls(&bench)[0]["state"], "merged");
    assert_eq!(git(&bench.work(), &["rev-list", "--count", "main"]), "2\n");

    let record = Record::of(&bench);
    assert_eq!(record.tasks.len(), 2);
    let progress = record.texts("progress");
    assert_eq!(
        progress.len(),
        2,
        "one message for each task: {progress:#?}"
    );
    assert!(progress[1].contains("✅ PR #1"), "{progress:#?}");
    assert_eq!(record.texts("result").len(), 2);
    assert_eq!(
        decisions(&bench),
        [
            "ann dev allowed",
            "ann dev done",
            "ann merge failed",
            "ann dev allowed",
            "ann dev done",
            "ann prs done",
            "ann review done",
            "ann merge done",
        ]
    );
}

#[test]
fn what_is_said_while_it_works_is_queued_and_delivered_together() {
    let gate = codespar_testkit::Gate::closed();
    let second = "===FILE: greet.sh===\n<<<SEARCH\ngreeting=hi\n>>>REPLACE\ngreeting=hi # short\n===END===\n";
    let bench = greeting(script([
        writer("say hi", [answer("Say hi", FIX).held_by(&gate)]),
        writer(
            "add a comment\n\nadd it in English",
            [answer("Say why", second)],
        ),
    ]));
    let mut command = chat_command(&bench, "ann");
    let talk = std::thread::spawn(move || {
        type_into(
            &mut command,
            &[
                ("", "@codespar fix it to say hi"),
                ("Writing the change", "@codespar add a comment"),
                ("queued: it starts when", "@codespar add it in English"),
                ("queued: it starts when", "@codespar status"),
                ("running: dev: ", "go on"),
                ("PR #1: Say hi is ready", ""),
                ("PR #1: Say hi is ready", "/quit"),
            ],
        )
    });
    bench.server.wait_for_requests_blocking(2).unwrap();
    crate::common::wait_for("two queued messages", || {
        let texts = Record::of(&bench).texts("text");
        texts
            .iter()
            .filter(|text| text.starts_with("queued"))
            .count()
            == 2
            && texts.iter().any(|text| text.contains("running: dev"))
    });
    gate.open();
    let shown = talk.join().unwrap();
    let record = Record::of(&bench);
    assert_eq!(record.tasks.len(), 2, "{shown}");
    let branch = pulls(&bench)[0]["head"].as_str().unwrap().to_owned();
    let range = format!("main..{branch}");
    assert_eq!(git(&bench.work(), &["rev-list", "--count", &range]), "2\n");
    let started = record.texts("text");
    let started = started
        .iter()
        .filter(|text| text.starts_with("started with"));
    assert_eq!(started.count(), 2);
}

#[test]
fn a_question_is_answered_by_the_number_of_an_option() {
    let bench = greeting(script([writer(
        "be polite",
        [
            Turn::text(
                "Which greeting do you mean?\n1. the one in greet.sh\n2. the one in test.sh",
            ),
            answer("Say hi", FIX),
        ],
    )]));
    let shown = type_into(
        &mut chat_command(&bench, "carl"),
        &[
            ("", "@codespar fix the greeting to be polite"),
            ("2. the one in test.sh", "1"),
            ("PR #1: Say hi is ready", "/quit"),
        ],
    );
    assert!(
        shown.contains("answered by carl: the one in greet.sh"),
        "{shown}"
    );
    let last = bench.server.requests().pop().unwrap().json().to_string();
    assert!(last.contains("the one in greet.sh"), "{last}");
}

#[test]
fn without_a_model_the_whole_way_is_simulated() {
    let bench = greeting(script([]));
    let mut command = bench.command(&["chat", "--as", "ann", "--simulate"]);
    let finished = codespar_testkit::process::spawn_with_stdin(
        &mut command,
        "@codespar fix the greeting\n".into(),
    )
    .unwrap()
    .wait(crate::common::PATIENCE)
    .unwrap();
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    assert!(
        finished.stdout.contains("simulated, nothing was changed"),
        "{}",
        finished.stdout
    );
    assert_eq!(bench.server.request_count(), 0);
}
