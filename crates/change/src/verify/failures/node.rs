//! node:test with its `spec` reporter: the list of failures at the end.
//!
//! ```text
//! ✖ failing tests:
//!
//! test at n.test.js:334:1
//! ✖ adds numbers (0.4ms)
//!   AssertionError [ERR_ASSERTION]: 1 !== 2
//! ```

use super::{
    Family,
    found::{Collected, FailureKind, Id, TestFailure},
};

pub(super) struct Node {
    found: Collected,
    in_list: bool,
    place: Option<String>,
    current: Option<Id>,
}

impl Default for Node {
    fn default() -> Self {
        Self {
            found: Collected::new(FailureKind::Test),
            in_list: false,
            place: None,
            current: None,
        }
    }
}

/// Without the `(0.4ms)` after it.
fn without_duration(name: &str) -> &str {
    match name.rsplit_once(" (") {
        Some((name, duration)) if duration.ends_with("ms)") => name,
        _ => name,
    }
}

impl Family for Node {
    fn line(&mut self, line: &str) {
        if line.trim_end() == "✖ failing tests:" {
            self.in_list = true;
            self.current = None;
            return;
        }
        if !self.in_list {
            return;
        }
        if let Some(place) = line.strip_prefix("test at ") {
            self.place = Some(place.trim_end().to_owned());
            self.current = None;
        } else if let Some(name) = line.strip_prefix("✖ ") {
            let name = without_duration(name.trim_end());
            // Names may repeat; a place does not.
            self.current = self.found.unexplained(name).or_else(|| {
                let place = self.place.as_deref()?;
                self.found.unexplained(&format!("{name} ({place})"))
            });
            if let Some(place) = self.place.take() {
                self.found.explain(self.current, &format!("at {place}"));
            }
        } else if line.is_empty() || line.starts_with(' ') {
            self.found.explain(self.current, line);
        } else {
            self.current = None;
        }
    }

    fn finish(self: Box<Self>) -> Vec<TestFailure> {
        self.found.finish().collect()
    }
}
