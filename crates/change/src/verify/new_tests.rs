//! What the tests of a change say of it: run without the rest of the change, they should fail.

use serde::{Deserialize, Serialize};

use super::{FailureKind, TestFailure, TestRun, failing::failing};

/// What tests that are part of a change prove.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NewTestsVerdict {
    /// Tests fail without the change and pass with it.
    Proved,
    /// The tests of the change pass without the rest of it, too.
    PassWithout,
    /// There are more tests than before, in files that hold code, too: they cannot be run without
    /// it.
    InSource,
    /// The change has no test, and none that failed before passes now.
    NoTest,
    /// They were not run without the change.
    NotRun,
}

/// The tests of a change on the code without it. It is published: it has no output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewTests {
    pub verdict: NewTestsVerdict,
    /// Files of tests that the change adds or changes.
    #[serde(default)]
    pub files: Vec<String>,
    /// How many tests fail without the change and pass with it, where the output tells; how many
    /// more there are, of those in source files.
    #[serde(default)]
    pub count: usize,
    /// Those of them that can be named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// How the run without the change ended, in a few words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without: Option<String>,
}

impl NewTests {
    /// Compares a run of the tests of the change on the old code with the run of all of it.
    pub fn judge(files: Vec<String>, without: &TestRun, after: &TestRun) -> Self {
        let proving = proving(without, after);
        let is_proof = !proving.is_empty() || (after.passed() && !without.passed());
        let verdict = if without.exit_code.is_none() || without.was_not_run() {
            NewTestsVerdict::NotRun
        } else if is_proof {
            NewTestsVerdict::Proved
        } else {
            NewTestsVerdict::PassWithout
        };
        let is_built = !without
            .failures
            .iter()
            .any(|one| one.kind == FailureKind::Build);
        let summary = if is_built {
            without.summary()
        } else {
            "they do not compile without it".to_owned()
        };
        Self {
            verdict,
            files,
            count: proving.len(),
            names: failing(proving),
            without: Some(summary),
        }
    }

    /// A change without tests: those that were there may fail before and pass now.
    pub fn of_existing(before: &TestRun, after: &TestRun) -> Self {
        let proving = proving(before, after);
        let is_proof = !proving.is_empty() || (after.passed() && !before.passed());
        let (verdict, count) = match more_tests(before, after) {
            _ if is_proof => (NewTestsVerdict::Proved, proving.len()),
            0 => (NewTestsVerdict::NoTest, 0),
            more => (NewTestsVerdict::InSource, more),
        };
        Self {
            verdict,
            files: Vec::new(),
            count,
            names: failing(proving),
            without: None,
        }
    }

    /// Tests that nobody ran without the change, for this reason.
    pub fn not_run(files: Vec<String>, reason: String) -> Self {
        Self {
            verdict: NewTestsVerdict::NotRun,
            files,
            count: 0,
            names: Vec::new(),
            without: Some(reason),
        }
    }

    /// What reports and pull requests say. Names no test output.
    pub fn sentence(&self) -> String {
        let what = match (self.files.is_empty(), self.count) {
            (false, 0) => "The tests of this change fail".to_owned(),
            (true, 0) => "The tests fail".to_owned(),
            (_, 1) => "1 test fails".to_owned(),
            (_, count) => format!("{count} tests fail"),
        };
        let pass = if self.count == 1 { "passes" } else { "pass" };
        match (self.verdict, self.without.as_deref()) {
            (NewTestsVerdict::Proved, Some(without)) if self.count == 0 => {
                format!("{what} without it ({without}) and {pass} with it.")
            }
            (NewTestsVerdict::Proved, _) => {
                format!("{what} without this change and {pass} with it.")
            }
            (NewTestsVerdict::PassWithout, _) => {
                "The tests of this change pass without it, too: they do not prove it.".to_owned()
            }
            (NewTestsVerdict::InSource, _) => {
                let tests = if self.count == 1 { "test" } else { "tests" };
                format!(
                    "This change adds {} {tests} in source files, which cannot be run without it.",
                    self.count
                )
            }
            (NewTestsVerdict::NoTest, _) => {
                "This change has no test: no test was added or changed, and none that failed \
                 before passes now."
                    .to_owned()
            }
            (NewTestsVerdict::NotRun, reason) => {
                let reason = reason.unwrap_or("no reason is known");
                format!("The tests of this change were not run without it: {reason}.")
            }
        }
    }
}

