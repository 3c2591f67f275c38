use std::fmt::Write as _;

use proptest::prelude::*;
use rstest::rstest;

use super::*;
use crate::verify::TestRun;

/// What a runner printed. In a recording, `@2 16` and the lines up to `@` stand for those lines
/// with each number in place of `{n}`.
fn played(recording: &str) -> String {
    let mut out = String::new();
    let mut lines = recording.lines();
    while let Some(line) = lines.next() {
        let range = line
            .strip_prefix('@')
            .and_then(|range| range.split_once(' '));
        let range = range.and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
        let Some((from, to)) = range else {
            writeln!(out, "{line}").unwrap();
            continue;
        };
        let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "@").collect();
        for n in from..=to {
            let n: u32 = n;
            for line in &body {
                writeln!(out, "{}", line.replace("{n}", &n.to_string())).unwrap();
            }
        }
    }
    out
}

fn read(output: &str) -> ReadOutput {
    read_output(output.as_bytes(), &[]).unwrap()
}

fn failed(read: ReadOutput) -> TestRun {
    TestRun {
        exit_code: Some(1),
        counts: read.counts,
        failures: read.failures,
        head: read.head,
        tail: read.tail,
        ..TestRun::default()
    }
}

fn names(read: &ReadOutput) -> Vec<&str> {
    let names = read.failures.iter().map(|failure| failure.name.as_str());
    names.collect()
}

const CARGO: &str = include_str!("recordings/cargo.txt");
const GO: &str = include_str!("recordings/go.txt");
const GO_V: &str = include_str!("recordings/go-v.txt");
const GO_JSON: &str = include_str!("recordings/go-json.txt");
const JEST: &str = include_str!("recordings/jest.txt");
const MOCHA: &str = include_str!("recordings/mocha.txt");
const NODE_SPEC: &str = include_str!("recordings/node-spec.txt");
const NODE_TAP: &str = include_str!("recordings/node-tap.txt");
const PYTEST: &str = include_str!("recordings/pytest.txt");
const TAPE: &str = include_str!("recordings/tape.txt");
const UNITTEST: &str = include_str!("recordings/unittest.txt");
const VITEST: &str = include_str!("recordings/vitest.txt");

/// Outputs of 1,000 tests, of which 17, 333, 666 and 990 fail.
#[rstest]
#[case(CARGO, "tests::case_{n}", "right: {w}")]
#[case(GO, "TestCase{n}", "want {w}")]
#[case(GO_V, "TestCase{n}", "want {w}")]
#[case(GO_JSON, "TestCase{n}", "want {w}")]
#[case(JEST, "numbers › case {n} adds", "Expected: {w}")]
#[case(MOCHA, "numbers › case {n} adds", "+{w}")]
#[case(NODE_SPEC, "case {n} adds numbers", "!== {w}")]
#[case(NODE_TAP, "case {n} adds numbers", "!== {w}")]
#[case(PYTEST, "test_n.py::test_case_{n}", "== {w}")]
#[case(
    TAPE,
    "case {n} adds numbers › should be strictly equal",
    "expected: {w}"
)]
#[case(UNITTEST, "test_case_{n} (ut.Numbers.test_case_{n})", "!= {w}")]
#[case(VITEST, "v.test.mjs › numbers › case {n} adds", "to be {w}")]
fn every_failure_of_a_thousand_tests_is_reported_with_its_message(
    #[case] recording: &str,
    #[case] name: &str,
    #[case] message: &str,
) {
    let read = read(&played(recording));
    let numbers = [17, 333, 666, 990];
    let expected = numbers.map(|n: u32| name.replace("{n}", &n.to_string()));
    assert_eq!(names(&read), expected);
    let counts = read.counts.unwrap();
    assert_eq!(counts.failed, if recording == GO { 1 } else { 4 });
    assert!(recording == GO || counts.passed == 996, "{counts:?}");
    for (n, failure) in numbers.iter().zip(&read.failures) {
        let message = message.replace("{w}", &(n + 5).to_string());
        assert!(failure.message.contains(&message), "{failure:?}");
    }
    let report = report(&failed(read), &TestRun::default());
    assert!(report.len() <= REPORT_LIMIT, "{}", report.len());
    for (n, name) in numbers.iter().zip(expected) {
        let message = message.replace("{w}", &(n + 5).to_string());
        assert!(
            report.contains(&name) && report.contains(&message),
            "{name}: {report}"
        );
    }
}

#[test]
fn suites_of_node_are_named_and_not_told_twice() {
    for (recording, name) in [
        (
            include_str!("recordings/node-suite-tap.txt"),
            "suite one › breaks",
        ),
        (include_str!("recordings/node-suite-spec.txt"), "breaks"),
    ] {
        let read = read(recording);
        assert_eq!(names(&read), [name]);
        assert_eq!(
            read.counts,
            Some(Counts {
                passed: 1,
                failed: 1
            })
        );
        assert!(read.failures[0].message.contains("strictly deep-equal"));
    }
}

