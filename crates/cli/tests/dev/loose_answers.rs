//! Answers that leave out part of the format where what they mean is clear, and where it is not.

use codespar_protocol::StopReason;
use codespar_testkit::Turn;

use crate::repository::{FIX, GREET, answer, branches, dev, git, greeting, repository, script};

const PAIR: &str = "<<<SEARCH\ngreeting=hello\n>>>REPLACE\ngreeting=hi\n";

#[test]
fn a_pair_for_the_only_file_shown_and_a_block_without_its_end_cost_no_repair() {
    let unended = format!("===FILE: greet.sh===\n{PAIR}");
    let named = format!("`greet.sh`:\n\n```sh\n{PAIR}```\nThat is all of it.\n");
    for text in [PAIR, &unended, &named] {
        let bench = repository(
            script(&["greet.sh"], [answer("Say hi", text)]),
            &[("greet.sh", GREET)],
        );
        let (report, code) = dev(&bench, &["make it say hi", "--no-verify"]);
        assert_eq!(code, Some(0), "{text}: {report}");
        let branch = report["branch"].as_str().unwrap();
        let written = git(&bench.work(), &["show", &format!("{branch}:greet.sh")]);
        assert_eq!(written, GREET.replace("hello", "hi"), "{text}");
        assert_eq!(report["pull_request"]["title"], "Say hi");
        // The picker and the writer, each once.
        assert_eq!(bench.server.request_count(), 2, "{text}");
    }
}

#[test]
fn a_pair_that_could_be_about_two_files_is_sent_back() {
    let bench = greeting(script(
        &["greet.sh", "test.sh"],
        [answer("Say hi", PAIR), answer("Say hi", FIX)],
    ));
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(bench.server.request_count(), 3);
    let repair = bench.server.last_request().unwrap().json().to_string();
    assert!(repair.contains("nothing says which file"), "{repair}");
}

#[test]
fn a_block_that_was_cut_is_never_taken_for_a_whole_one() {
    // The second part ends the answer without the rest of the file.
    let turns = [
        Turn::text("Say hi\n\n===FILE: greet.sh===\n#!/bin/sh\n").stop(StopReason::MaxTokens),
        Turn::text("greeting=hi\n"),
    ];
    let bench = repository(script(&["greet.sh"], turns), &[("greet.sh", GREET)]);
    let (report, code) = dev(&bench, &["make it say hi", "--no-verify"]);
    assert_eq!(code, Some(1), "{report}");
    let repair = bench.server.last_request().unwrap().json().to_string();
    assert!(repair.contains("never ends"), "{repair}");
    assert_eq!(branches(&bench), Vec::<String>::new());
}

#[test]
fn an_answer_cut_by_the_context_window_publishes_nothing() {
    let full = StopReason::ContextWindowExceeded;
    let turns = [answer("Say hi", FIX).stop(full)];
    let bench = repository(script(&["greet.sh"], turns), &[("greet.sh", GREET)]);
    let (report, code) = dev(&bench, &["make it say hi", "--no-verify"]);
    assert_eq!(code, Some(1), "{report}");
    let error = report["error"].as_str().unwrap();
    assert!(error.contains("context window"), "{error}");
    assert_eq!(branches(&bench), Vec::<String>::new());
}

#[test]
fn apply_takes_no_block_without_its_end_from_a_file() {
    let bench = repository(script(&[], []), &[("greet.sh", GREET)]);
    let unended = format!("===FILE: greet.sh===\n{PAIR}");
    let refused = bench.run_with_stdin(&["apply"], &unended);
    assert_eq!(refused.status.code(), Some(2), "{}", refused.stdout);
    assert!(refused.stderr.contains("never ends"), "{}", refused.stderr);
    let named = format!("greet.sh\n{PAIR}===END===\n");
    let applied = bench.run_with_stdin(&["apply"], &named);
    assert_eq!(applied.status.code(), Some(0), "{}", applied.stderr);
    let written = std::fs::read_to_string(bench.work().join("greet.sh")).unwrap();
    assert_eq!(written, GREET.replace("hello", "hi"));
}
