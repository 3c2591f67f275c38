//! Reading a unified diff: which files, which lines of the new file it shows, and what they say.
//!
//! Used for reviews, for counting lines of a pull request that others made, and for the web page.
//! The text comes from git or from GitHub, so its form is known, but the lines in it are not: a
//! line of a file may itself read `+++ b/x` or `@@ -1 +1 @@`. The counts in a hunk's header say how
//! many lines belong to it, and headers are looked for only between hunks.

use std::collections::BTreeSet;

/// What changes in one place of the tree, with the lines around it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiffFile {
    /// Its name afterwards, or before when it goes.
    pub path: String,
    /// Lines added.
    pub added: usize,
    /// Lines removed.
    pub removed: usize,
    /// The whole file goes.
    pub is_deleted: bool,
    /// Lines of the new file that the diff shows, so that a remark can stand on them.
    pub shown: BTreeSet<u32>,
    /// In the order of the file. None of a binary file, and of one that was only renamed or has
    /// another mode.
    pub hunks: Vec<DiffHunk>,
}

/// Lines that belong together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiffHunk {
    /// What git names as the function around it; empty if it names none.
    pub section: String,
    pub lines: Vec<DiffLine>,
}

/// A line without its mark and its newline. A carriage return before the newline is not part of it
/// either, since the text is split by `str::lines`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffLine {
    pub kind: LineKind,
    /// Its number in the new file; of a removed line, the number of the line that follows it.
    pub at: u32,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    Same,
    Added,
    Removed,
}

impl DiffFile {
    /// Adds a line to the last hunk.
    fn push(&mut self, kind: LineKind, at: u32, text: &str) {
        if kind != LineKind::Removed {
            self.shown.insert(at);
        }
        match kind {
            LineKind::Added => self.added += 1,
            LineKind::Removed => self.removed += 1,
            LineKind::Same => {}
        }
        let text = text.to_owned();
        if let Some(hunk) = self.hunks.last_mut() {
            hunk.lines.push(DiffLine { kind, at, text });
        }
    }
}

/// Reads the output of `git diff`. What it cannot read it leaves out. Never fails: a diff that was
/// cut gives the files and lines up to the cut, and lines before the first `diff --git` are
/// skipped.
pub fn parse(diff: &str) -> Vec<DiffFile> {
    let mut files: Vec<DiffFile> = Vec::new();
    // Lines of the present hunk that are still to come: old, new, and the next new line.
    let mut hunk: Option<(u32, u32, u32)> = None;
    for line in diff.lines() {
        if let Some((old, new, at)) = hunk
            && (old > 0 || new > 0)
            && let Some(file) = files.last_mut()
        {
            hunk = Some(match line.as_bytes().first() {
                Some(b'+') => {
                    file.push(LineKind::Added, at, &line[1..]);
                    (old, new.saturating_sub(1), at.saturating_add(1))
                }
                Some(b'-') => {
                    file.push(LineKind::Removed, at, &line[1..]);
                    (old.saturating_sub(1), new, at)
                }
                Some(b'\\') => (old, new, at),
                _ => {
                    let text = line.strip_prefix(' ').unwrap_or(line);
                    file.push(LineKind::Same, at, text);
                    (
                        old.saturating_sub(1),
                        new.saturating_sub(1),
                        at.saturating_add(1),
                    )
                }
            });
            continue;
        }
        if let Some(rest) = line.strip_prefix("diff --git ") {
            hunk = None;
            files.push(DiffFile {
                path: header_path(rest),
                ..DiffFile::default()
            });
        } else if let Some(file) = files.last_mut() {
            if let Some(path) = line.strip_prefix("+++ ").and_then(|path| named(path, "b/")) {
                file.path = path;
            } else if let Some(path) = line.strip_prefix("rename to ") {
                file.path = unquoted(path);
            } else if line.starts_with("deleted file mode ") {
                file.is_deleted = true;
            } else if let Some(rest) = line.strip_prefix("@@ ") {
                hunk = hunk_header(rest);
                if hunk.is_some() {
                    let section = rest.split_once(" @@").map_or("", |(_, section)| section);
                    file.hunks.push(DiffHunk {
                        section: section.trim().to_owned(),
                        lines: Vec::new(),
                    });
                }
            }
        }
    }
    files
}

/// `-1,4 +1,5 @@ …` → old lines, new lines, first new line. A range without a comma has one line.
/// `None` for what is no header; the lines after it are skipped then, as are those of a combined
/// diff, whose headers begin with `@@@`.
fn hunk_header(rest: &str) -> Option<(u32, u32, u32)> {
    let mut ranges = rest.split(' ');
    let range = |word: &str, sign: char| -> Option<(u32, u32)> {
        let word = word.strip_prefix(sign)?;
        let (start, count) = word.split_once(',').unwrap_or((word, "1"));
        Some((start.parse().ok()?, count.parse().ok()?))
    };
    let (_, old) = range(ranges.next()?, '-')?;
    let (start, new) = range(ranges.next()?, '+')?;
    Some((old, new, start))
}

