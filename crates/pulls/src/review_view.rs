//! What a reviewer is shown of a pull request: its purpose, its checks, and of each file the
//! numbered lines of the diff within the functions around them.
//!
//! Everything has a limit. Files come in the order of the care they need, so what does not fit is
//! what matters least, and the reader and the review are told which files that are.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use codespar_agent::Redactor;
use codespar_forge::{CommitChecks, Forge};
use codespar_outline::{Definitions, outline};
use codespar_protocol::{CheckState, PullRequest, RepoPath};

use crate::{
    Touched,
    diff::{DiffFile, DiffHunk, LineKind},
    risk::care_needed,
};

/// All that is shown of files, in bytes. About 40,000 tokens, at four bytes each.
const MOST_BYTES: usize = 160_000;
/// One file, so that it leaves room for others.
const MOST_FILE_BYTES: usize = 48_000;
/// Each costs a request where the repository is elsewhere.
const MOST_FILES_READ: usize = 40;
/// In bytes. A description may be a whole template with pasted output.
const MOST_DESCRIPTION: usize = 16_000;
/// In characters: a minified file has lines of megabytes.
const MOST_LINE: usize = 400;
/// A longer function is shown by its first lines and those near the change.
const MOST_BLOCK: u32 = 150;
/// Lines shown on each side of a hunk in such a function; half as many outside of functions.
const NEAR: u32 = 20;

/// The text for the model, and what it lacks.
pub(crate) struct ReviewView {
    pub(crate) text: String,
    /// Files of which nothing is shown.
    pub(crate) unseen: Vec<String>,
    /// Files that are shown in part.
    pub(crate) cut: Vec<String>,
}

impl ReviewView {
    /// Reads the changed files at the head for the code around the changes. A file that cannot be
    /// read is shown by its diff alone. The list of all files comes before the files, so that the
    /// model knows of those it is not shown. Files are read one after the other, at most
    /// `MOST_FILES_READ` of them.
    pub(crate) async fn make(
        forge: &dyn Forge,
        pull: &PullRequest,
        checks: &CommitChecks,
        files: &[DiffFile],
        redactor: &Redactor,
    ) -> Self {
        let mut ordered: Vec<&DiffFile> = files.iter().collect();
        ordered.sort_by_key(|file| {
            let lines = file.added + file.removed;
            (care_needed(&file.path), std::cmp::Reverse(lines))
        });
        let (mut unseen, mut cut) = (Vec::new(), Vec::new());
        let mut shown = String::new();
        for (index, file) in ordered.iter().enumerate() {
            let room = MOST_BYTES.saturating_sub(shown.len()).min(MOST_FILE_BYTES);
            let content = match index < MOST_FILES_READ && room > 0 && !file.is_deleted {
                true => content(forge, pull, file).await,
                false => None,
            };
            match FileView::new(file, content.as_deref(), redactor).fit(room) {
                Fitted::Whole(text) => shown.push_str(&text),
                Fitted::Part(text) => {
                    shown.push_str(&text);
                    cut.push(file.path.clone());
                }
                Fitted::Nothing => unseen.push(file.path.clone()),
            }
        }
        let mut text = String::new();
        purpose(&mut text, pull, checks, redactor);
        text.push_str("<files>\n");
        for file in &ordered {
            let touched = Touched {
                path: String::new(),
                added: file.added,
                removed: file.removed,
                is_deleted: file.is_deleted,
                parts: Vec::new(),
            };
            let deleted = if file.is_deleted { " deleted" } else { "" };
            let missing = match unseen.contains(&file.path) {
                true => " (not shown: too large)",
                false => "",
            };
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{} {}{deleted}{missing}", file.path, touched.lines());
        }
        text.push_str("</files>\n");
        text.push_str(&shown);
        Self { text, unseen, cut }
    }
}

