//! Maven's surefire and gradle.
//!
//! ```text
//! [ERROR] a.NumbersTest.adds -- Time elapsed: 0.01 s <<< FAILURE!     NumbersTest > adds() FAILED
//! java.lang.AssertionError: expected 1                                    java.lang.AssertionError
//!     at a.NumbersTest.adds(NumbersTest.java:12)                              at NumbersTest.java:12
//!
//! [ERROR] Failures:
//! [ERROR]   NumbersTest.adds:12 expected: <2> but was: <1>
//! ```

use super::{
    Family,
    found::{Collected, FailureKind, Id, TestFailure},
};

pub(super) struct Java {
    found: Collected,
    current: Option<Id>,
}

impl Default for Java {
    fn default() -> Self {
        Self {
            found: Collected::new(FailureKind::Test),
            current: None,
        }
    }
}

/// The test in a line of surefire.
fn surefire(line: &str) -> Option<&str> {
    let line = line.trim_end();
    let head = line
        .strip_suffix("<<< FAILURE!")
        .or_else(|| line.strip_suffix("<<< ERROR!"))?;
    let head = head.strip_prefix("[ERROR] ").unwrap_or(head).trim();
    // A whole class.
    if head.starts_with("Tests run:") {
        return None;
    }
    let name = head.split("Time elapsed").next().unwrap_or(head);
    Some(name.trim_end_matches([' ', '-']))
}

/// The test in `NumbersTest > adds() FAILED`.
fn gradle(line: &str) -> Option<&str> {
    let name = line.trim_end().strip_suffix(" FAILED")?;
    (!line.starts_with([' ', '>']) && name.contains(" > ")).then_some(name)
}

impl Family for Java {
    fn line(&mut self, line: &str) {
        if let Some(name) = surefire(line) {
            self.current = self.found.unexplained(name);
        } else if let Some(name) = gradle(line) {
            self.current = self.found.unexplained(&name.replace(" > ", " › "));
        } else if line.trim().is_empty() || line.starts_with('[') {
            self.current = None;
        } else {
            self.found.explain(self.current, line);
        }
    }

    fn finish(self: Box<Self>) -> Vec<TestFailure> {
        self.found.finish().collect()
    }
}
