//! Text from outside, made harmless for a terminal.

use std::borrow::Cow;

/// Escapes what could move the cursor, hide words or turn their order round. Line ends and tabs
/// stay.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_treacherous) {
        return Cow::Borrowed(text);
    }
    let mut clean = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_treacherous(c) {
            clean.extend(c.escape_unicode());
        } else {
            clean.push(c);
        }
    }
    Cow::Owned(clean)
}

fn is_treacherous(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_reversals_are_shown_not_obeyed() {
        assert_eq!(plain("a\tb\nc é"), "a\tb\nc é");
        assert_eq!(
            plain("x\u{1b}[2K\r\u{202e}gnp"),
            "x\\u{1b}[2K\\u{d}\\u{202e}gnp"
        );
    }
}