/// Title, description and checks. All of it was written by others; the system prompt says that it
/// is data.
fn purpose(out: &mut String, pull: &PullRequest, checks: &CommitChecks, redactor: &Redactor) {
    // Cut after that: part of a secret would not be known for one.
    let body = redactor.redact(pull.body.trim());
    let end = body.floor_char_boundary(MOST_DESCRIPTION);
    let note = if end < body.len() { "\n[cut]" } else { "" };
    let _ = writeln!(
        out,
        "<title>{}</title>\n<description>\n{}{note}\n</description>\n<checks>",
        pull.title,
        &body[..end]
    );
    if checks.unknown.is_some() {
        out.push_str("unknown: they may not be read\n");
    } else if checks.checks.is_empty() {
        out.push_str("none has run\n");
    }
    for check in &checks.checks {
        let state = match check.state {
            CheckState::Success => "passed",
            CheckState::Failure => "failed",
            CheckState::Pending => "is not over",
        };
        let summary = check.summary.as_deref().unwrap_or_default();
        let summary: String = summary.chars().take(MOST_LINE).collect();
        let _ = writeln!(out, "{} {state}: {summary}", check.name);
    }
    out.push_str("</checks>\n");
}

/// At the head of the pull request. `None` for any failure, also of the forge: the diff is shown
/// then.
async fn content(forge: &dyn Forge, pull: &PullRequest, file: &DiffFile) -> Option<String> {
    let path = RepoPath::new(&file.path).ok()?;
    let found = forge.file(&pull.head_commit, &path).await.ok()??;
    String::from_utf8(found.content).ok()
}

enum Fitted {
    Whole(String),
    Part(String),
    Nothing,
}

/// One file, without its secrets.
struct FileView<'a> {
    file: &'a DiffFile,
    /// All lines of the new file; none if they are not known, or not those of the diff.
    lines: Vec<String>,
    redactor: &'a Redactor,
}

impl<'a> FileView<'a> {
    fn new(file: &'a DiffFile, content: Option<&str>, redactor: &'a Redactor) -> Self {
        let content = content.filter(|content| agrees(file, content));
        let lines = content.map(|content| redacted_lines(redactor, content));
        Self {
            file,
            lines: lines.unwrap_or_default(),
            redactor,
        }
    }

    /// With the code around it, else without, else as much as there is room for.
    fn fit(&self, room: usize) -> Fitted {
        let head = format!("<file path=\"{}\">\n", self.file.path);
        let tail = "</file>\n";
        let room = room.saturating_sub(head.len() + tail.len());
        let closed = |text: &str| format!("{head}{text}{tail}");
        let wide = self.wide();
        if let Some(text) = wide.filter(|text| text.len() <= room) {
            return Fitted::Whole(closed(&text));
        }
        let narrow = self.narrow();
        if narrow.len() <= room {
            return Fitted::Whole(closed(&narrow));
        }
        const NOTE: &str = "[the rest of this file's diff is not shown]\n";
        let end = narrow.floor_char_boundary(room.saturating_sub(NOTE.len()));
        match narrow[..end].rfind('\n') {
            Some(end) => Fitted::Part(closed(&format!("{}\n{NOTE}", &narrow[..end]))),
            None => Fitted::Nothing,
        }
    }

    /// The outline and the diff within the code around it. `None` if the lines of the file are not
    /// known. Removed lines stand before the line that follows them, also after the last line of a
    /// region, which is why the loop goes one further.
    fn wide(&self) -> Option<String> {
        if self.lines.is_empty() {
            return None;
        }
        let lines: Vec<&str> = self.lines.iter().map(String::as_str).collect();
        let mut out = String::new();
        let outline = outline(&lines);
        if outline.len() > 1 {
            out.push_str("outline:\n");
            for (number, text) in outline {
                let _ = writeln!(out, "{number:>5}\t{text}");
            }
            out.push_str("diff:\n");
        }
        let mut added = BTreeSet::new();
        let mut removed: BTreeMap<u32, Vec<&str>> = BTreeMap::new();
        for line in self.file.hunks.iter().flat_map(|hunk| &hunk.lines) {
            match line.kind {
                LineKind::Added => {
                    added.insert(line.at);
                }
                LineKind::Removed => removed.entry(line.at).or_default().push(&line.text),
                LineKind::Same => {}
            }
        }
        for (index, (from, to)) in self.regions(&lines).into_iter().enumerate() {
            if index > 0 {
                out.push_str("    …\n");
            }
            for number in from..=to + 1 {
                for text in removed.remove(&number).unwrap_or_default() {
                    self.line(&mut out, None, '-', &self.redactor.redact(text));
                }
                let index = usize::try_from(number - 1).unwrap_or(usize::MAX);
                let Some(text) = lines.get(index).filter(|_| number <= to) else {
                    continue;
                };
                let mark = match (added.contains(&number), self.file.shown.contains(&number)) {
                    (true, _) => '+',
                    (false, true) => ' ',
                    (false, false) => '|',
                };
                self.line(&mut out, Some(number), mark, text);
            }
        }
        Some(out)
    }

