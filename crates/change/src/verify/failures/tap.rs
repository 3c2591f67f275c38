//! TAP: tape, node:test with its `tap` reporter, and others.
//!
//! ```text
//! # Subtest: outer            or, by tape:   # a test
//!     # Subtest: inner                       not ok 2 should be equal
//!     not ok 1 - inner                         ---
//!       ---                                    expected: 1
//!       error: '1 !== 2'                       ...
//!       ...
//! not ok 1 - outer
//! ```

use super::{
    Family,
    found::{Collected, FailureKind, Id, TestFailure},
};

/// Above a failure that only says that one below it failed.
const PARENT: &str = "failureType: 'subtestsFailed'";
/// Lines that count, rather than name a test.
const COUNTS: [&str; 8] = [
    "tests",
    "suites",
    "pass",
    "fail",
    "cancelled",
    "skipped",
    "todo",
    "duration_ms",
];

pub(super) struct Tap {
    found: Collected,
    /// The subtests that are open, with their indentation.
    open: Vec<(usize, String)>,
    /// The last comment: tape's name of a test.
    comment: Option<String>,
    current: Option<Id>,
    /// A result was the line before.
    is_after_result: bool,
    /// The indentation of the YAML block that is open.
    yaml: Option<usize>,
}

impl Default for Tap {
    fn default() -> Self {
        Self {
            found: Collected::new(FailureKind::Test),
            open: Vec::new(),
            comment: None,
            current: None,
            is_after_result: false,
            yaml: None,
        }
    }
}

/// The number and name of `[not] ok 12 - name`, without a directive.
fn description(rest: &str) -> Option<&str> {
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit()).trim();
    let rest = rest.strip_prefix("- ").unwrap_or(rest);
    let lower = rest.to_ascii_lowercase();
    // Expected failures, and tests that were not run.
    let is_excused = |word: &str| lower.contains(&format!("# {word}"));
    (!is_excused("todo") && !is_excused("skip")).then_some(rest)
}

impl Tap {
    fn comment(&mut self, indent: usize, text: &str) {
        if let Some(name) = text.strip_prefix("Subtest: ") {
            self.open.retain(|(other, _)| *other < indent);
            // More levels than anyone nests.
            if self.open.len() < 32 {
                self.open.push((indent, name.to_owned()));
            }
            self.comment = None;
        } else if indent == 0 && !text.is_empty() {
            let first = text.split_whitespace().next().unwrap_or_default();
            if !COUNTS.contains(&first) && first != "ok" {
                self.comment = Some(text.to_owned());
            }
        }
    }

    fn full_name(&self, name: &str) -> String {
        let above = self.open.iter().map(|(_, name)| name.as_str());
        let above = above.chain(self.comment.as_deref());
        let all: Vec<&str> = above
            .chain([name])
            .filter(|part| !part.is_empty())
            .collect();
        all.join(" › ")
    }
}

impl Family for Tap {
    fn line(&mut self, line: &str) {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        if let Some(edge) = self.yaml {
            let is_end = text.trim_end() == "...";
            if is_end || (indent < edge && !text.is_empty()) {
                self.yaml = None;
            }
            if is_end || self.yaml.is_some() {
                self.found.explain(self.current, line);
                return;
            }
        }
        let is_after_result = std::mem::take(&mut self.is_after_result);
        if let Some(rest) = text.strip_prefix("not ok ") {
            self.open.retain(|(other, _)| *other < indent);
            self.current = description(rest)
                .map(|name| self.full_name(name))
                .and_then(|name| self.found.named(&name));
            self.is_after_result = true;
        } else if is_after_result && text.trim_end() == "---" {
            self.yaml = Some(indent);
        } else if text.starts_with("ok ") {
            self.open.retain(|(other, _)| *other < indent);
            self.current = None;
            self.is_after_result = true;
        } else if let Some(text) = text.strip_prefix("# ") {
            self.comment(indent, text.trim_end());
            if self.current.is_some() && !text.starts_with("Subtest: ") {
                // Diagnostics of runners that write no YAML.
                self.found.explain(self.current, line);
            }
        }
    }

    fn finish(self: Box<Self>) -> Vec<TestFailure> {
        let all: Vec<TestFailure> = self.found.finish().collect();
        let is_parent = |failure: &TestFailure| failure.message.contains(PARENT);
        if all.iter().all(is_parent) {
            return all;
        }
        all.into_iter().filter(|one| !is_parent(one)).collect()
    }
}
