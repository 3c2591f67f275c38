//! The tests of a change, on the code without it.

use codespar_testkit::Turn;
use serde_json::{Value, json};

use crate::{
    common::Bench,
    repository::{FIX, GREET, answer, dev, dev_resume, killed_after, pull, repository, script},
};

/// Runs each file in `tests`, and prints TAP.
const MAKEFILE: &str = "test:\n\t@n=0; bad=0; for t in tests/*.sh; do n=$$((n+1)); if sh $$t; then echo \"ok $$n - $$t\"; \
                        else echo \"not ok $$n - $$t\"; bad=1; fi; done; exit $$bad\n";
const NEW_TEST: &str = "===FILE: tests/hi.sh===\n[ \"$(sh greet.sh)\" = 'hi world' ]\n===END===\n";

fn tested(answers: impl IntoIterator<Item = Turn>) -> Bench {
    repository(
        script(&["greet.sh"], answers),
        &[
            ("greet.sh", GREET),
            ("Makefile", MAKEFILE),
            ("tests/world.sh", "sh greet.sh | grep -q world\n"),
        ],
    )
}

fn body(bench: &Bench) -> String {
    let shown = pull(bench, 1);
    shown["pull_request"]["body"].as_str().unwrap().to_owned()
}

fn new_tests(report: &Value) -> &Value {
    &report["verification"]["new_tests"]
}

#[test]
fn a_new_test_that_fails_without_the_change_proves_it() {
    let bench = tested([answer("Say hi", &format!("{FIX}{NEW_TEST}"))]);
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(
        *new_tests(&report),
        json!({
            "verdict": "proved",
            "files": ["tests/hi.sh"],
            "count": 1,
            "names": ["tests/hi.sh"],
            "without": "1 of 2 failed",
        })
    );
    assert_eq!(report["risk"]["level"], "low");
    let body = body(&bench);
    let text = "1 test fails without this change and passes with it.\n\n- `tests/hi.sh`\n";
    assert!(body.contains(text), "{body}");
}

#[test]
fn a_new_test_that_passes_without_the_change_is_said_to_prove_nothing() {
    let test = "===FILE: tests/any.sh===\ntrue\n===END===\n";
    let bench = tested([answer("Say hi", &format!("{FIX}{test}"))]);
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(new_tests(&report)["verdict"], "pass_without");
    let body = body(&bench);
    assert!(
        body.contains("The tests of this change pass without it, too: they do not prove it."),
        "{body}"
    );
}

#[test]
fn a_change_without_a_test_is_said_to_have_none_and_is_riskier() {
    let bench = tested([answer("Say hi", FIX)]);
    let (report, code) = dev(&bench, &["make it say hi"]);
    assert_eq!(code, Some(0), "{report}");
    assert_eq!(new_tests(&report)["verdict"], "no_test");
    assert_eq!(report["risk"]["level"], "medium");
    let body = body(&bench);
    assert!(body.contains("This change has no test"), "{body}");
    assert!(body.contains("- no test was added or changed\n"), "{body}");
}

#[test]
fn killed_around_the_run_without_the_change_the_rest_goes_on_and_no_answer_is_paid_twice() {
    for step in ["made without", "without"] {
        let bench = tested([answer("Say hi", &format!("{FIX}{NEW_TEST}"))]);
        let id = killed_after(&bench, step, &[]);
        let (report, code) = dev_resume(&bench, &id);
        assert_eq!(code, Some(0), "{step}: {report}");
        assert_eq!(new_tests(&report)["verdict"], "proved", "{step}");
        assert_eq!(bench.server.request_count(), 2, "{step}");
    }
}
