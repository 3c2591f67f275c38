//! Lines that speak of a failure, of a runner that is not known.

use std::collections::VecDeque;

use super::{
    Family,
    found::{Collected, FailureKind, Id, TestFailure},
};

/// Words that a failure is told with.
const WORDS: [&str; 12] = [
    "FAIL",
    "ERROR",
    "not ok",
    "panicked",
    "Error:",
    "Exception",
    "Traceback",
    "fatal:",
    "assertion",
    "AssertionError",
    "✗",
    "✘",
];
/// Lines of context on both sides of one that speaks of a failure. The line is the failure's name.
const BEFORE: usize = 2;
const AFTER: usize = 6;

pub(super) struct Generic {
    found: Collected,
    before: VecDeque<String>,
    current: Option<Id>,
    left: usize,
}

impl Default for Generic {
    fn default() -> Self {
        Self {
            found: Collected::new(FailureKind::Other),
            before: VecDeque::new(),
            current: None,
            left: 0,
        }
    }
}

impl Family for Generic {
    fn line(&mut self, line: &str) {
        let speaks = WORDS.iter().any(|word| line.contains(word));
        // Within what follows another, it is part of it.
        if speaks && self.left == 0 {
            self.current = self.found.unexplained(line);
            for earlier in self.before.drain(..) {
                self.found.explain(self.current, &earlier);
            }
            self.found.explain(self.current, line);
            self.left = AFTER;
            return;
        }
        if self.left > 0 {
            self.left -= 1;
            self.found.explain(self.current, line);
            return;
        }
        if self.before.len() == BEFORE {
            self.before.pop_front();
        }
        self.before
            .push_back(super::clip::first_bytes(line, 400).to_owned());
    }

    fn finish(self: Box<Self>) -> Vec<TestFailure> {
        self.found.finish().collect()
    }
}
