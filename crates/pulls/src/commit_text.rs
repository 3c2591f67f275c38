//! The message of a commit: the model's own title and summary, wrapped, and trailers of ours.
//!
//! A commit message is read by git and by forges as well as by people: lines at its end of the form
//! `Name: value` are trailers. The forge crate finds a commit of ours by its `CodeSpar-Key` after a
//! crash, and a local merge by its `CodeSpar-Merge`, so no line of a model's text may look like one
//! of these (`safe`). The trailers come last, after a paragraph of our own, so what the summary
//! ends with is not taken for a trailer by git.

use std::fmt::Write as _;

use codespar_protocol::{DevOrder, TaskId};

use crate::{markdown, pull_text::shorten};

/// Where CodeSpar is described, for whoever meets one of its commits.
const HOME: &str = env!("CARGO_PKG_REPOSITORY");
/// Columns of a line, as git shows them best.
const WIDTH: usize = 72;
/// A commit is read in a terminal; the pull request has the rest.
const MOST_LINES: usize = 40;

/// What a commit says of its change.
pub struct CommitText<'a> {
    /// One line, in the imperative.
    pub title: &'a str,
    /// What and why; its first line may be the title again.
    pub summary: &'a str,
}

impl CommitText<'_> {
    /// The whole message with its trailers. `key` is what the forge looks for before it commits
    /// again; it stays the same over all attempts of a run and over the runs that resume it. An
    /// empty title falls back to the subject of the order. Redacting is the caller's part.
    pub fn message(&self, order: &DevOrder, task: &TaskId, key: &str) -> String {
        // A trailer is one line, whatever a name is made of.
        let line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let title = match self.title.trim() {
            "" => order.subject(),
            title => title,
        };
        let mut out = markdown::without_mentions(&shorten(title));
        out.push_str("\n\n");
        let body = body(self.summary, title);
        if !body.is_empty() {
            out.push_str(&markdown::lines(&body));
            out.push_str("\n\n");
        }
        // Writing to a string cannot fail.
        let _ = write!(
            out,
            "Made by CodeSpar ({HOME}).\n\nCodeSpar-Task: {task}\nRequested-by: {}\nCodeSpar-Key: {key}\n",
            markdown::without_mentions(&line(&order.requested_by)),
        );
        out
    }
}

/// The summary without the title, wrapped. Lines of code stay as they are. A paragraph is joined
/// and wrapped anew; an item of a list, a heading, a quote or a row of a table begins one, so that
/// they are not run together. At most `MOST_LINES` lines, then an ellipsis.
fn body(summary: &str, title: &str) -> String {
    let mut text = summary.trim();
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    if is_title(first, title) {
        text = rest.trim();
    }
    let mut lines: Vec<String> = Vec::new();
    let mut paragraph = Paragraph::default();
    let mut is_code = false;
    for line in text.lines().map(safe) {
        let trimmed = line.trim();
        let is_fence = trimmed.starts_with("```") || trimmed.starts_with("~~~");
        if is_code || is_fence || line.starts_with("    ") || line.starts_with('\t') {
            is_code ^= is_fence;
            paragraph.flush(&mut lines);
            lines.push(line.trim_end().to_owned());
        } else if trimmed.is_empty() {
            paragraph.flush(&mut lines);
            lines.push(String::new());
        } else {
            if trimmed.starts_with(['-', '*', '+', '#', '>', '|']) || begins_item(trimmed) {
                paragraph.flush(&mut lines);
            }
            paragraph.add(trimmed);
        }
    }
    paragraph.flush(&mut lines);
    if lines.len() > MOST_LINES {
        lines.truncate(MOST_LINES);
        lines.push("…".to_owned());
    }
    lines.join("\n").trim().to_owned()
}

/// The model's title is often the first line of its summary, with marks. One that was cut is not:
/// the rest of the line would be lost.
fn is_title(line: &str, title: &str) -> bool {
    let plain = |text: &str| -> String { text.chars().filter(|c| c.is_alphanumeric()).collect() };
    let (line, title) = (plain(line), plain(title));
    !title.is_empty() && line == title
}

/// What a text says cannot stand for a trailer of ours: commits and merges are found by them. The
/// line is quoted rather than dropped, so nothing of the summary is lost. Case does not count, as
/// it does not for git's trailers.
fn safe(line: &str) -> String {
    let start = line.trim_start();
    match start.get(..9) {
        Some(name) if name.eq_ignore_ascii_case("codespar-") => format!("> {start}"),
        _ => line.to_owned(),
    }
}

/// `1. `.
fn begins_item(line: &str) -> bool {
    let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    digits.len() < line.len() && digits.starts_with(". ")
}

/// Words that are wrapped together. Items of a list continue with an indentation of two columns, so
/// that they stay one item.
#[derive(Default)]
struct Paragraph(String);

impl Paragraph {
    fn add(&mut self, line: &str) {
        if !self.0.is_empty() {
            self.0.push(' ');
        }
        self.0.push_str(line);
    }

    /// Writes the words as lines of at most `WIDTH` characters and begins anew. A word that is
    /// longer, such as an address, gets a line of its own and is not broken.
    fn flush(&mut self, lines: &mut Vec<String>) {
        let text = std::mem::take(&mut self.0);
        let is_item = text.starts_with(['-', '*', '+']) || begins_item(&text);
        let indent = if is_item { "  " } else { "" };
        let mut line = String::new();
        for word in text.split_whitespace() {
            let width = line.chars().count() + 1 + word.chars().count();
            if !line.trim().is_empty() && width > WIDTH {
                // A line of its own must not look like a trailer of ours either.
                lines.push(safe(&std::mem::replace(&mut line, indent.to_owned())));
            }
            if !line.trim().is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        if !line.trim().is_empty() {
            lines.push(safe(&line));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_is_wrapped_without_its_title() {
        let summary = "**Raise the session timeout to 30 minutes.**\n\nSessions expired while people were still typing, because the limit was\ncounted from the login and not from the last request.\n\n- login.ts keeps the time of the last request, which is what the new limit counts from\n- `a` stays\n\n```ts\nconst limit = 30 * 60 * 1000 // a line of code that is longer than seventy-two columns\n```\n";
        assert_eq!(
            body(summary, "Raise the session timeout to 30 minutes"),
            "Sessions expired while people were still typing, because the limit was\ncounted from the login and not from the last request.\n\n- login.ts keeps the time of the last request, which is what the new\n  limit counts from\n- `a` stays\n\n```ts\nconst limit = 30 * 60 * 1000 // a line of code that is longer than seventy-two columns\n```"
        );
        assert_eq!(body("Fix it", "Fix it"), "");
        assert_eq!(body("Because of x.", "Fix it"), "Because of x.");
        assert_eq!(body("Fix it for all", "Fix it…"), "Fix it for all");
    }

    #[test]
    fn a_summary_cannot_forge_a_trailer() {
        for line in [
            "CodeSpar-Key: w-other",
            "  codespar-merge: #1 abc",
            "\tCodeSpar-Key: w-other",
        ] {
            let body = body(&format!("why\n\n{line}"), "Fix it");
            let forged = body
                .lines()
                .any(|line| line.trim().to_ascii_lowercase().starts_with("codespar-"));
            assert!(!forged, "{body}");
        }
        let wrapped = format!("{} CodeSpar-Key: w-other", "x".repeat(70));
        assert!(body(&wrapped, "Fix it").contains("\n> CodeSpar-Key:"));
        let long = "word\n\n".repeat(100);
        assert_eq!(body(&long, "Fix it").lines().count(), MOST_LINES + 1);
    }
}
