//! Web addresses in text, so that each can be a link to itself.

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

fn start_of_scheme(before: &str) -> Option<usize> {
    let scheme = ["https", "http"]
        .into_iter()
        .find(|one| before.ends_with(one))?;
    let start = before.len() - scheme.len();
    let is_word = before[..start].ends_with(|c: char| c.is_alphanumeric());
    (!is_word).then_some(start)
}

fn belongs(c: char) -> bool {
    c.is_ascii_graphic() && !matches!(c, '<' | '>' | '"' | '`' | '\\' | '|' | '{' | '}' | '^')
}

/// The length without what ends a sentence or a pair of brackets around the address.
fn without_punctuation(address: &str) -> usize {
    let mut kept = address;
    loop {
        let count = |c| kept.matches(c).count();
        let is_outside = match kept.chars().last() {
            Some('.' | ',' | ';' | ':' | '!' | '?' | '\'' | '*' | '_') => true,
            Some(')') => count(')') > count('('),
            Some(']') => count(']') > count('['),
            _ => false,
        };
        if !is_outside {
            return kept.len();
        }
        kept = &kept[..kept.len() - 1];
    }
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
    fn other_schemes_are_no_links() {
        assert_eq!(
            found("file:///etc/passwd javascript://x xhttp://y"),
            [""; 0]
        );
        assert_eq!(found("https:// http://"), [""; 0]);
        assert_eq!(found(&format!("https://{}", "a".repeat(3000))), [""; 0]);
    }
}
