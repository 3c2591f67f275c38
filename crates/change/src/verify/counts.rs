//! How many tests passed and failed, read from what test programs print.

use std::sync::LazyLock;

use regex::Regex;

use super::failures::{GoEvent, attribute};

/// Passed and failed, where the output tells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Counts {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed.
    pub failed: u64,
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.passed = self.passed.saturating_add(other.passed);
        self.failed = self.failed.saturating_add(other.failed);
    }
}

static NUMBERED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(\d+)\s+(?:tests? |examples? )?(passed|passing|failed|failing|failures?|errors?|timed out)\b").ok()
});

/// A sum, once anything was added.
#[derive(Debug, Default)]
struct Sum(Option<Counts>);

impl Sum {
    fn add(&mut self, counts: Option<Counts>) {
        if let Some(counts) = counts {
            self.0.get_or_insert_default().add(counts);
        }
    }
}

/// Counts as the lines come. Each kind of program has its own lines; those of several runs of one
/// program are added up. Where an output has the lines of several programs, the first in the order
/// of `finish` is believed: programs that quote others come first, guesses last.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// It quotes the summaries of the programs it runs.
    nextest: Sum,
    /// `test result: ok. 12 passed; 0 failed; …`, once for each test program.
    cargo: Sum,
    /// `# pass 3`, `ℹ fail 0`.
    tap: Sum,
    /// `Tests:  1 failed, 4 passed, 5 total` of jest, `Tests  1 failed | 2 passed (3)` of vitest.
    jest: Sum,
    /// `=== 3 failed, 12 passed in 0.12s ===`
    pytest: Sum,
    /// Top-level tests of `-v` and `-json`.
    go_tests: Sum,
    go_packages: Sum,
    unittest: Unittest,
    /// `12 examples, 2 failures, 1 pending`
    rspec: Sum,
    /// `OK (12 tests, 30 assertions)`, `Tests: 12, Assertions: 30, Failures: 2.`
    phpunit: Sum,
    /// `Tests run: 12, Failures: 1, Errors: 0, Skipped: 0`, `12 tests completed, 2 failed` of
    /// gradle
    java: Sum,
    /// `90% tests passed, 1 tests failed out of 10`
    ctest: Sum,
    junit: Sum,
    /// `ok 1` and `not ok 2` at the left edge, if nobody counts them.
    tap_lines: Sum,
    other: LastSummary,
}

#[derive(Debug, Default)]
struct Unittest {
    sum: Sum,
    /// Tests of the last run that no result has followed.
    ran: Option<u64>,
}

impl Unittest {
    fn line(&mut self, line: &str) {
        if let Some(rest) = line.strip_prefix("Ran ") {
            let (number, rest) = rest.split_once(' ').unwrap_or_default();
            if rest.starts_with("test") && rest.contains(" in ") {
                self.ran = number.parse().ok();
            }
            return;
        }
        let failed = if line == "OK" || line.starts_with("OK (") {
            0
        } else if let Some(rest) = line.strip_prefix("FAILED (") {
            ["failures=", "errors="]
                .iter()
                .filter_map(|word| number_after(rest, word))
                .fold(0, u64::saturating_add)
        } else {
            return;
        };
        let ran = self.ran.take();
        self.sum.add(ran.map(|ran| out_of(ran, failed)));
    }
}

/// The last line that looks like a summary: `3 failed, 12 passed`. Some programs give passed and
/// failed a line each.
#[derive(Debug, Default)]
struct LastSummary {
    last: Option<Counts>,
    /// What the two lines before said.
    before: [Option<Counts>; 2],
}

impl LastSummary {
    fn line(&mut self, line: &str) {
        let lower = line.trim_start();
        let is_files = starts_with(lower, "test suites:") || starts_with(lower, "test files");
        let own = if is_files { None } else { numbers(line) };
        if let Some(mut all) = own {
            for near in self.before {
                match near {
                    Some(more)
                        if (all.passed == 0 || all.failed == 0)
                            && (more.passed == 0) != (all.passed == 0) =>
                    {
                        all.add(more);
                    }
                    _ => break,
                }
            }
            self.last = Some(all);
        }
        self.before = [own, self.before[0]];
    }
}

