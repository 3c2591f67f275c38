//! JUnit's XML, printed.
//!
//! ```text
//! <testcase name="adds" classname="Numbers">
//!   <failure message="expected 2">at line 12</failure>
//! </testcase>
//! ```

use super::{
    Family,
    found::{Collected, FailureKind, Id, TestFailure},
};

pub(super) struct Junit {
    found: Collected,
    /// The test case that is open.
    case: Option<String>,
    current: Option<Id>,
}

impl Default for Junit {
    fn default() -> Self {
        Self {
            found: Collected::new(FailureKind::Test),
            case: None,
            current: None,
        }
    }
}

/// The value of an attribute of a tag.
pub(crate) fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = tag;
    loop {
        let (before, after) = rest.split_once(name)?;
        let is_name = before.ends_with([' ', '\t', '\n']);
        match after.strip_prefix('=') {
            Some(value) if is_name => {
                let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
                return value[1..].split(quote).next();
            }
            _ => rest = after,
        }
    }
}

fn plain(text: &str) -> String {
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&apos;", "'")
        .replace("&#10;", "\n")
        .replace("&#xA;", "\n")
        .replace("<![CDATA[", "")
        .replace("]]>", "")
        .replace("&amp;", "&")
}

impl Junit {
    /// Takes what follows a `<`, up to the next one.
    fn piece(&mut self, piece: &str) {
        let (tag, text) = piece.split_once('>').unwrap_or((piece, ""));
        let word = tag.split(|c: char| c.is_whitespace() || c == '/').next();
        match word.unwrap_or_default() {
            "testcase" => {
                let name = plain(attribute(tag, "name").unwrap_or_default());
                let class = attribute(tag, "classname").map(plain);
                self.case = Some(match class {
                    Some(class) if !class.is_empty() => format!("{class} › {name}"),
                    _ => name,
                });
                self.current = None;
            }
            "failure" | "error" => {
                let Some(case) = &self.case else { return };
                self.current = self.found.unexplained(case);
                let message = plain(attribute(tag, "message").unwrap_or_default());
                self.found.explain_all(self.current, &message);
                self.found.explain_all(self.current, &plain(text));
            }
            // The end of an element: `</failure>` and the like.
            "" if tag.starts_with('/') => self.current = None,
            _ if self.current.is_some() => self.found.explain_all(self.current, &plain(piece)),
            _ => {}
        }
    }
}

impl Family for Junit {
    fn line(&mut self, line: &str) {
        let Some((text, rest)) = line.split_once('<') else {
            if self.current.is_some() {
                self.found.explain_all(self.current, &plain(line));
            }
            return;
        };
        if self.current.is_some() && !text.trim().is_empty() {
            self.found.explain_all(self.current, &plain(text));
        }
        if self.case.is_none() && !line.contains("<testcase") {
            return;
        }
        for piece in rest.split('<') {
            self.piece(piece);
        }
    }

    fn finish(self: Box<Self>) -> Vec<TestFailure> {
        self.found.finish().collect()
    }
}
