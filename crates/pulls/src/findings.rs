//! The findings of a review: read from the model's answer, placed on lines of the diff or, where
//! that cannot be, in the text of the review. None is dropped.
//!
//! ```text
//! the model's JSON → read → placed: a comment on a line of the diff
//!                           unplaced: a line in the text of the review
//! a posted review  → posted → the same two lists
//! ```
//!
//! GitHub refuses a whole review for one comment on a line that its diff does not show. So a
//! finding is placed only if the diff has the line. The second way exists because a review is not
//! made twice: of one that is on the forge already, the findings are read back from its texts. What
//! `comment` and `line_of_text` write, `posted` must be able to read.

use std::fmt::Write as _;

use codespar_protocol::ReviewComment;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{diff::DiffFile, markdown};

const HEADING: &str = "**Findings that could not be placed on a line of the diff:**";

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It would be better otherwise.
    Low,
    /// It should be otherwise.
    Medium,
    /// It must not go in so.
    High,
}

impl Severity {
    const ALL: [Self; 3] = [Self::Low, Self::Medium, Self::High];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    /// Models use other scales. What is none of these words counts as medium: neither hidden nor
    /// alarming.
    fn read(word: &str) -> Self {
        match word.to_ascii_lowercase().as_str() {
            "high" | "critical" | "blocker" | "error" => Self::High,
            "low" | "minor" | "nit" | "info" => Self::Low,
            _ => Self::Medium,
        }
    }

    /// The severity that a text of ours begins with, and what follows it.
    fn split(text: &str) -> Option<(Self, &str)> {
        Self::ALL.into_iter().find_map(|severity| {
            let rest = text.strip_prefix("**")?.strip_prefix(severity.as_str())?;
            Some((severity, rest.strip_prefix("**")?))
        })
    }
}

/// Something the reviewer found, on a line that the diff shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub path: String,
    /// The line in the new file.
    pub line: u32,
    /// How much it matters.
    pub severity: Severity,
    pub text: String,
}

/// Something the reviewer found that stands on no line of the diff. It is part of the text of the
/// review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnplacedFinding {
    /// What the reviewer named, if anything.
    pub path: Option<String>,
    pub line: Option<u32>,
    pub severity: Severity,
    pub text: String,
}

/// All findings of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Findings {
    pub(crate) placed: Vec<Finding>,
    pub(crate) unplaced: Vec<UnplacedFinding>,
}

impl Findings {
    /// Sorts what the model said by whether a comment can stand on its line. The order of the
    /// answer is kept in both lists. A path that the diff does not have keeps the spelling of the
    /// model.
    pub(crate) fn read(raw: &[Value], files: &[DiffFile]) -> Self {
        let mut findings = Self::default();
        for value in raw {
            let UnplacedFinding {
                path,
                line,
                severity,
                text,
            } = UnplacedFinding::read(value);
            let place = path.as_deref().and_then(|path| known(path, files));
            match (place, line) {
                (Some(file), Some(line)) if file.shown.contains(&line) => {
                    findings.placed.push(Finding {
                        path: file.path.clone(),
                        line,
                        severity,
                        text,
                    });
                }
                _ => findings.unplaced.push(UnplacedFinding {
                    path,
                    line,
                    severity,
                    text,
                }),
            }
        }
        findings
    }

    /// Those of a review that was posted before. A comment that does not begin with a severity
    /// counts as medium. The list in the text ends at the first line that is not one of ours.
    pub(crate) fn posted(body: &str, comments: &[ReviewComment]) -> Self {
        let listed = body.split_once(HEADING).map_or("", |(_, listed)| listed);
        let listed = listed.trim_start().lines();
        Self {
            placed: comments.iter().map(Finding::posted).collect(),
            unplaced: listed.map_while(UnplacedFinding::posted).collect(),
        }
    }

    /// The unplaced ones for the text of the review, at most this many characters. Those that do
    /// not fit are counted.
    pub(crate) fn write(&self, out: &mut String, most: usize) {
        if self.unplaced.is_empty() {
            return;
        }
        // Writing to a string cannot fail.
        let _ = writeln!(out, "\n{HEADING}\n");
        let mut room = most;
        for (index, finding) in self.unplaced.iter().enumerate() {
            let line = finding.line_of_text();
            let length = line.chars().count() + 1;
            if length > room {
                let left = self.unplaced.len() - index;
                let _ = writeln!(out, "\n{left} more did not fit into this text.");
                return;
            }
            room -= length;
            let _ = writeln!(out, "{line}");
        }
    }
}

impl Finding {
    /// The text of a comment: the severity in bold, then what the model wrote, made harmless.
    pub(crate) fn comment(&self) -> String {
        format!(
            "**{}**: {}",
            self.severity.as_str(),
            markdown::foreign(self.text.trim())
        )
    }

    /// The other way round.
    fn posted(comment: &ReviewComment) -> Self {
        let known = Severity::split(&comment.body)
            .and_then(|(severity, rest)| Some((severity, rest.strip_prefix(": ")?)));
        let (severity, text) = known.unwrap_or((Severity::Medium, &comment.body));
        Self {
            path: comment.path.clone(),
            line: comment.line,
            severity,
            text: text.to_owned(),
        }
    }
}

