//! How many tests passed and failed, read from what test programs print.

use std::sync::LazyLock;

use regex::Regex;

/// Passed and failed, where the output tells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Counts {
    /// Tests that passed.
    pub passed: u64,
    /// Tests that failed.
    pub failed: u64,
}

static NUMBERED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(\d+)\s+(passed|passing|failed|failing|failures?|errors?)\b").ok()
});
static UNITTEST: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^Ran (\d+) tests? in ").ok());
static TAP: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^# (pass|fail) (\d+)").ok());

/// Reads the counts. Each kind of program has its own lines; sums of several are added up.
pub(crate) fn counts(output: &str) -> Option<Counts> {
    cargo(output)
        .or_else(|| node(output))
        .or_else(|| go(output))
        .or_else(|| unittest(output))
        .or_else(|| summary_line(output))
}

/// `test result: ok. 12 passed; 0 failed; …`, once for each test program.
fn cargo(output: &str) -> Option<Counts> {
    sum(output.lines().filter(|line| line.contains("test result: ")))
}

/// The last line that looks like a summary: `3 failed, 12 passed in 0.1s`, `Tests: 1 failed, 4 passed`.
fn summary_line(output: &str) -> Option<Counts> {
    let line = output.lines().rev().find(|line| {
        let lower = line.to_ascii_lowercase();
        numbers(line).is_some()
            && !lower.starts_with("test suites:")
            && !lower.starts_with("test files")
    })?;
    // Some programs give passed and failed a line each.
    let mut all = numbers(line)?;
    let lines: Vec<&str> = output.lines().collect();
    let place = lines.iter().rposition(|other| *other == line)?;
    if all.passed == 0 || all.failed == 0 {
        for near in lines[place.saturating_sub(2)..place].iter().rev() {
            match numbers(near) {
                Some(more) if (more.passed == 0) != (all.passed == 0) => {
                    all.passed = all.passed.saturating_add(more.passed);
                    all.failed = all.failed.saturating_add(more.failed);
                }
                _ => break,
            }
        }
    }
    Some(all)
}

/// `# pass 3` and `# fail 0` of node's own runner and other TAP programs.
fn node(output: &str) -> Option<Counts> {
    let mut found = None;
    for line in output.lines() {
        let line = line.trim_start_matches(['ℹ', ' ']);
        let line = if line.starts_with("pass ") || line.starts_with("fail ") {
            format!("# {line}")
        } else {
            line.to_owned()
        };
        let Some(captures) = TAP.as_ref()?.captures(&line) else {
            continue;
        };
        let number: u64 = captures[2].parse().ok()?;
        let counts: &mut Counts = found.get_or_insert_with(Counts::default);
        match &captures[1] {
            "pass" => counts.passed = counts.passed.saturating_add(number),
            _ => counts.failed = counts.failed.saturating_add(number),
        }
    }
    found
}

/// Packages, since go counts no tests unless asked to.
fn go(output: &str) -> Option<Counts> {
    let starts = |word: &str| output.lines().filter(|line| line.starts_with(word)).count() as u64;
    let (passed, failed) = (starts("ok  \t"), starts("FAIL\t"));
    (passed + failed > 0).then_some(Counts { passed, failed })
}

fn unittest(output: &str) -> Option<Counts> {
    let ran = output
        .lines()
        .rev()
        .find_map(|line| UNITTEST.as_ref()?.captures(line)?[1].parse::<u64>().ok())?;
    let failed: u64 = output
        .lines()
        .rev()
        .find(|line| line.starts_with("FAILED ("))
        .map_or(0, |line| {
            line.split(|c: char| !c.is_ascii_digit())
                .filter_map(|digits| digits.parse::<u64>().ok())
                .fold(0, u64::saturating_add)
        });
    Some(Counts {
        passed: ran.saturating_sub(failed),
        failed,
    })
}

fn sum<'a>(lines: impl Iterator<Item = &'a str>) -> Option<Counts> {
    lines.filter_map(numbers).reduce(|a, b| Counts {
        passed: a.passed.saturating_add(b.passed),
        failed: a.failed.saturating_add(b.failed),
    })
}

fn numbers(line: &str) -> Option<Counts> {
    let mut found = None;
    for captures in NUMBERED.as_ref()?.captures_iter(line) {
        let number: u64 = captures[1].parse().ok()?;
        let counts: &mut Counts = found.get_or_insert_with(Counts::default);
        if captures[2].to_ascii_lowercase().starts_with("pass") {
            counts.passed = counts.passed.saturating_add(number);
        } else {
            counts.failed = counts.failed.saturating_add(number);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summaries_of_common_programs_are_read() {
        for (output, passed, failed) in [
            (
                "test result: ok. 12 passed; 0 failed; 1 ignored\n…\ntest result: FAILED. 1 passed; 2 failed; 0 ignored\n",
                13,
                2,
            ),
            ("=== 3 failed, 12 passed, 1 warning in 0.12s ===\n", 12, 3),
            ("12 passed in 0.12s\n", 12, 0),
            (
                "Test Suites: 1 failed, 1 total\nTests:       1 failed, 4 passed, 5 total\nTime: 1 s\n",
                4,
                1,
            ),
            ("  5 passing (3ms)\n  1 failing\n", 5, 1),
            ("# tests 4\n# pass 3\n# fail 1\n", 3, 1),
            ("ℹ tests 4\nℹ pass 4\nℹ fail 0\n", 4, 0),
            (
                "ok  \texample.com/a\t0.1s\nFAIL\texample.com/b\t0.1s\n",
                1,
                1,
            ),
            (
                "Ran 7 tests in 0.1s\n\nFAILED (failures=2, errors=1)\n",
                4,
                3,
            ),
            ("Ran 7 tests in 0.1s\n\nOK\n", 7, 0),
        ] {
            assert_eq!(counts(output), Some(Counts { passed, failed }), "{output}");
        }
        assert_eq!(counts("all is well\n"), None);
    }

    #[test]
    fn counts_past_all_bounds_do_not_become_small() {
        let most = u64::MAX;
        for output in [
            format!("{most} failed, 1 failed, 3 passed\n"),
            format!("test result: 0 passed; {most} failed\ntest result: 3 passed; 1 failed\n"),
            format!("# pass 3\n# fail {most}\n# fail 1\n"),
            format!("Ran 7 tests in 0.1s\n\nFAILED (failures={most}, errors=1)\n"),
        ] {
            assert_eq!(
                counts(&output).map(|found| found.failed),
                Some(most),
                "{output}"
            );
        }
    }
}
