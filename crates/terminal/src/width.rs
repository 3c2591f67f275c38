//! How many columns text takes, never fewer than any terminal would give it.
//!
//! Terminals disagree about emoji of several code points, variation selectors and characters of
//! ambiguous width. A row that is too wide by one terminal's count wraps there, and everything
//! below it is off by one. So the larger count is taken.

use codespar_policy::printable;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns between tab stops.
const TAB: usize = 4;

/// Of one grapheme cluster: its width as a whole, or that of its code points one by one, whichever
/// is more.
pub fn of_grapheme(grapheme: &str) -> usize {
    let apart: usize = grapheme.chars().filter_map(UnicodeWidthChar::width).sum();
    grapheme.width().max(apart)
}

pub fn of(text: &str) -> usize {
    match text.is_ascii() {
        true => text.len(),
        false => text.graphemes(true).map(of_grapheme).sum(),
    }
}

/// Whether all terminals agree on the width, so that the terminal may be left to wrap the text.
/// They do not on emoji, which became wide with different versions of Unicode, nor on characters
/// without a width, which some show.
pub fn is_certain(text: &str) -> bool {
    let is_agreed = |c: char| {
        c < '\u{1f000}' && c.width() == c.width_cjk() && c.width().is_some_and(|width| width > 0)
    };
    text.is_ascii()
        || text.graphemes(true).all(|grapheme| {
            let mut chars = grapheme.chars();
            chars.next().is_some_and(is_agreed) && chars.next().is_none()
        })
}

/// The longest prefix of at most so many columns; graphemes stay whole.
pub fn prefix(text: &str, columns: usize) -> &str {
    let mut used = 0;
    for (at, grapheme) in text.grapheme_indices(true) {
        used += of_grapheme(grapheme);
        if used > columns {
            return &text[..at];
        }
    }
    text
}

/// At most so many columns; what was cut is shown as an ellipsis.
pub fn shortened(text: &str, columns: usize) -> String {
    if of(text) <= columns {
        return text.to_owned();
    }
    match columns {
        0 => String::new(),
        _ => format!("{}…", prefix(text, columns - 1)),
    }
}

/// A line as it can be shown: control characters escaped, and blanks for tabs, of which terminals
/// and our own buffers think differently.
pub fn shown(line: &str) -> String {
    let line = printable(line);
    let mut result = String::with_capacity(line.len());
    let mut column = 0;
    for (at, part) in line.split('\t').enumerate() {
        if at > 0 {
            let blanks = TAB - column % TAB;
            result.extend(std::iter::repeat_n(' ', blanks));
            column += blanks;
        }
        result.push_str(part);
        column += of(part);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_larger_of_two_counts_is_taken() {
        assert_eq!(of("abc"), 3);
        assert_eq!(of("漢字"), 4);
        assert_eq!(of("👩\u{200d}💻"), 4);
        assert_eq!(of("é"), 1);
        assert_eq!(of("e\u{301}"), 1);
        assert!(is_certain("漢字 abc"));
        assert!(!is_certain("👩\u{200d}💻"));
        assert!(!is_certain("…"));
        assert!(!is_certain("🙂"));
        assert!(!is_certain("漢\u{ad}"));
    }

    #[test]
    fn text_is_cut_between_graphemes() {
        assert_eq!(prefix("a漢b", 2), "a");
        assert_eq!(shortened("hello world", 8), "hello w…");
        assert_eq!(shortened("hello", 5), "hello");
        assert_eq!(shortened("hello", 0), "");
    }

    #[test]
    fn tabs_go_to_the_next_stop() {
        assert_eq!(shown("\ta\tbcd\te"), "    a   bcd e");
        assert_eq!(shown("\u{1b}c"), "\\u{1b}c");
    }
}
