//! `cargo test` and `cargo nextest`.
//!
//! ```text
//! test tests::adds ... FAILED              FAIL [   0.005s] numbers tests::adds
//!                                            stderr ───
//! failures:
//!                                            thread 'tests::adds' panicked at …
//! ---- tests::adds stdout ----             ────────────
//! thread 'tests::adds' panicked at …
//! ```

use super::{
    Family,
    found::{Collected, FailureKind, Id, TestFailure},
};

pub(super) struct Cargo {
    found: Collected,
    current: Option<Id>,
    /// What follows is nextest's account of one test.
    in_nextest: bool,
}

impl Default for Cargo {
    fn default() -> Self {
        Self {
            found: Collected::new(FailureKind::Test),
            current: None,
            in_nextest: false,
        }
    }
}

/// The name in `test name ... FAILED`.
fn failed(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("test ")?.trim_end();
    let name = rest.strip_suffix(" ... FAILED")?;
    Some(name.strip_suffix(" - should panic").unwrap_or(name))
}

/// The name in `---- name stdout ----`.
fn titled(line: &str) -> Option<&str> {
    let name = line
        .strip_prefix("---- ")?
        .trim_end()
        .strip_suffix(" ----")?;
    name.strip_suffix(" stdout")
        .or_else(|| name.strip_suffix(" stderr"))
}

/// What nextest says of a test: the word before the brackets, and the name after them.
fn nextest(line: &str) -> Option<(&str, &str)> {
    let (word, rest) = line.trim_start().split_once(" [")?;
    let (duration, rest) = rest.split_once(']')?;
    let is_duration = duration.trim_end().ends_with('s')
        && duration
            .trim_start()
            .starts_with(|c: char| c.is_ascii_digit() || c == '>');
    let is_word = !word.is_empty()
        && word
            .chars()
            .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || matches!(c, ' ' | '-'));
    let name = rest.split_whitespace().next_back()?;
    (is_duration && is_word).then_some((word, name))
}

fn is_failure(word: &str) -> bool {
    ["FAIL", "SIG", "TIMEOUT", "ABORT", "LEAK-FAIL"]
        .iter()
        .any(|kind| word.split(' ').any(|part| part.starts_with(kind)))
}

impl Family for Cargo {
    fn line(&mut self, line: &str) {
        let text = line.trim_start();
        if let Some((word, name)) = nextest(line) {
            self.in_nextest = is_failure(word);
            self.current = if self.in_nextest {
                self.found.unexplained(name)
            } else {
                None
            };
        } else if text.starts_with("────") {
            self.in_nextest = false;
            self.current = None;
        } else if let Some(name) = failed(text) {
            if !self.in_nextest {
                self.found.named(name);
                self.current = None;
            }
        } else if let Some(name) = titled(line) {
            self.current = self.found.unexplained(name);
        } else if !self.in_nextest && (line == "failures:" || line.starts_with("test result: ")) {
            self.current = None;
        } else {
            self.found.explain(self.current, line);
        }
    }

    fn finish(self: Box<Self>) -> Vec<TestFailure> {
        self.found.finish().collect()
    }
}
