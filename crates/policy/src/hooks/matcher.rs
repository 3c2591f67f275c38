//! Which tool calls, sources or kinds a hook is about.
//!
//! ```text
//! (absent), "", "*"     everything
//! Bash   Edit|Write     these names, exactly
//! mcp__.*   ^Notebook   a regular expression, found anywhere in the name
//! ```

use regex::{Regex, RegexBuilder};

/// The largest compiled pattern. In bytes; a pattern of a person is a few words.
const MAX_PATTERN_SIZE: usize = 1 << 20;

/// What a hook is about.
#[derive(Debug, Clone)]
pub struct HookMatcher {
    text: String,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Everything,
    Names(Vec<String>),
    Pattern(Regex),
}

/// The text is neither names nor a regular expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the matcher `{text}` is not a regular expression: {message}")]
pub struct HookMatcherError {
    text: String,
    message: String,
}

impl Default for HookMatcher {
    fn default() -> Self {
        Self {
            text: String::new(),
            kind: Kind::Everything,
        }
    }
}

impl HookMatcher {
    /// Understands the text of a settings file.
    pub fn parse(text: &str) -> Result<Self, HookMatcherError> {
        let trimmed = text.trim();
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '|' | ' ' | ',');
        let kind = if matches!(trimmed, "" | "*") {
            Kind::Everything
        } else if trimmed.chars().all(is_name) {
            let names = trimmed.split(['|', ',']).map(str::trim);
            Kind::Names(names.filter(|n| !n.is_empty()).map(str::to_owned).collect())
        } else {
            let pattern = RegexBuilder::new(trimmed)
                .size_limit(MAX_PATTERN_SIZE)
                .build();
            Kind::Pattern(pattern.map_err(|error| HookMatcherError {
                text: trimmed.to_owned(),
                message: last_line(&error.to_string()),
            })?)
        };
        Ok(Self {
            text: trimmed.to_owned(),
            kind,
        })
    }

    /// Whether it is about any of these: a tool may be known by several names.
    pub fn is_about<'a>(&self, subjects: impl IntoIterator<Item = &'a str>) -> bool {
        let mut subjects = subjects.into_iter();
        match &self.kind {
            Kind::Everything => true,
            Kind::Names(names) => subjects.any(|subject| names.iter().any(|name| name == subject)),
            Kind::Pattern(pattern) => subjects.any(|subject| pattern.is_match(subject)),
        }
    }

    /// As it was written; empty for one that is about everything.
    pub fn as_str(&self) -> &str {
        match self.kind {
            Kind::Everything => "",
            _ => &self.text,
        }
    }
}

/// The crate draws the place over several lines; its last line says what is wrong.
fn last_line(message: &str) -> String {
    let last = message.lines().last().unwrap_or_default();
    last.trim_start_matches("error: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_about(text: &str, subject: &str) -> bool {
        HookMatcher::parse(text).unwrap().is_about([subject])
    }

    #[test]
    fn a_matcher_is_names_or_a_pattern_or_everything() {
        for everything in ["", "*", "  "] {
            assert!(is_about(everything, "Bash"), "{everything:?}");
        }
        assert!(is_about("Bash", "Bash"));
        assert!(is_about("Edit|Write", "Write"));
        assert!(is_about("Edit, Write", "Write"));
        // A name is the whole name, in its own case.
        assert!(!is_about("Bash", "BashOutput"));
        assert!(!is_about("bash", "Bash"));
        assert!(!is_about("mcp__memory", "mcp__memory__create"));
        assert!(is_about("mcp__memory__.*", "mcp__memory__create"));
        assert!(is_about(".*", "anything"));
        assert!(is_about("^Notebook", "NotebookEdit"));
        assert!(!is_about("^Edit$", "NotebookEdit"));
    }

    #[test]
    fn a_pattern_that_is_none_is_an_error_that_names_it() {
        let error = HookMatcher::parse("Bash(").unwrap_err().to_string();
        assert!(error.starts_with("the matcher `Bash(` is not a regular expression: "));
        // What other engines know and this one does not must not match nothing in silence.
        assert!(HookMatcher::parse("^(?!Read).*").is_err());
        assert!(HookMatcher::parse("(x{1,1000}){1,1000}").is_err());
    }
}