#[rstest]
#[case(
    "    Starting 3 tests across 1 binary\n        PASS [   0.005s] calc tests::a\n        FAIL [   0.006s] calc tests::b\n  \
     stdout ───\n\n    running 1 test\n    test tests::b ... FAILED\n\n  stderr ───\n\n    thread 'tests::b' panicked at src/lib.rs:9:9:\n    \
     one is not two\n\n        PASS [   0.005s] calc tests::c\n────────────\n     Summary [   0.010s] 3 tests run: 2 passed, 1 failed, 0 skipped\n        \
     FAIL [   0.006s] calc tests::b\nerror: test run failed\n",
    "tests::b",
    "one is not two",
    2
)]
#[case(
    "Failures:\n\n  1) Calc adds numbers\n     Failure/Error: expect(1).to eq(2)\n\n       expected: 2\n\nFinished in 0.1 seconds\n\
     5 examples, 1 failure, 1 pending\n\nFailed examples:\n\nrspec ./spec/calc_spec.rb:4 # Calc adds numbers\n",
    "Calc adds numbers",
    "expected: 2",
    3
)]
#[case(
    "There was 1 failure:\n\n1) CalcTest::testAdds\nFailed asserting that 1 matches expected 2.\n\n/app/CalcTest.php:9\n\nFAILURES!\n\
     Tests: 5, Assertions: 5, Failures: 1.\n",
    "CalcTest::testAdds",
    "matches expected 2",
    4
)]
#[case(
    "[ERROR] Tests run: 3, Failures: 1, Errors: 0, Skipped: 0, Time elapsed: 0.05 s <<< FAILURE! - in a.CalcTest\n\
     [ERROR] a.CalcTest.adds -- Time elapsed: 0.01 s <<< FAILURE!\njava.lang.AssertionError: expected:<2> but was:<1>\n\
     \tat a.CalcTest.adds(CalcTest.java:12)\n\n[ERROR] Failures: \n[ERROR]   CalcTest.adds:12 expected:<2> but was:<1>\n[INFO] \n\
     [ERROR] Tests run: 3, Failures: 1, Errors: 0, Skipped: 0\n",
    "a.CalcTest.adds",
    "but was:<1>",
    2
)]
#[case(
    "CalcTest > adds() FAILED\n    java.lang.AssertionError: not two\n        at CalcTest.java:12\n\n3 tests completed, 1 failed\n",
    "CalcTest › adds()",
    "not two",
    2
)]
#[case(
    "      Start 1: ok\n1/2 Test #1: ok ...........   Passed    0.01 sec\n      Start 2: adds\n2/2 Test #2: adds .........***Failed    0.01 sec\n\
     one is not two\n\n50% tests passed, 1 tests failed out of 2\n\nThe following tests FAILED:\n\t  2 - adds (Failed)\nErrors while running CTest\n",
    "adds",
    "one is not two",
    1
)]
#[case(
    "<testsuites><testsuite name=\"calc\" tests=\"2\" failures=\"1\" errors=\"0\"><testcase name=\"fine\" classname=\"Calc\"/>\
     <testcase name=\"adds\" classname=\"Calc\"><failure message=\"1 &lt; 2\">at calc.py</failure></testcase></testsuite></testsuites>\n",
    "Calc › adds",
    "1 < 2\nat calc.py",
    1
)]
fn other_runners_are_read(
    #[case] output: &str,
    #[case] name: &str,
    #[case] message: &str,
    #[case] passed: u64,
) {
    let read = read(output);
    assert_eq!(names(&read), [name]);
    let failure = &read.failures[0];
    assert!(failure.message.contains(message), "{failure:?}");
    assert_eq!(read.counts, Some(Counts { passed, failed: 1 }));
}

#[rstest]
#[case(
    "error[E0308]: mismatched types\n --> src/a.rs:3:5\n  |\n3 |     1\n\nerror: could not compile `a` (lib)\n",
    "error[E0308]: mismatched types",
    "src/a.rs:3:5"
)]
#[case(
    "# example.com/a [example.com/a.test]\n./a.go:5:2: undefined: y\nFAIL\texample.com/a [build failed]\n",
    "./a.go:5:2: undefined: y",
    ""
)]
#[case(
    "src/a.ts(3,5): error TS2322: Type 'string' is not assignable\n",
    "src/a.ts(3,5): error TS2322: Type 'string' is not assignable",
    ""
)]
#[case(
    "src/A.java:12: error: ';' expected\n    int x\n         ^\n",
    "src/A.java:12: error: ';' expected",
    "int x"
)]
fn errors_of_compilers_are_failures_that_are_no_tests(
    #[case] output: &str,
    #[case] name: &str,
    #[case] message: &str,
) {
    let read = read(output);
    assert_eq!(names(&read), [name]);
    assert_eq!(read.failures[0].kind, FailureKind::Build);
    assert!(
        read.failures[0].message.contains(message),
        "{:?}",
        read.failures
    );
}

