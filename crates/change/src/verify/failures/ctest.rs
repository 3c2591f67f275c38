//! CTest.
//!
//! ```text
//! 2/3 Test #2: adds .............***Failed    0.01 sec
//! expected 2, got 1
//!       Start 3: subtracts
//!
//! The following tests FAILED:
//!           2 - adds (Failed)
//! ```

use super::{
    Family,
    found::{Collected, FailureKind, Id, TestFailure},
};

pub(super) struct Ctest {
    found: Collected,
    current: Option<Id>,
    in_list: bool,
}

impl Default for Ctest {
    fn default() -> Self {
        Self {
            found: Collected::new(FailureKind::Test),
            current: None,
            in_list: false,
        }
    }
}

/// The name in `2/3 Test #2: adds ....***Failed  0.01 sec`, and whether the test failed.
fn result(line: &str) -> Option<(&str, bool)> {
    let (_, rest) = line.split_once(" Test ")?;
    let rest = rest.trim_start().strip_prefix('#')?;
    let (number, rest) = rest.split_once(": ")?;
    if !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let name = rest.split_whitespace().next()?;
    let is_bad = rest.contains("***")
        && !rest.contains("***Skipped")
        && !rest.contains("***Not Run (Disabled)");
    Some((name.trim_end_matches('.'), is_bad))
}

/// The name in `    2 - adds (Failed)`.
fn listed(line: &str) -> Option<&str> {
    let (number, rest) = line.trim().split_once(" - ")?;
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    let (name, _) = rest.rsplit_once(" (")?;
    is_number.then_some(name)
}

impl Family for Ctest {
    fn line(&mut self, line: &str) {
        if line.starts_with("The following tests FAILED:") {
            self.in_list = true;
            self.current = None;
        } else if self.in_list {
            match listed(line) {
                Some(name) => {
                    self.found.named(name);
                }
                None => self.in_list = false,
            }
        } else if let Some((name, is_bad)) = result(line) {
            self.current = if is_bad {
                self.found.unexplained(name)
            } else {
                None
            };
        } else if line.trim_start().starts_with("Start ") || line.contains("% tests passed") {
            self.current = None;
        } else {
            self.found.explain(self.current, line);
        }
    }

    fn finish(self: Box<Self>) -> Vec<TestFailure> {
        self.found.finish().collect()
    }
}
