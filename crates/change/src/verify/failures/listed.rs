//! Runners that list their failures by number at the end: mocha, rspec and phpunit.
//!
//! ```text
//!   2 failing              Failures:                     There was 1 failure:
//!
//!   1) numbers               1) Numbers adds             1) NumbersTest::testAdds
//!        adds:                  Failure/Error: …         Failed asserting that …
//!
//!       AssertionError …   Finished in 0.1 seconds       FAILURES!
//! ```

use super::{
    Family,
    found::{Collected, FailureKind, Id, TestFailure},
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum List {
    None,
    Mocha,
    Rspec,
    Phpunit,
}

pub(super) struct Listed {
    found: Collected,
    list: List,
    /// Mocha's name goes over several lines, until one that ends with a colon.
    title: Option<Vec<String>>,
    current: Option<Id>,
}

impl Default for Listed {
    fn default() -> Self {
        Self {
            found: Collected::new(FailureKind::Test),
            list: List::None,
            title: None,
            current: None,
        }
    }
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// The heading of a list of failures, as rspec, mocha and PHPUnit write it.
fn begins(line: &str) -> Option<List> {
    let text = line.trim();
    if text == "Failures:" {
        return Some(List::Rspec);
    }
    if let Some(number) = text.strip_suffix(" failing") {
        return is_number(number).then_some(List::Mocha);
    }
    let rest = text
        .strip_prefix("There was ")
        .or_else(|| text.strip_prefix("There were "))?;
    let (number, what) = rest.split_once(' ')?;
    let is_list = ["failure:", "failures:", "error:", "errors:"].contains(&what);
    (is_list && is_number(number)).then_some(List::Phpunit)
}

/// The name in `  12) name`.
fn item(line: &str) -> Option<&str> {
    let (number, name) = line.trim_start().split_once(") ")?;
    is_number(number).then_some(name.trim_end())
}

impl Listed {
    fn ends(&self, line: &str) -> bool {
        match self.list {
            List::None | List::Mocha => false,
            List::Rspec => line.starts_with("Finished in ") || line.starts_with("Failed examples:"),
            List::Phpunit => line.starts_with("FAILURES!") || line.starts_with("ERRORS!"),
        }
    }

    fn begin(&mut self, name: &str) {
        self.current = None;
        if self.list == List::Mocha {
            self.title = Some(Vec::new());
            self.add_title(name);
        } else {
            self.current = self.found.unexplained(name);
        }
    }

    /// Takes a part of mocha's name.
    fn add_title(&mut self, part: &str) {
        let Some(title) = &mut self.title else { return };
        let part = part.trim();
        if part.is_empty() {
            return;
        }
        title.push(part.strip_suffix(':').unwrap_or(part).to_owned());
        if part.ends_with(':') || title.len() == 16 {
            let name = title.join(" › ");
            self.title = None;
            self.current = self.found.unexplained(&name);
        }
    }
}

impl Family for Listed {
    fn line(&mut self, line: &str) {
        if let Some(list) = begins(line) {
            self.list = list;
            self.current = None;
            self.title = None;
            return;
        }
        if self.list == List::None {
            return;
        }
        if self.ends(line) {
            self.list = List::None;
            self.current = None;
            return;
        }
        let is_indented = line.starts_with("  ");
        // Numbered lines within a message are deeper than those of the list.
        let is_item = match self.list {
            List::Phpunit => !is_indented,
            _ => is_indented && !line.starts_with("     "),
        };
        if is_item && let Some(name) = item(line) {
            self.begin(name);
        } else if self.title.is_some() {
            self.add_title(line);
        } else {
            self.found.explain(self.current, line);
        }
    }

    fn finish(self: Box<Self>) -> Vec<TestFailure> {
        self.found.finish().collect()
    }
}
