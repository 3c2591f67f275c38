//! What the model is told when tests fail, and when it is not asked.

use codespar_testkit::{Script, Turn};
use serde_json::json;

use crate::{
    common::Bench,
    repository::{FIX, GREET, answer, dev, git, pull, repository, script},
};

const HO: &str =
    "===FILE: greet.sh===\n<<<SEARCH\ngreeting=hello\n>>>REPLACE\ngreeting=ho\n===END===\n";
const HI_AFTER_HO: &str =
    "===FILE: greet.sh===\n<<<SEARCH\ngreeting=ho\n>>>REPLACE\ngreeting=hi\n===END===\n";

/// A test that says what it got.
pub(crate) const TALKATIVE: &str = "test:\n\t@got=$$(sh greet.sh); [ \"$$got\" = \"hi world\" ] && echo '1 passed' || { \
                                    echo \"not ok 1 - greets\"; echo \"# got $$got\"; echo '1 failed'; exit 1; }\n";

pub(crate) fn talkative_with(model: Script) -> Bench {
    repository(model, &[("greet.sh", GREET), ("Makefile", TALKATIVE)])
}

fn talkative(answers: impl IntoIterator<Item = Turn>) -> Bench {
    talkative_with(script(&["greet.sh"], answers))
}

/// The text of the last request's last message.
fn last_message(bench: &Bench) -> String {
    let request = bench.server.last_request().unwrap().json().clone();
    let messages = request["messages"].as_array().unwrap().clone();
    let content = &messages.last().unwrap()["content"];
    content[0]["text"]
        .as_str()
        .or_else(|| content.as_str())
        .unwrap()
        .to_owned()
}

/// A recorded output; see the recordings for how lines repeat.
fn played(recording: &str) -> String {
    let mut out = String::new();
    let mut lines = recording.lines();
    while let Some(line) = lines.next() {
        let range = line
            .strip_prefix('@')
            .and_then(|range| range.split_once(' '));
        let range = range.and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
        let Some((from, to)) = range else {
            out.push_str(line);
            out.push('\n');
            continue;
        };
        let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "@").collect();
        for n in from..=to {
            let n: u32 = n;
            for line in &body {
                out.push_str(&line.replace("{n}", &n.to_string()));
                out.push('\n');
            }
        }
    }
    out
}

macro_rules! recording {
    ($name:literal) => {
        include_str!(concat!(
            "../../../change/src/verify/failures/recordings/",
            $name,
            ".txt"
        ))
    };
}

#[test]
fn the_repair_request_holds_all_four_failures_of_a_thousand_tests() {
    for (recording, name, message) in [
        (
            recording!("tape"),
            "case {n} adds numbers › should be strictly equal",
            "expected: {w}",
        ),
        (recording!("node-spec"), "case {n} adds numbers", "!== {w}"),
        (recording!("node-tap"), "case {n} adds numbers", "!== {w}"),
        (
            recording!("jest"),
            "numbers › case {n} adds",
            "Expected: {w}",
        ),
        (recording!("pytest"), "test_n.py::test_case_{n}", "== {w}"),
        (recording!("cargo"), "tests::case_{n}", "right: {w}"),
        (recording!("go-v"), "TestCase{n}", "want {w}"),
    ] {
        let test = "test:\n\t@if grep -q =ho greet.sh; then cat output.txt; exit 1; fi; echo '1000 passed'\n";
        // The word is in the file of the greeting as well.
        let greet = GREET.replace("greeting=hello", "greeting=good");
        let ho = HO.replace("greeting=hello", "greeting=good");
        let bench = repository(
            script(
                &["greet.sh"],
                [answer("Say ho", &ho), answer("Say hi", HI_AFTER_HO)],
            ),
            &[
                ("greet.sh", &greet),
                ("Makefile", test),
                ("output.txt", &played(recording)),
            ],
        );
        let (report, code) = dev(&bench, &["make it say hi"]);
        assert_eq!(code, Some(0), "{report}");
        assert_eq!(bench.server.request_count(), 3);
        let message_to_model = last_message(&bench);
        assert!(
            message_to_model.contains("$ make test\nbefore the change: 1000 passed\n"),
            "{message_to_model}"
        );
        for n in [17, 333, 666, 990] {
            let name = name.replace("{n}", &n.to_string());
            let message = message.replace("{w}", &(n + 5).to_string());
            for text in [&format!("### {name}\n"), &message] {
                assert!(
                    message_to_model.contains(text),
                    "{text}: {message_to_model}"
                );
            }
        }
        assert!(
            message_to_model.len() < 16_000,
            "{}",
            message_to_model.len()
        );
    }
}