impl Tally {
    /// Every reader sees every line, since what kind of program it is turns out only at the end.
    pub(crate) fn line(&mut self, line: &str) {
        let text = line.trim();
        if text.contains("test result: ") {
            self.cargo.add(numbers(text));
        }
        if text.starts_with("Summary [") && text.contains("run: ") {
            self.nextest.add(numbers(text));
        }
        self.tap.add(tap(text));
        if let Some(rest) = text
            .strip_prefix("Tests:")
            .or_else(|| text.strip_prefix("Tests  "))
        {
            self.jest.add(numbers(rest));
        }
        if is_pytest(text) {
            self.pytest.add(numbers(text));
        }
        self.go(line);
        self.unittest.line(text);
        self.rspec.add(rspec(text));
        self.phpunit.add(phpunit(text));
        self.java.add(java(text));
        if let Some((_, rest)) = text.split_once("% tests passed, ") {
            self.ctest.add(ctest(rest));
        }
        if text.contains("<testsuite ") {
            self.junit.add(junit(text));
        }
        if let Some(rest) = line.strip_prefix("not ok ") {
            let is_expected = rest.to_ascii_lowercase().contains("# todo");
            self.tap_lines.add(Some(verdict(is_expected)));
        } else if line.starts_with("ok ") && !line.starts_with("ok  \t") {
            self.tap_lines.add(Some(verdict(true)));
        }
        self.other.line(line);
    }

    /// Tests where they are named, else packages.
    fn go(&mut self, line: &str) {
        if let Some(event) = GoEvent::read(line) {
            let is_top = event
                .test
                .as_deref()
                .is_some_and(|test| !test.contains('/'));
            match event.action.as_str() {
                "pass" | "fail" if is_top => {
                    self.go_tests.add(Some(verdict(event.action == "pass")));
                }
                _ => {}
            }
        } else if line.starts_with("--- PASS: ") {
            self.go_tests.add(Some(verdict(true)));
        } else if line.starts_with("--- FAIL: ") {
            // Without `-v` only these are printed: how many passed is not known.
            self.go_tests.add(Some(verdict(false)));
        } else if line.starts_with("ok  \t") {
            self.go_packages.add(Some(verdict(true)));
        } else if line.starts_with("FAIL\t") {
            self.go_packages.add(Some(verdict(false)));
        }
    }

    /// `None` if no line looked like a result.
    pub(crate) fn finish(self) -> Option<Counts> {
        let go = match self.go_tests.0 {
            Some(tests) if tests.passed > 0 || self.go_packages.0.is_none() => Some(tests),
            _ => self.go_packages.0,
        };
        // What `ok` lines say is only TAP's if there is nobody else to say it.
        self.nextest
            .0
            .or(self.cargo.0)
            .or(self.tap.0)
            .or(self.jest.0)
            .or(self.pytest.0)
            .or(go)
            .or(self.unittest.sum.0)
            .or(self.rspec.0)
            .or(self.phpunit.0)
            .or(self.java.0)
            .or(self.ctest.0)
            .or(self.junit.0)
            .or(self.other.last)
            .or(self.tap_lines.0)
    }
}

/// Reads the counts of a text.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn counts(output: &str) -> Option<Counts> {
    let mut tally = Tally::default();
    output.lines().for_each(|line| tally.line(line));
    tally.finish()
}

fn verdict(is_passed: bool) -> Counts {
    Counts {
        passed: u64::from(is_passed),
        failed: u64::from(!is_passed),
    }
}

fn out_of(all: u64, failed: u64) -> Counts {
    Counts {
        passed: all.saturating_sub(failed),
        failed,
    }
}

fn starts_with(text: &str, prefix: &str) -> bool {
    text.get(..prefix.len())
        .is_some_and(|head| head.eq_ignore_ascii_case(prefix))
}

/// `# pass  3` of tape, `# pass 3` and `ℹ pass 3` of node.
fn tap(line: &str) -> Option<Counts> {
    let rest = line
        .strip_prefix("# ")
        .or_else(|| line.strip_prefix("ℹ "))?;
    let (word, number) = rest.split_once(' ')?;
    let number: u64 = number.trim().parse().ok()?;
    match word {
        "pass" => Some(Counts {
            passed: number,
            failed: 0,
        }),
        // A test that was cancelled did not pass.
        "fail" | "cancelled" => Some(Counts {
            passed: 0,
            failed: number,
        }),
        _ => None,
    }
}