/// How many tests one run has more than another, where both count them.
fn more_tests(before: &TestRun, after: &TestRun) -> usize {
    let all = |run: &TestRun| {
        let counts = run.counts?;
        Some(counts.passed.saturating_add(counts.failed))
    };
    let more = all(before).zip(all(after));
    let more = more.map_or(0, |(before, after)| after.saturating_sub(before));
    usize::try_from(more).unwrap_or(usize::MAX)
}

/// Tests that fail in one run and do not in the other.
fn proving<'a>(without: &'a TestRun, after: &'a TestRun) -> Vec<&'a TestFailure> {
    if without.passed() {
        return Vec::new();
    }
    // A run that ended badly without naming anything may not have come to them.
    if !after.passed() && after.failures.is_empty() {
        return Vec::new();
    }
    without
        .failures_not_in(after)
        .filter(|failure| failure.kind == FailureKind::Test)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{super::Counts, *};

    fn run(exit_code: i32, failing: &[&str]) -> TestRun {
        TestRun {
            exit_code: Some(exit_code),
            failures: failing
                .iter()
                .map(|name| TestFailure {
                    name: (*name).to_owned(),
                    kind: FailureKind::Test,
                    message: String::new(),
                })
                .collect(),
            ..TestRun::default()
        }
    }

    #[test]
    fn tests_that_fail_without_the_change_prove_it_and_others_do_not() {
        let files = || vec!["tests/a.py".to_owned()];
        let judged = |without: &TestRun, after: &TestRun| NewTests::judge(files(), without, after);
        let proof = judged(&run(1, &["a", "b"]), &run(0, &[]));
        assert_eq!((proof.verdict, proof.count), (NewTestsVerdict::Proved, 2));
        assert_eq!(proof.names, ["a", "b"]);
        assert_eq!(
            proof.sentence(),
            "2 tests fail without this change and pass with it."
        );
        let unnamed = judged(&run(1, &[]), &run(0, &[]));
        assert_eq!(unnamed.verdict, NewTestsVerdict::Proved);
        let green = judged(&run(0, &[]), &run(0, &[]));
        assert_eq!(green.verdict, NewTestsVerdict::PassWithout);
        // Red for another reason, and no less red with the change.
        let red = judged(&run(1, &["old"]), &run(1, &["old"]));
        assert_eq!(red.verdict, NewTestsVerdict::PassWithout);
        let one = judged(&run(1, &["old", "new"]), &run(1, &["old"]));
        assert_eq!(one.names, ["new"]);
        let timed_out = TestRun {
            problem: Some("did not end within 1 s and was stopped".to_owned()),
            ..TestRun::default()
        };
        let timed_out = judged(&timed_out, &run(0, &[]));
        assert_eq!(timed_out.verdict, NewTestsVerdict::NotRun);
    }

    #[test]
    fn a_change_without_tests_may_still_turn_one_green() {
        let fixed = NewTests::of_existing(&run(1, &["a"]), &run(0, &[]));
        assert_eq!(fixed.verdict, NewTestsVerdict::Proved);
        assert_eq!(
            fixed.sentence(),
            "1 test fails without this change and passes with it."
        );
        let nothing = NewTests::of_existing(&run(0, &[]), &run(0, &[]));
        assert_eq!(nothing.verdict, NewTestsVerdict::NoTest);
        let counted = |passed| TestRun {
            counts: Some(Counts { passed, failed: 0 }),
            ..run(0, &[])
        };
        let within = NewTests::of_existing(&counted(3), &counted(5));
        assert_eq!(
            within.sentence(),
            "This change adds 2 tests in source files, which cannot be run without it."
        );
    }
}
