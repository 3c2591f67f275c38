//! Whether two runs failed in the same tests, and for the same reasons.
//!
//! A further repair is asked for only if the last one changed what fails, and failures that were
//! there before the change are not held against it. Both need a comparison that ignores what
//! differs in every run.

use std::{borrow::Cow, collections::BTreeMap, sync::LazyLock};

use regex::Regex;

use super::{TestFailure, TestRun};

/// What differs between two runs of the same code.
static VARYING: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?xm)
        0x[0-9a-fA-F]+
        | \b\d+(\.\d+)?\s?(ns|µs|us|ms|s|sec|secs|seconds?|min|minutes)\b
        | duration_ms:?\s[\d.]+
        | :\d+(:\d+)?\b
        | \bline\ \d+
        | ^\s*>?\s*\d+\ ?\|
        | \b\d{4}-\d\d-\d\d[T\ ]\d\d:\d\d:\d\d\S*
        | '\ \(\d+\)\ panicked
        | \b(pid|goroutine|ThreadId)\W?\d+
        | /tmp/[^\s:'\x22)]+
        ",
    )
    .ok()
});

/// Files of these names are in many directories: the one above is part of their name.
const COMMON_NAMES: [&str; 6] = ["mod", "lib", "main", "index", "__init__", "utils"];

impl TestRun {
    /// Whether a failure of this name is in it.
    pub fn has_failure(&self, name: &str) -> bool {
        self.failures.iter().any(|failure| failure.name == name)
    }

    /// Failures that another run does not have.
    pub fn failures_not_in<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'a TestFailure> {
        let is_new = move |failure: &&TestFailure| !other.has_failure(&failure.name);
        self.failures.iter().filter(is_new)
    }

    /// Whether another run failed in the same tests, as far as one can tell.
    pub fn failed_like(&self, other: &Self) -> bool {
        if self.passed() || other.passed() || self.exit_code != other.exit_code {
            return false;
        }
        if !self.failures.is_empty() || !other.failures.is_empty() {
            return self.failures_not_in(other).next().is_none()
                && other.failures_not_in(self).next().is_none();
        }
        // Of a report, the published names alone are left.
        let (mut ours, mut theirs) = (self.failing.clone(), other.failing.clone());
        ours.sort();
        theirs.sort();
        if ours != theirs {
            return false;
        }
        match (self.counts, other.counts) {
            (Some(ours), Some(theirs)) => ours.failed == theirs.failed,
            (None, None) => true,
            _ => false,
        }
    }

    /// Whether another run failed in the same tests and says the same about them; times, addresses
    /// and line numbers aside.
    pub fn failed_for_the_same_reasons(&self, other: &Self) -> bool {
        self.failed_like(other) && self.reasons() == other.reasons()
    }

    fn reasons(&self) -> BTreeMap<Cow<'_, str>, Cow<'_, str>> {
        if self.failures.is_empty() {
            let ends = [("head", &self.head), ("tail", &self.tail)];
            return ends.map(|(name, text)| (name.into(), lasting(text))).into();
        }
        self.failures
            .iter()
            .map(|failure| (lasting(&failure.name), lasting(&failure.message)))
            .collect()
    }

    /// Whether what failed, or what is said about it, names a file. By the name of the file alone,
    /// as runners print paths in many forms. A name that is in many directories needs the one above
    /// it.
    pub fn mentions(&self, path: &str) -> bool {
        let mut parts = path.rsplit('/');
        let name = parts.next().unwrap_or(path);
        let stem = name.split('.').next().unwrap_or(name);
        let name = match parts.next() {
            Some(above) if COMMON_NAMES.contains(&stem) => format!("{above}/{name}"),
            _ => name.to_owned(),
        };
        if self.failures.is_empty() {
            return has_word(&self.head, &name) || has_word(&self.tail, &name);
        }
        self.failures
            .iter()
            .any(|failure| has_word(&failure.name, &name) || has_word(&failure.message, &name))
    }

    /// Whether a text names one of the tests that failed.
    pub fn is_named_in(&self, text: &str) -> bool {
        let last_part = |failure: &TestFailure| {
            let name = failure.name.split(['[', '(']).next().unwrap_or_default();
            let name = name.rsplit("::").next().unwrap_or(name);
            let name = name.rsplit(" › ").next().unwrap_or(name);
            name.trim().to_owned()
        };
        self.failures
            .iter()
            .map(last_part)
            .any(|name| name.len() > 3 && has_word(text, &name))
    }
}

/// A text without what differs between two runs of the same code.
fn lasting(text: &str) -> Cow<'_, str> {
    match VARYING.as_ref() {
        Some(varying) => varying.replace_all(text, "#"),
        None => text.into(),
    }
}

/// Whether a word is in a text and is not part of a longer one.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(failures: &[(&str, &str)]) -> TestRun {
        TestRun {
            exit_code: Some(1),
            failures: failures
                .iter()
                .map(|(name, message)| TestFailure {
                    name: (*name).to_owned(),
                    kind: super::super::FailureKind::Test,
                    message: (*message).to_owned(),
                })
                .collect(),
            ..TestRun::default()
        }
    }

    #[test]
    fn the_patterns_compile() {
        assert!(VARYING.is_some());
    }

    #[test]
    fn times_addresses_and_lines_make_no_other_reason_but_values_do() {
        let one = run(&[("a", "a.py:12: <X at 0x7f01> took 0.12s\nexpected 3, got 4")]);
        let same = run(&[("a", "a.py:19: <X at 0x7f99> took 1.5 s\nexpected 3, got 4")]);
        let other = run(&[("a", "a.py:12: <X at 0x7f01> took 0.12s\nexpected 3, got 5")]);
        assert!(one.failed_for_the_same_reasons(&same));
        assert!(one.failed_like(&other) && !one.failed_for_the_same_reasons(&other));
        let more = run(&[("a", ""), ("b", "")]);
        assert!(!more.failed_like(&one) && !one.failed_like(&more));
        let new: Vec<&str> = more
            .failures_not_in(&one)
            .map(|failure| failure.name.as_str())
            .collect();
        assert_eq!(new, ["b"]);
    }

    #[test]
    fn without_names_the_output_and_the_counts_decide() {
        let said = |tail: &str| TestRun {
            exit_code: Some(2),
            tail: tail.to_owned(),
            ..TestRun::default()
        };
        assert!(said("broken after 3 s").failed_for_the_same_reasons(&said("broken after 4 s")));
        assert!(!said("broken").failed_for_the_same_reasons(&said("bad")));
        assert!(said("broken").failed_like(&said("bad")));
    }

    #[test]
    fn files_are_found_by_name_and_common_names_by_two() {
        let run = run(&[("t", "File \"calc.py\", line 3\n  at src/a/index.js:3:1")]);
        assert!(run.mentions("lib/calc.py") && run.mentions("src/a/index.js"));
        assert!(!run.mentions("lib/alc.py") && !run.mentions("lib/c.py"));
        assert!(!run.mentions("src/b/index.js"));
    }
}