#[test]
fn a_red_suite_that_stays_red_for_the_same_reason_costs_no_repair_call() {
    let red = "test:\n\t@echo 'FAILED tests/test_old.py::test_old - assert 1 == 2'; \
               echo \"1 failed, 3 passed in 0.$$$$s\"; exit 1\n";
    let bench = repository(
        script(&["greet.sh"], [answer("Say hi", FIX)]),
        &[("greet.sh", GREET), ("Makefile", red)],
    );
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(3), "{report}");
    // The picker and the writer.
    assert_eq!(bench.server.request_count(), 2);
    assert_eq!(report["pull_request"]["draft"], true);
    assert_eq!(
        report["verification"]["after"]["failing"],
        json!(["tests/test_old.py::test_old"])
    );
    assert_eq!(report["verification"]["after"]["failures"], json!(null));
    let shown = pull(&bench, 1);
    let body = shown["pull_request"]["body"].as_str().unwrap();
    for text in [
        "They failed in the same way before it.",
        "- `tests/test_old.py::test_old` (failed before, too)",
    ] {
        assert!(body.contains(text), "{text}: {body}");
    }
    assert!(!body.contains("assert 1 == 2"), "{body}");

    // The instruction is about that test: a second try is worth its price.
    let bench = repository(
        script(
            &["greet.sh"],
            [
                answer("Say hi", FIX),
                Turn::text("There is nothing to correct."),
            ],
        ),
        &[("greet.sh", GREET), ("Makefile", red)],
    );
    let (report, code) = dev(&bench, &["make test_old pass"]);
    assert_eq!(code, Some(3), "{report}");
    assert_eq!(bench.server.request_count(), 3);
    assert!(last_message(&bench).contains("The same tests failed before the change."));
}

#[test]
fn only_the_corrected_blocks_come_back_and_the_rest_of_the_change_stays() {
    let both = format!("{HO}===FILE: why.txt===\nbecause\n===END===\n");
    let bench = talkative([
        answer("Say ho and tell why", &both),
        answer("Say hi and tell why", HI_AFTER_HO),
    ]);
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(report["pull_request"]["title"], "Say hi and tell why");
    let branch = report["branch"].as_str().unwrap();
    let show = |path: &str| git(&bench.work(), &["show", &format!("{branch}:{path}")]);
    assert_eq!(show("greet.sh"), GREET.replace("hello", "hi"));
    assert_eq!(show("why.txt"), "because\n");
    let message = last_message(&bench);
    for text in [
        "### greets",
        "# got ho world",
        "before the change: 1 of 1 failed",
    ] {
        assert!(message.contains(text), "{text}: {message}");
    }
}

#[test]
fn a_correction_that_does_not_fit_the_changed_files_goes_back_once_more() {
    let bench = talkative([
        answer("Say ho", HO),
        // Meant for the files as they were.
        answer("Say hi", FIX),
        answer("Say hi", HI_AFTER_HO),
    ]);
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    let message = last_message(&bench);
    assert!(
        message.contains("as your change left them") && message.contains("greeting=ho"),
        "{message}"
    );
}

#[test]
fn repairs_end_when_the_model_has_none_or_one_has_no_effect() {
    let no_block = Turn::text("The change is right, the test is not.");
    let same = answer("Say ho", &HI_AFTER_HO.replace("greeting=hi", "greeting=ho"));
    let comment = answer(
        "Say ho",
        "===FILE: greet.sh===\n<<<SEARCH\ngreeting=ho\n>>>REPLACE\n# loud\ngreeting=ho\n===END===\n",
    );
    for (repair, text) in [
        (no_block, "the model leaves the change as it is"),
        (same, "the model leaves the change as it is"),
        (comment, "the repair did not change what fails"),
    ] {
        let bench = talkative([answer("Say ho", HO), repair]);
        // With `auto` the agent would be asked where a repair has no effect.
        let (report, code) = dev(&bench, &["make it say hi", "--engine", "generate"]);
        assert_eq!(code, Some(3), "{report}");
        assert_eq!(bench.server.request_count(), 3, "{text}");
        let id = report["task_id"].as_str().unwrap();
        let output = bench.run(&["task", "output", id]).stdout;
        assert!(output.contains(text), "{text}: {output}");
    }
}