impl UnplacedFinding {
    /// Models have other names for the same things, and write numbers as words. What is in no known
    /// form at all is text.
    fn read(value: &Value) -> Self {
        let word = |names: &[&str]| {
            let found = names.iter().find_map(|name| value.get(name)?.as_str());
            found.map(str::to_owned)
        };
        let line = ["line", "line_number", "start_line", "lines"];
        let line = line.iter().find_map(|name| number(value.get(name)?));
        let text = word(&["text", "message", "body", "comment", "description"]);
        Self {
            path: word(&["path", "file", "filename"]).filter(|path| !path.trim().is_empty()),
            line,
            severity: Severity::read(&word(&["severity", "level"]).unwrap_or_default()),
            text: match (text, value) {
                (Some(text), _) => text,
                (None, Value::String(text)) => text.clone(),
                (None, other) => other.to_string(),
            },
        }
    }

    /// One line of a list, however many lines the model wrote: `posted` reads line by line.
    fn line_of_text(&self) -> String {
        let place = match (&self.path, self.line) {
            (Some(path), Some(line)) => format!(" `{}:{line}`", markdown::code(path)),
            (Some(path), None) => format!(" `{}`", markdown::code(path)),
            (None, _) => String::new(),
        };
        let text = markdown::line(&self.text);
        format!("- **{}**{place}: {text}", self.severity.as_str())
    }

    /// The other way round.
    fn posted(line: &str) -> Option<Self> {
        let (severity, rest) = Severity::split(line.strip_prefix("- ")?)?;
        let (place, text) = match rest.strip_prefix(" `") {
            Some(rest) => rest.split_once("`: ")?,
            None => ("", rest.strip_prefix(": ")?),
        };
        let (path, line) = match place.rsplit_once(':') {
            Some((path, line)) if line.parse::<u32>().is_ok() => (path, line.parse().ok()),
            _ => (place, None),
        };
        Some(Self {
            path: Some(path.to_owned()).filter(|path| !path.is_empty()),
            line,
            severity,
            text: text.to_owned(),
        })
    }
}

/// A number, a number in words, or the first of a range. Text before the digits is skipped, so
/// `L12`, `line 12` and `12-14` are all 12.
fn number(value: &Value) -> Option<u32> {
    match value {
        Value::String(text) => {
            let digits = text.trim_start_matches(|c: char| !c.is_ascii_digit());
            let end = digits.find(|c: char| !c.is_ascii_digit());
            digits[..end.unwrap_or(digits.len())].parse().ok()
        }
        Value::Array(range) => number(range.first()?),
        other => u32::try_from(other.as_u64()?).ok(),
    }
}

/// The file of the diff that is meant: models keep git's `a/` and `b/` at times. A path as the diff
/// has it wins over one that is the same without its first part: a directory may be called `a`.
fn known<'a>(path: &str, files: &'a [DiffFile]) -> Option<&'a DiffFile> {
    let named = |path: &str| files.iter().find(|file| file.path == path);
    let bare = ["./", "a/", "b/"]
        .iter()
        .find_map(|start| path.strip_prefix(start));
    named(path).or_else(|| named(bare?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn findings() -> Findings {
        let file = DiffFile {
            path: "a.rs".to_owned(),
            shown: [2, 3].into(),
            ..DiffFile::default()
        };
        let raw = json!([
            {"path": "a.rs", "line": 2, "severity": "high", "text": "drops the table"},
            {"file": "b/a.rs", "line": "3-9", "message": "and this"},
            {"path": "a.rs", "line": 900, "severity": "low", "text": "two\nlines @all"},
            {"path": "other.rs", "text": "no line"},
            "words alone",
            {"odd": 1},
        ]);
        Findings::read(raw.as_array().unwrap(), &[file])
    }

    #[test]
    fn a_finding_is_placed_or_in_the_text_and_never_dropped() {
        let Findings { placed, unplaced } = findings();
        let placed: Vec<(u32, Severity, &str)> = placed
            .iter()
            .map(|finding| (finding.line, finding.severity, finding.text.as_str()))
            .collect();
        assert_eq!(
            placed,
            [
                (2, Severity::High, "drops the table"),
                (3, Severity::Medium, "and this")
            ]
        );
        let unplaced: Vec<String> = unplaced.iter().map(UnplacedFinding::line_of_text).collect();
        assert_eq!(
            unplaced,
            [
                "- **low** `a.rs:900`: two lines @\u{2060}all",
                "- **medium** `other.rs`: no line",
                "- **medium**: words alone",
                "- **medium**: {\"odd\":1}",
            ]
        );
    }

    #[test]
    fn a_posted_review_gives_its_findings_back() {
        let findings = findings();
        let mut body = "Summary\n".to_owned();
        findings.write(&mut body, 10_000);
        body.push_str("\n<!-- mark -->");
        let found = Findings::posted(&body, &[]);
        let mut expected = findings.unplaced.clone();
        expected[0].text = "two lines @\u{2060}all".to_owned();
        assert_eq!(found.unplaced, expected);
        let mut short = String::new();
        findings.write(&mut short, 60);
        assert!(
            short.ends_with("\n3 more did not fit into this text.\n"),
            "{short}"
        );
    }
}