/// `=== 3 failed, 12 passed in 0.12s ===`, also without the frame and in minutes.
fn is_pytest(line: &str) -> bool {
    let line = line.trim_matches('=').trim();
    let Some((what, time)) = line.rsplit_once(" in ") else {
        return false;
    };
    let time = time.split(' ').next().unwrap_or_default();
    let is_time = time
        .strip_suffix('s')
        .is_some_and(|seconds| seconds.parse::<f64>().is_ok());
    let is_count = |part: &str| part.trim_start().starts_with(|c: char| c.is_ascii_digit());
    is_time && what.split(',').all(is_count)
}

fn rspec(line: &str) -> Option<Counts> {
    let (examples, rest) = line.split_once(" example")?;
    let examples: u64 = examples.parse().ok()?;
    let count = |word: &str| {
        let (before, _) = rest.split_once(word)?;
        before.rsplit(' ').next()?.parse::<u64>().ok()
    };
    let failed = count(" failure")?;
    let pending = count(" pending").unwrap_or(0);
    Some(out_of(examples.saturating_sub(pending), failed))
}

fn phpunit(line: &str) -> Option<Counts> {
    if let Some(rest) = line.strip_prefix("OK (") {
        let (tests, rest) = rest.split_once(" test")?;
        return rest
            .contains("assertion")
            .then(|| Some(out_of(tests.parse().ok()?, 0)))?;
    }
    let rest = line.strip_prefix("Tests: ")?;
    let (tests, rest) = rest.split_once(", Assertions: ")?;
    let number = |word: &str| number_after(rest, word).unwrap_or(0);
    let failed = number("Failures: ").saturating_add(number("Errors: "));
    let left_out = number("Skipped: ").saturating_add(number("Incomplete: "));
    let tests: u64 = tests.parse().ok()?;
    Some(out_of(tests.saturating_sub(left_out), failed))
}

fn java(line: &str) -> Option<Counts> {
    if let Some((tests, rest)) = line.split_once(" tests completed, ") {
        let failed = rest
            .strip_suffix(" failed")
            .or_else(|| rest.split_once(" failed").map(|(n, _)| n))?;
        return Some(out_of(tests.parse().ok()?, failed.parse().ok()?));
    }
    let (_, rest) = line.split_once("Tests run: ")?;
    // Those of one class; they are part of the sum.
    if rest.contains("Time elapsed") || rest.contains(" in ") {
        return None;
    }
    let number = |word: &str| number_after(rest, word).unwrap_or(0);
    let failed = number("Failures: ").saturating_add(number("Errors: "));
    let tests: u64 = digits(rest).parse().ok()?;
    Some(out_of(tests.saturating_sub(number("Skipped: ")), failed))
}

/// `1 tests failed out of 10`
fn ctest(rest: &str) -> Option<Counts> {
    let (_, all) = rest.split_once(" out of ")?;
    Some(out_of(
        digits(all).parse().ok()?,
        digits(rest).parse().ok()?,
    ))
}

fn junit(line: &str) -> Option<Counts> {
    let mut sum = Sum::default();
    for tag in line.split("<testsuite ").skip(1) {
        let tag = format!(" {}", tag.split('>').next().unwrap_or(tag));
        let number = |name: &str| attribute(&tag, name).and_then(|text| text.parse::<u64>().ok());
        let Some(tests) = number("tests") else {
            continue;
        };
        let failed = number("failures")
            .unwrap_or(0)
            .saturating_add(number("errors").unwrap_or(0));
        let skipped = number("skipped").unwrap_or(0);
        sum.add(Some(out_of(tests.saturating_sub(skipped), failed)));
    }
    sum.0
}

fn digits(text: &str) -> &str {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    &text[..end]
}

fn number_after(text: &str, word: &str) -> Option<u64> {
    let (_, rest) = text.split_once(word)?;
    digits(rest).parse().ok()
}

fn numbers(line: &str) -> Option<Counts> {
    // Most lines have no such word, and the pattern is dear.
    let words = [
        "pass",
        "fail",
        "error",
        "Pass",
        "Fail",
        "Error",
        "PASS",
        "FAIL",
        "ERROR",
        "timed out",
    ];
    if !words.iter().any(|word| line.contains(word)) {
        return None;
    }
    let mut found = None;
    for captures in NUMBERED.as_ref()?.captures_iter(line) {
        let number: u64 = captures[1].parse().ok()?;
        let counts: &mut Counts = found.get_or_insert_default();
        if captures[2].to_ascii_lowercase().starts_with("pass") {
            counts.passed = counts.passed.saturating_add(number);
        } else {
            counts.failed = counts.failed.saturating_add(number);
        }
    }
    found
}

#[cfg(test)]
mod tests;
