//! pytest and unittest.
//!
//! ```text
//! ______ test_adds ______                 ======================
//!     assert 1 == 2                       FAIL: test_adds (calc.Case)
//! E   assert 1 == 2                       ----------------------
//! ==== short test summary info ====       Traceback (most recent call last):
//! FAILED test_n.py::test_adds - assert    AssertionError: 1 != 2
//! ```

use super::{
    Family,
    found::{Collected, FailureKind, Id, TestFailure},
};

pub(super) struct Python {
    found: Collected,
    current: Option<Id>,
    /// In pytest's sections of failures and errors.
    in_section: bool,
}

impl Default for Python {
    fn default() -> Self {
        Self {
            found: Collected::new(FailureKind::Test),
            current: None,
            in_section: false,
        }
    }
}

/// The title within a line of one character: `==== FAILURES ====`.
fn title(line: &str, frame: char) -> Option<&str> {
    let line = line.trim_end();
    let rest = line.trim_start_matches(frame);
    let inner = rest.trim_end_matches(frame);
    let is_framed = line.len() - rest.len() >= 2 && rest.len() - inner.len() >= 2;
    // A line of that character alone has no title.
    (is_framed && inner.starts_with(' ') && inner.ends_with(' ')).then(|| inner.trim())
}

/// The line that unittest puts before each failure.
fn is_rule(line: &str) -> bool {
    line.len() >= 50 && line.trim_end().bytes().all(|byte| byte == b'=')
}

/// The name in `FAIL: test_adds (calc.Case)`.
fn unittest_name(line: &str) -> Option<&str> {
    let name = line
        .strip_prefix("FAIL: ")
        .or_else(|| line.strip_prefix("ERROR: "))?
        .trim_end();
    let (test, class) = name.split_once(" (")?;
    let is_word = |text: &str| {
        !text.is_empty()
            && text
                .chars()
                .all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'))
    };
    let class = class.split(')').next()?;
    (is_word(test) && is_word(class)).then_some(name)
}

/// The node id and the reason in a line of the summary.
fn summary(line: &str) -> Option<(&str, &str)> {
    let rest = line
        .strip_prefix("FAILED ")
        .or_else(|| line.strip_prefix("ERROR "))?
        .trim_end();
    // The reason is after the id; parameters may have dashes of their own.
    let (id, reason) = match rest.find("] - ") {
        Some(at) => (&rest[..=at], &rest[at + 4..]),
        None => rest.split_once(" - ").unwrap_or((rest, "")),
    };
    let file = id.split("::").next()?;
    (file.ends_with(".py") || id.contains(".py::")).then_some((id, reason))
}

/// Titles that a failure of a test may have: `Case.test_x[1]` for `a.py::Case::test_x[1]`.
fn titles(id: &str) -> Vec<String> {
    let Some((_, parts)) = id.split_once("::") else {
        return vec![format!("ERROR collecting {id}")];
    };
    let name = parts.replace("::", ".");
    vec![
        format!("ERROR at setup of {name}"),
        format!("ERROR at teardown of {name}"),
        name,
    ]
}

impl Family for Python {
    fn line(&mut self, line: &str) {
        if let Some(name) = title(line, '=') {
            self.in_section = name == "FAILURES" || name == "ERRORS";
            self.current = None;
        } else if self.in_section
            && let Some(name) = title(line, '_')
        {
            self.current = self.found.named(name);
        } else if let Some((id, reason)) = summary(line) {
            self.current = None;
            let titled = titles(id).iter().find_map(|title| self.found.known(title));
            match titled {
                Some(titled) => self.found.rename(titled, id),
                None => {
                    let new = self.found.unexplained(id);
                    self.found.explain(new, reason);
                }
            }
        } else if let Some(name) = unittest_name(line) {
            self.current = self.found.unexplained(name);
        } else if is_rule(line) || (line.starts_with("Ran ") && !self.in_section) {
            self.current = None;
        } else if !line.starts_with("----------") {
            self.found.explain(self.current, line);
        }
    }

    fn finish(self: Box<Self>) -> Vec<TestFailure> {
        self.found.finish().collect()
    }
}
