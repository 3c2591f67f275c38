//! Which lines a diff shows: remarks can only be made on those.
//!
//! GitHub refuses a whole review if one remark is on a line outside the diff. The parser reads
//! unified diffs from GitHub and must not panic on any text; a hunk's counts decide where it ends,
//! not what its lines look like.

use std::collections::{HashMap, HashSet};

/// The lines on the new side, by file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ShownLines(HashMap<String, HashSet<u32>>);

impl ShownLines {
    /// Added and unchanged lines count, removed ones do not exist on the new side. What is not a
    /// hunk or a file header is skipped.
    pub(crate) fn of(diff: &str) -> Self {
        let mut shown = Self::default();
        let mut path = String::new();
        // Lines of the hunk that are still to come, old and new: what looks like a head inside a
        // hunk is content.
        let (mut old, mut new, mut at) = (0, 0, 0);
        for line in diff.lines() {
            if old > 0 || new > 0 {
                match line.as_bytes().first() {
                    Some(b'-') => old -= 1,
                    Some(b'\\') => {}
                    first => {
                        if *first.unwrap_or(&b' ') != b'+' {
                            old -= 1;
                        }
                        shown.0.entry(path.clone()).or_default().insert(at);
                        new -= 1;
                        at = at.saturating_add(1);
                    }
                }
            } else if let Some(name) = line.strip_prefix("+++ ") {
                path = file_name(name);
            } else if let Some(hunk) = line.strip_prefix("@@ ").and_then(hunk) {
                (old, new, at) = hunk;
            }
        }
        shown
    }

    /// Each file with each of its lines.
    #[cfg(feature = "fuzzing")]
    pub(crate) fn into_pairs(self) -> impl Iterator<Item = (String, u32)> {
        let files = self.0.into_iter();
        files.flat_map(|(path, lines)| lines.into_iter().map(move |line| (path.clone(), line)))
    }

    pub(crate) fn has(&self, path: &str, line: u32) -> bool {
        self.0.get(path).is_some_and(|lines| lines.contains(&line))
    }
}

/// `b/src/x.rs`, or the same in quotes with escapes.
fn file_name(name: &str) -> String {
    let name = name.trim_end_matches('\t');
    let plain = match name
        .strip_prefix('"')
        .and_then(|name| name.strip_suffix('"'))
    {
        Some(quoted) => unquoted(quoted),
        None => name.to_owned(),
    };
    plain.strip_prefix("b/").unwrap_or(&plain).to_owned()
}

/// Git writes bytes past ASCII as three octal digits.
fn unquoted(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let octal = rest
            .get(..3)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        if let Some(value) = octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            bytes.push(value);
            rest = &rest[3..];
        } else if let Some((&escaped, after)) = rest.split_first() {
            bytes.push(match escaped {
                b't' => b'\t',
                b'n' => b'\n',
                other => other,
            });
            rest = after;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// `-1,4 +1,6 @@ …` as (old lines, new lines, first new line). `None` for a line that only looks
/// like the head of a hunk.
fn hunk(text: &str) -> Option<(i64, i64, u32)> {
    let mut ranges = text.split(' ');
    let (_, old) = range(ranges.next()?.strip_prefix('-')?)?;
    let (start, new) = range(ranges.next()?.strip_prefix('+')?)?;
    Some((old, new, start))
}

fn range(text: &str) -> Option<(u32, i64)> {
    match text.split_once(',') {
        Some((start, count)) => Some((start.parse().ok()?, count.parse().ok()?)),
        None => Some((text.parse().ok()?, 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_and_kept_lines_are_shown_and_content_that_looks_like_a_head_is_content() {
        let diff = "diff --git a/x.sql b/x.sql\n--- a/x.sql\n+++ b/x.sql\n@@ -3,3 +3,4 @@ top\n same\n--- old\n+++ new\n+more\n last\n\\ No newline at end of file\ndiff --git a/ü b/ü\n--- /dev/null\n+++ \"b/\\303\\274\"\n@@ -0,0 +1 @@\n+one\n";
        let shown = ShownLines::of(diff);
        let expected = HashMap::from([
            ("x.sql".to_owned(), HashSet::from([3, 4, 5, 6])),
            ("ü".to_owned(), HashSet::from([1])),
        ]);
        assert_eq!(shown, ShownLines(expected));
        assert!(shown.has("x.sql", 6) && !shown.has("x.sql", 7) && !shown.has("y", 1));
    }

    #[test]
    fn a_line_number_past_all_bounds_is_no_crash() {
        let shown = ShownLines::of("+++ b/x\n@@ -1,3 +4294967295,3 @@\n+a\n+b\n c\n");
        assert!(shown.has("x", u32::MAX));
    }
}
