//! `go test`, plain, with `-v` and with `-json`.
//!
//! ```text
//! --- FAIL: TestAdds (0.00s)              === RUN   TestAdds
//!     n_test.go:103: got 1, want 2            n_test.go:103: got 1, want 2
//! FAIL                                    --- FAIL: TestAdds (0.00s)
//! FAIL    example.com/numbers  0.01s
//! ```

use std::collections::HashMap;

use serde::Deserialize;

use super::{
    Family,
    clip::Clip,
    found::{Collected, FailureKind, Id, TestFailure},
};

/// Tests that run at the same time and have said something.
const MOST_OPEN: usize = 256;
const SAID: (usize, usize) = (3 << 10, 1 << 10);

/// One line of `go test -json`.
#[derive(Deserialize)]
pub(crate) struct GoEvent {
    #[serde(rename = "Action")]
    pub(crate) action: String,
    #[serde(rename = "Test")]
    pub(crate) test: Option<String>,
    #[serde(rename = "Output", default)]
    pub(crate) output: String,
}

impl GoEvent {
    pub(crate) fn read(line: &str) -> Option<Self> {
        if !line.starts_with('{') || !line.contains("\"Action\"") {
            return None;
        }
        serde_json::from_str(line).ok()
    }
}

pub(super) struct Go {
    found: Collected,
    /// What tests that are not over have said.
    open: HashMap<String, Clip>,
    /// The test that is speaking.
    speaking: Option<String>,
    current: Option<Id>,
}

impl Default for Go {
    fn default() -> Self {
        Self {
            found: Collected::new(FailureKind::Test),
            open: HashMap::new(),
            speaking: None,
            current: None,
        }
    }
}

/// The test in `--- FAIL: TestAdds/sub (0.00s)`.
fn over<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let rest = text
        .strip_prefix("--- ")?
        .strip_prefix(word)?
        .strip_prefix(": ")?;
    rest.split_whitespace().next()
}

/// The test in `=== RUN   TestAdds`.
fn turn(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("=== ")?;
    let (word, name) = rest.split_once(' ')?;
    ["RUN", "CONT", "NAME", "PAUSE"]
        .contains(&word)
        .then(|| name.trim())
}

impl Go {
    fn say(&mut self, test: &str, line: &str) {
        if self.open.len() >= MOST_OPEN && !self.open.contains_key(test) {
            return;
        }
        let said = self.open.entry(test.to_owned());
        said.or_insert_with(|| Clip::new(SAID.0, SAID.1)).push(line);
    }

    fn failed(&mut self, test: &str) {
        self.current = self.found.named(test);
        if let Some(said) = self.open.remove(test) {
            self.found.explain_all(self.current, &said.text());
        }
    }

    fn event(&mut self, event: &GoEvent) {
        let Some(test) = &event.test else { return };
        match event.action.as_str() {
            "output" => {
                let text = event.output.trim_end();
                let is_frame = text.trim_start().starts_with("--- ") || text.starts_with("=== ");
                if !is_frame {
                    self.say(test, text);
                }
            }
            "fail" => self.failed(test),
            "pass" | "skip" => {
                self.open.remove(test);
            }
            _ => {}
        }
        self.current = None;
    }
}

impl Family for Go {
    fn line(&mut self, line: &str) {
        if let Some(event) = GoEvent::read(line) {
            self.event(&event);
            return;
        }
        let text = line.trim_start();
        if let Some(test) = over(text, "FAIL") {
            self.speaking = None;
            self.failed(test);
        } else if let Some(test) = over(text, "PASS").or_else(|| over(text, "SKIP")) {
            self.open.remove(test);
            self.speaking = None;
            self.current = None;
        } else if let Some(test) = turn(line) {
            self.speaking = Some(test.to_owned());
            self.current = None;
        } else if ["FAIL", "PASS", "ok  \t", "exit status"]
            .iter()
            .any(|end| line.starts_with(end))
        {
            self.speaking = None;
            self.current = None;
        } else if let Some(test) = self.speaking.take() {
            self.say(&test, line);
            self.speaking = Some(test);
        } else {
            self.found.explain(self.current, line);
        }
    }

    fn finish(self: Box<Self>) -> Vec<TestFailure> {
        self.found.finish().collect()
    }
}