    /// First and last line of each part that is shown: hunks with the functions around them.
    /// Sorted, without overlaps; two with at most one line between them are one. A function of more
    /// than `MOST_BLOCK` lines gives its first three lines as a region of their own, so that the
    /// model sees whose lines these are.
    fn regions(&self, lines: &[&str]) -> Vec<(u32, u32)> {
        let last = u32::try_from(lines.len()).unwrap_or(u32::MAX);
        let definitions = Definitions::of(&self.file.path, lines);
        let mut regions = Vec::new();
        for hunk in &self.file.hunks {
            let Some((from, to)) = bounds(hunk) else {
                continue;
            };
            let (from, to) = (from.clamp(1, last), to.clamp(1, last));
            let (mut low, mut high) = (from, to);
            for at in changed(hunk) {
                let at = at.clamp(1, last);
                match definitions.enclosing(at) {
                    Some(block) if block.end() - block.start() < MOST_BLOCK => {
                        low = low.min(*block.start());
                        high = high.max(*block.end());
                    }
                    Some(block) => {
                        regions.push((*block.start(), (block.start() + 2).min(last)));
                        low = low.min(from.saturating_sub(NEAR).max(*block.start()));
                        high = high.max(to.saturating_add(NEAR).min(*block.end()));
                    }
                    None => {
                        low = low.min(from.saturating_sub(NEAR / 2).max(1));
                        high = high.max(to.saturating_add(NEAR / 2).min(last));
                    }
                }
            }
            regions.push((low, high));
        }
        regions.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::new();
        for (from, to) in regions {
            match merged.last_mut() {
                Some(before) if from <= before.1.saturating_add(2) => before.1 = before.1.max(to),
                _ => merged.push((from, to)),
            }
        }
        merged
    }

    /// The hunks alone.
    fn narrow(&self) -> String {
        let mut out = String::new();
        for hunk in &self.file.hunks {
            let _ = writeln!(out, "@@ {}", self.redactor.redact(&hunk.section));
            for line in &hunk.lines {
                let text = self.redactor.redact(&line.text);
                match line.kind {
                    LineKind::Same => self.line(&mut out, Some(line.at), ' ', &text),
                    LineKind::Added => self.line(&mut out, Some(line.at), '+', &text),
                    LineKind::Removed => self.line(&mut out, None, '-', &text),
                }
            }
        }
        if self.file.hunks.is_empty() {
            out.push_str("no lines: it was renamed, has another mode, or is binary\n");
        }
        out
    }

    /// A number, a tab and a mark: the redactor knows a key across such lines.
    fn line(&self, out: &mut String, number: Option<u32>, mark: char, text: &str) {
        let number = number.map(|number| number.to_string()).unwrap_or_default();
        let cut = text.char_indices().nth(MOST_LINE).map(|(at, _)| at);
        let (text, rest) = match cut {
            Some(at) => (&text[..at], "…"),
            None => (text, ""),
        };
        let _ = writeln!(out, "{number:>5}\t{mark}{text}{rest}");
    }
}

/// First and last line of a hunk in the new file.
fn bounds(hunk: &DiffHunk) -> Option<(u32, u32)> {
    let first = hunk.lines.first()?.at;
    let last = hunk.lines.last()?.at;
    Some((first, last.max(first)))
}

/// The first and the last line that a hunk changes; what is between is in the hunk.
fn changed(hunk: &DiffHunk) -> impl Iterator<Item = u32> {
    let mut lines = hunk.lines.iter().filter(|line| line.kind != LineKind::Same);
    let (first, last) = (lines.next(), lines.next_back());
    first.into_iter().chain(last).map(|line| line.at)
}

/// Whether the file is the one of the diff: something may have been pushed in between. Numbers of
/// the diff on lines of another version would mislead the model. Without hunks there is nothing to
/// contradict.
fn agrees(file: &DiffFile, content: &str) -> bool {
    let lines: Vec<&str> = content.lines().collect();
    let mut new = file.hunks.iter().flat_map(|hunk| &hunk.lines);
    new.all(|line| {
        let index = usize::try_from(line.at)
            .ok()
            .and_then(|at| at.checked_sub(1));
        line.kind == LineKind::Removed
            || index.and_then(|index| lines.get(index)) == Some(&line.text.as_str())
    })
}