#[test]
fn an_unknown_runner_is_quoted_around_what_it_says_of_failures() {
    let output =
        "one\ntwo\nchecking x\nERROR in x\n  because of y\n".to_owned() + &"fine\n".repeat(9);
    let read = read(&output);
    assert_eq!(names(&read), ["ERROR in x"]);
    assert_eq!(read.failures[0].kind, FailureKind::Other);
    assert!(
        read.failures[0]
            .message
            .starts_with("two\nchecking x\nERROR in x\n  because of y\n")
    );
}

#[test]
fn many_failures_are_all_named_and_new_ones_explained_first() {
    let mut output = String::new();
    for n in 0..120 {
        writeln!(
            output,
            "---- case_{n} stdout ----\n{}\n",
            format!("line of {n}\n").repeat(90)
        )
        .unwrap();
    }
    let run = failed(read(&output));
    let mut before = run.clone();
    before.failures.remove(77);
    let report = report(&run, &before);
    assert!(report.len() <= REPORT_LIMIT);
    for n in 0..120 {
        assert!(report.contains(&format!("### case_{n}")), "{n}: {report}");
    }
    let new = report.find("### case_77\n").unwrap();
    assert!(new < report.find("### case_0 (failed before").unwrap());
    assert!(
        report[new..].matches("line of 77\n").count() > 80,
        "{report}"
    );
}

#[test]
fn more_failures_than_can_be_named_are_counted() {
    let mut output = String::new();
    for n in 0..3_000 {
        writeln!(output, "test module::case_{n} ... FAILED").unwrap();
    }
    let report = report(&failed(read(&output)), &TestRun::default());
    assert!(report.len() <= REPORT_LIMIT);
    assert!(report.contains("more failures"), "{report}");
}

#[test]
fn of_many_failures_the_first_are_explained_rather_than_none() {
    let mut output = String::new();
    for n in 0..250 {
        let message = format!("one of {n} is not two of it\n").repeat(30);
        writeln!(output, "---- case_{n} stdout ----\n{message}").unwrap();
    }
    let report = report(&failed(read(&output)), &TestRun::default());
    assert!(report.len() <= REPORT_LIMIT);
    for n in 0..250 {
        assert!(report.contains(&format!("### case_{n}\n")), "{n}: {report}");
    }
    assert!(
        report.contains("### case_9\none of 9 is not two of it\n"),
        "{report}"
    );
}

#[test]
fn output_without_an_end_is_read_in_bounded_memory() {
    let noise = "not ok 7 - the same again and again\n  ---\n  x: 1\nFAIL\tx\n".repeat(20_000);
    let endless = "x".repeat(1 << 20);
    let text = format!("{noise}{endless}\nnot ok 8 - the last\n");
    let read = read(&text);
    let kept: usize = read
        .failures
        .iter()
        .map(|one| one.name.len() + one.message.len())
        .sum();
    assert_eq!(names(&read).last(), Some(&"the last"));
    assert!(
        kept < 200_000 && read.head.len() + read.tail.len() < 10_000,
        "{kept}"
    );
}

#[test]
fn the_directory_of_the_run_is_left_out() {
    let output = "not ok 1 - at /runs/w-1/tree-1/a.js:3 in /runs/w-1/tree-1\n";
    let read = read_output(output.as_bytes(), &["/runs/w-1/tree-1".to_owned()]).unwrap();
    assert_eq!(names(&read), ["at a.js:3 in ."]);
}

/// Lines that mean something to some reader, with parts of them.
fn line() -> impl Strategy<Value = String> {
    let known: Vec<String> = [
        CARGO, GO, GO_V, GO_JSON, JEST, MOCHA, NODE_SPEC, NODE_TAP, PYTEST, TAPE, UNITTEST, VITEST,
    ]
    .iter()
    .flat_map(|recording| recording.lines())
    .chain([
        "Failures:",
        "There was 1 failure:",
        "1) x",
        "<testcase name='",
        "<failure message=\"",
        "# ",
        "✖ failing tests:",
    ])
    .map(str::to_owned)
    .collect();
    let part = (
        prop::sample::select(known.clone()),
        any::<prop::sample::Index>(),
    );
    prop_oneof![
        4 => prop::sample::select(known),
        2 => part.prop_map(|(line, at)| {
            let at = line.floor_char_boundary(at.index(line.len() + 1));
            line[at..].to_owned()
        }),
        1 => "\\PC{0,40}",
    ]
}

proptest! {
    #[test]
    fn any_output_is_read_and_its_report_has_its_limit(lines in prop::collection::vec(line(), 0..60)) {
        let run = failed(read(&lines.join("\n")));
        prop_assert!(report(&run, &TestRun::default()).len() <= REPORT_LIMIT);
        prop_assert!(run.failed_for_the_same_reasons(&run));
        let _ = run.mentions("src/lib.rs");
        let _ = run.is_named_in("fix it");
    }
}
