//! Errors of compilers: rustc, tsc, go, javac, and C's.
//!
//! ```text
//! error[E0308]: mismatched types           src/a.ts(3,5): error TS2322: …
//!  --> src/a.rs:3:5                        ./n.go:5:2: undefined: y
//!   |                                      Numbers.java:12: error: ';' expected
//! ```

use super::{
    Family,
    found::{Collected, FailureKind, Id, TestFailure},
    go::GoEvent,
};

/// Lines of cargo that repeat that there were errors.
const REPEATS: [&str; 7] = [
    "error: could not compile",
    "error: aborting due to",
    "error: test failed",
    "error: process didn't exit",
    "error: no test",
    "error: test run failed",
    "error: Recipe",
];

pub(super) struct Build {
    found: Collected,
    current: Option<Id>,
    /// Lines that still belong to the error. A blank line ends it sooner.
    left: usize,
    /// After go's `# package`, every place is an error.
    in_package: bool,
}

impl Default for Build {
    fn default() -> Self {
        Self {
            found: Collected::new(FailureKind::Build),
            current: None,
            left: 0,
            in_package: false,
        }
    }
}

fn is_rustc(line: &str) -> bool {
    let is_error = line.starts_with("error[E") || line.starts_with("error: ");
    let counts_targets = line.contains(" target") && line.trim_end().ends_with("failed:");
    is_error && !counts_targets && !REPEATS.iter().any(|repeat| line.starts_with(repeat))
}

/// `path:12:5: …` or `path:12: …`: what is after the place.
fn after_place(line: &str) -> Option<&str> {
    let (path, rest) = line.split_once(':')?;
    if path.is_empty() || path.contains(' ') || !path.contains('.') {
        return None;
    }
    let mut rest = rest;
    let mut numbers = 0;
    while let Some((number, after)) = rest.split_once(':') {
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            break;
        }
        numbers += 1;
        rest = after;
    }
    (numbers > 0).then_some(rest.trim_start())
}

impl Build {
    /// How many lines after this one belong to it, if it is an error.
    fn error(&self, line: &str) -> Option<usize> {
        if is_rustc(line) {
            return Some(30);
        }
        let is_java = line.starts_with("[ERROR] ") && line.contains(".java:[");
        if line.contains(": error TS") || line.contains(" - error TS") || is_java {
            return Some(6);
        }
        let rest = after_place(line)?;
        let is_error = rest.starts_with("error: ") || rest.starts_with("fatal error: ");
        if is_error {
            return Some(6);
        }
        (self.in_package && line.contains(".go:")).then_some(2)
    }

    fn text(&mut self, line: &str) {
        if let Some(left) = self.error(line) {
            self.current = self.found.unexplained(line);
            self.left = left;
            return;
        }
        if let Some(package) = line.strip_prefix("# ") {
            self.in_package = !package.contains(' ') || package.ends_with(']');
            self.current = None;
        } else if !line.starts_with(['.', '\t', ' ']) {
            self.in_package = self.in_package && line.contains(".go:");
        }
        if line.trim().is_empty() || self.left == 0 {
            self.current = None;
        } else if self.current.is_some() {
            self.left -= 1;
            self.found.explain(self.current, line);
        }
    }
}

impl Family for Build {
    fn line(&mut self, line: &str) {
        match GoEvent::read(line) {
            Some(event) if event.test.is_none() => {
                for line in event.output.lines() {
                    self.text(line);
                }
            }
            Some(_) => {}
            None => self.text(line),
        }
    }

    fn finish(self: Box<Self>) -> Vec<TestFailure> {
        self.found.finish().collect()
    }
}