/// The text without secrets, with as many lines as before: those that a secret of several lines
/// stood on are empty but for the first. Line numbers must not shift, since findings are placed by
/// them. Redacting line by line would miss a key that goes over several.
fn redacted_lines(redactor: &Redactor, text: &str) -> Vec<String> {
    let clean = redactor.redact(text);
    let mut clean = clean.lines().peekable();
    let mut lines: Vec<String> = Vec::new();
    let mut is_hidden = false;
    for line in text.lines() {
        // After a mark, whatever is not the next line that stayed belongs to the secret.
        if is_hidden
            && clean
                .peek()
                .is_some_and(|next| *next != line && *next != redactor.redact(line))
        {
            lines.push(String::new());
            continue;
        }
        let shown = clean.next().unwrap_or_default();
        is_hidden = shown != line;
        lines.push(shown.to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff;

    const KEY: &str = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEAxxxxxxxx\nabcdabcdabcdabcdabcd\n-----END RSA PRIVATE KEY-----";

    fn rendered(diff: &str, content: Option<&str>, room: usize) -> String {
        let files = diff::parse(diff);
        let redactor = Redactor::new([("K", "hunter22hunter22")]);
        match FileView::new(&files[0], content, &redactor).fit(room) {
            Fitted::Whole(text) => text,
            Fitted::Part(text) => format!("part {text}"),
            Fitted::Nothing => "nothing".to_owned(),
        }
    }

    const DIFF: &str = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -3,3 +3,3 @@ def one():\n     x = 1\n-    y = 2\n+    y = 3\n     z = 4\n";
    const CONTENT: &str = "import os\ndef one():\n    x = 1\n    y = 3\n    z = 4\n    return x\n\n\n\n\n\n\ndef two():\n    pass\n";

    #[test]
    fn lines_are_numbered_and_stand_in_their_function() {
        let expected = "<file path=\"a.py\">\noutline:\n    2\tdef one():\n   13\tdef two():\ndiff:\n    2\t|def one():\n    3\t     x = 1\n     \t-    y = 2\n    4\t+    y = 3\n    5\t     z = 4\n    6\t|    return x\n</file>\n";
        assert_eq!(rendered(DIFF, Some(CONTENT), 10_000), expected);
        // Another file than that of the diff is not mixed with it.
        let narrow = "<file path=\"a.py\">\n@@ def one():\n    3\t     x = 1\n     \t-    y = 2\n    4\t+    y = 3\n    5\t     z = 4\n</file>\n";
        assert_eq!(rendered(DIFF, Some("def one():\n"), 10_000), narrow);
        assert_eq!(rendered(DIFF, Some(CONTENT), narrow.len()), narrow);
        let part = rendered(DIFF, None, narrow.len() - 1);
        assert!(part.starts_with("part <file"), "{part}");
        assert!(part.contains("the rest of this file's diff is not shown"));
        assert!(part.len() <= narrow.len() + "part ".len());
        assert_eq!(rendered(DIFF, None, 30), "nothing");
    }

    #[test]
    fn lines_that_go_at_the_end_of_a_file_are_shown_once() {
        let diff = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,3 +1,1 @@\n one\n-two\n-three\n";
        let shown = rendered(diff, Some("one\n"), 10_000);
        assert_eq!(
            shown,
            "<file path=\"a\">\n    1\t one\n     \t-two\n     \t-three\n</file>\n"
        );
        let all = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,2 +0,0 @@\n-one\n-two\n";
        let shown = rendered(all, Some(""), 10_000);
        assert_eq!(shown.matches("-one").count(), 1, "{shown}");
    }

    #[test]
    fn a_secret_of_several_lines_is_hidden_and_the_numbers_stay() {
        let text = format!("a = 1\n{KEY}\npassword = 'hunter22hunter22'\nb = 2\n");
        let redactor = Redactor::new([("K", "hunter22hunter22")]);
        let lines = redacted_lines(&redactor, &text);
        assert_eq!(lines.len(), text.lines().count());
        assert_eq!(lines[0], "a = 1");
        assert_eq!(&lines[2..5], ["", "", ""]);
        assert_eq!(lines[6], "b = 2");
        let all = lines.join("\n");
        assert!(!all.contains("MIIE") && !all.contains("hunter22"), "{all}");
    }
}
