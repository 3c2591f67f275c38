//! jest and vitest.
//!
//! ```text
//! FAIL src/n.test.js               FAIL  src/n.test.ts > numbers > adds
//!   ● numbers › adds               AssertionError: expected 1 to be 2
//!
//!     Expected: 2                   ❯ src/n.test.ts:19:41
//!     Received: 1                  ⎯⎯⎯⎯⎯⎯⎯⎯⎯⎯[1/4]⎯
//! ```

use super::{
    Family,
    found::{Collected, FailureKind, Id, TestFailure},
};

/// Headings of jest that are no failures.
const NOTES: [&str; 3] = ["Console", "Validation Warning", "Deprecation Warning"];

pub(super) struct Jest {
    found: Collected,
    /// The file of the results that follow.
    file: String,
    current: Option<Id>,
}

impl Default for Jest {
    fn default() -> Self {
        Self {
            found: Collected::new(FailureKind::Test),
            file: String::new(),
            current: None,
        }
    }
}

impl Jest {
    /// Whether the line begins or ends a failure, which it then is no part of.
    fn is_border(&mut self, line: &str) -> bool {
        if let Some(name) = line.strip_prefix("  ● ") {
            let name = name.trim_end();
            self.current = if NOTES.contains(&name) {
                None
            } else if name == "Test suite failed to run" {
                self.found.unexplained(&format!("{} › {name}", self.file))
            } else {
                self.found.unexplained(name)
            };
            return true;
        }
        if let Some(rest) = line.strip_prefix(" FAIL  ") {
            let name = rest.trim_end();
            // A file that could not be loaded: `file [ file ]`.
            let name = name
                .split(" [ ")
                .next()
                .unwrap_or(name)
                .replace(" > ", " › ");
            self.current = self.found.unexplained(&name);
            return true;
        }
        if let Some(file) = line.strip_prefix("FAIL ") {
            let file = file.trim();
            file.split(" (")
                .next()
                .unwrap_or(file)
                .clone_into(&mut self.file);
            self.current = None;
            return true;
        }
        let is_end = [
            "PASS ",
            "Test Suites:",
            "Tests:",
            "Summary of all failing",
            "⎯⎯⎯",
        ];
        if is_end.iter().any(|end| line.starts_with(end)) {
            self.current = None;
            return true;
        }
        false
    }
}

impl Family for Jest {
    fn line(&mut self, line: &str) {
        if !self.is_border(line) {
            self.found.explain(self.current, line);
        }
    }

    fn finish(self: Box<Self>) -> Vec<TestFailure> {
        self.found.finish().collect()
    }
}
