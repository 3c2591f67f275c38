//! Web addresses in text, so that each can be a link to itself.
//!
//! Only `http` and `https`, and only what can be read: the target of a link is its text.

use std::ops::Range;

/// VTE ignores longer ones.
const LONGEST: usize = 2083;

/// Where the addresses are. Each is of printable ASCII only.
pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find("://") {
        let colon = from + at;
        from = colon + 3;
        let Some(start) = start_of_scheme(&text[..colon]) else {
            continue;
        };
        let rest = &text[from..];
        let length = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        let length = without_punctuation(&rest[..length]);
        let end = from + length;
        if length > 0 && end - start <= LONGEST {
            found.push(start..end);
        }
        from = end;
    }
    found
}

/// Not within a word: `xhttp://` is none.
fn start_of_scheme(before: &str) -> Option<usize> {
    let scheme = ["https", "http"]
        .into_iter()
        .find(|one| before.ends_with(one))?;
    let start = before.len() - scheme.len();
    let is_word = before[..start].ends_with(|c: char| c.is_alphanumeric());
    (!is_word).then_some(start)
}

/// Printable ASCII without what usually stands around an address.
fn belongs(c: char) -> bool {
    c.is_ascii_graphic() && !matches!(c, '<' | '>' | '"' | '`' | '\\' | '|' | '{' | '}' | '^')
}

/// The length without what ends a sentence or a pair of brackets around the address.
///
/// Brackets are counted once: counting again for each that is left out would take minutes for a
/// line of closing brackets.
fn without_punctuation(address: &str) -> usize {
    let bytes = address.as_bytes();
    let count = |one: u8| bytes.iter().filter(|byte| **byte == one).count();
    let (mut round, mut square) = (count(b')'), count(b']'));
    let (opened_round, opened_square) = (count(b'('), count(b'['));
    let mut length = bytes.len();
    while let Some(last) = bytes[..length].last() {
        match last {
            b'.' | b',' | b';' | b':' | b'!' | b'?' | b'\'' | b'*' | b'_' => {}
            b')' if round > opened_round => round -= 1,
            b']' if square > opened_square => square -= 1,
            _ => break,
        }
        length -= 1;
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<&str> {
        find(text).into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn addresses_end_before_the_punctuation_of_the_sentence() {
        assert_eq!(found("see https://a.b/c?d=e."), ["https://a.b/c?d=e"]);
        assert_eq!(found("(http://a.b/c_(d))"), ["http://a.b/c_(d)"]);
        assert_eq!(found("http://a, https://b"), ["http://a", "https://b"]);
        assert_eq!(found("<https://a.b>"), ["https://a.b"]);
        assert_eq!(found("https://a.b/漢"), ["https://a.b/"]);
    }

    #[test]
    fn a_line_of_closing_brackets_takes_no_longer_than_another() {
        let text = format!("https://a{}", ")".repeat(1_000_000));
        assert_eq!(found(&text), ["https://a"]);
        let text = format!("https://a({}", ")".repeat(1_000_000));
        assert_eq!(found(&text), ["https://a()"]);
    }

    #[test]
    fn other_schemes_are_no_links() {
        assert_eq!(
            found("file:///etc/passwd javascript://x xhttp://y"),
            [""; 0]
        );
        assert_eq!(found("https:// http://"), [""; 0]);
        assert_eq!(found(&format!("https://{}", "a".repeat(3000))), [""; 0]);
    }
}
