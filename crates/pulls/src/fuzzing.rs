//! Entry points for fuzz targets. Each checks what must hold for any text.

use crate::{diff, markdown};

/// Reads a unified diff: per file its name and the lines of the new side that it shows.
pub fn diff(text: &str) -> Vec<(String, Vec<u32>)> {
    let files = diff::parse(text);
    let lines = text.lines().count();
    for file in &files {
        assert!(file.added + file.removed <= lines);
        assert!(file.shown.len() <= lines);
    }
    let pairs = files.into_iter();
    pairs
        .map(|file| (file.path, file.shown.into_iter().collect()))
        .collect()
}

/// Puts foreign text into markdown of ours: nobody is mentioned, no tag or image is left, and a
/// fence that it opens is closed.
pub fn markdown(text: &str) {
    for out in [markdown::foreign(text), markdown::line(text)] {
        let mut before = ' ';
        let mut rest = out.chars().peekable();
        while let Some(c) = rest.next() {
            let next = rest.peek().copied().unwrap_or(' ');
            let mentions = c == '@' && !before.is_ascii_alphanumeric() && next.is_alphanumeric();
            assert!(!mentions, "{out:?}");
            assert!(c != '<' || !(next.is_ascii_alphabetic() || "!?/".contains(next)));
            assert!(c != '!' || next != '[');
            assert!(!c.is_control() || c == '\n' || c == '\t');
            before = c;
        }
    }
    let once = markdown::foreign(text);
    let with_ours = format!("{once}\n\nours");
    let again = markdown::foreign(&with_ours);
    assert!(
        again.ends_with("\n\nours"),
        "a fence was left open: {once:?}"
    );
    assert!(!markdown::code(text).contains(['`', '\n', '|']));
}