/// `a/x b/x`: both halves are the same unless it is a rename, which has lines of its own. It is
/// only believed until a `+++` or a `rename to` names the file: those have no second name in them
/// that could be taken for a part of the first. Files without lines (another mode, binary) have
/// nothing else.
fn header_path(rest: &str) -> String {
    if rest.starts_with('"') {
        return rest
            .rsplit_once(" \"")
            .and_then(|(_, last)| named(&format!("\"{last}"), "b/"))
            .unwrap_or_default();
    }
    let half = rest.len() / 2;
    rest.get(half + 1..)
        .and_then(|path| path.strip_prefix("b/"))
        .unwrap_or_default()
        .to_owned()
}

/// The path in a `+++` line; `None` for `/dev/null`, which is what a deleted file has there. Git
/// ends the line with a tab if the name has a space in it.
fn named(text: &str, side: &str) -> Option<String> {
    let text = unquoted(text.trim_end_matches('\t'));
    text.strip_prefix(side).map(str::to_owned)
}

/// Names with unusual bytes are quoted as C strings. Bytes that are not UTF-8 after that are
/// replaced, so such a path does not agree with the forge's; a file of that name is shown by its
/// diff alone.
fn unquoted(text: &str) -> String {
    let Some(inner) = text
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'))
    else {
        return text.to_owned();
    };
    let mut bytes = Vec::new();
    let mut rest = inner.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(b't') => bytes.push(b'\t'),
            Some(b'n') => bytes.push(b'\n'),
            Some(first @ b'0'..=b'3') => {
                let digits = [
                    first,
                    rest.next().unwrap_or(b'0'),
                    rest.next().unwrap_or(b'0'),
                ];
                let value = digits.iter().fold(0_u32, |sum, digit| {
                    sum * 8 + u32::from(digit.saturating_sub(b'0'))
                });
                bytes.push(u8::try_from(value & 0xff).unwrap_or_default());
            }
            Some(other) => bytes.push(other),
            None => {}
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_lines_and_names_are_read() {
        let diff = "diff --git a/src/a.rs b/src/a.rs\nindex 1..2 100644\n--- a/src/a.rs\n+++ b/src/a.rs\n\
                    @@ -1,3 +1,4 @@ fn main\n one\n-two\n+2\n+++ plus\n three\n\
                    diff --git a/gone.txt b/gone.txt\ndeleted file mode 100644\n--- a/gone.txt\n+++ /dev/null\n\
                    @@ -1 +0,0 @@\n-x\n\\ No newline at end of file\n\
                    diff --git a/old.rs b/new.rs\nsimilarity index 100%\nrename from old.rs\nrename to new.rs\n\
                    diff --git \"a/\\303\\274.txt\" \"b/\\303\\274.txt\"\nnew file mode 100644\n--- /dev/null\n+++ \"b/\\303\\274.txt\"\n@@ -0,0 +1 @@\n+y\n";
        let file = |path: &str, added, removed, is_deleted, shown: &[u32]| DiffFile {
            path: path.to_owned(),
            added,
            removed,
            is_deleted,
            shown: shown.iter().copied().collect(),
            hunks: Vec::new(),
        };
        let mut files = parse(diff);
        let line = |kind, at, text: &str| DiffLine {
            kind,
            at,
            text: text.to_owned(),
        };
        let first = DiffHunk {
            section: "fn main".to_owned(),
            lines: vec![
                line(LineKind::Same, 1, "one"),
                line(LineKind::Removed, 2, "two"),
                line(LineKind::Added, 2, "2"),
                line(LineKind::Added, 3, "++ plus"),
                line(LineKind::Same, 4, "three"),
            ],
        };
        assert_eq!(files[0].hunks, [first]);
        files.iter_mut().for_each(|file| file.hunks.clear());
        assert_eq!(
            files,
            [
                file("src/a.rs", 2, 1, false, &[1, 2, 3, 4]),
                file("gone.txt", 0, 1, true, &[]),
                file("new.rs", 0, 0, false, &[]),
                file("ü.txt", 1, 0, false, &[1]),
            ]
        );
        assert_eq!(parse("nonsense\n@@ -x +y @@\n"), []);
    }

    #[test]
    fn a_line_number_past_all_bounds_is_no_crash() {
        let diff = "diff --git a/x b/x\n+++ b/x\n@@ -1,3 +4294967295,3 @@\n+a\n+b\n c\n";
        assert_eq!(parse(diff)[0].added, 2);
    }
}
