//! Foreign text on a terminal: nothing in it may be obeyed.

use std::borrow::Cow;

/// Whether a terminal would obey a character, or would show others in another order for it.
pub fn is_unprintable(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c,
            '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}' | '\u{feff}'
            | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether a character has no meaning in any text. Programs use these for marks of their own, so
/// they must not come from elsewhere.
pub fn is_noncharacter(c: char) -> bool {
    ('\u{fdd0}'..='\u{fdef}').contains(&c)
}

/// The text with unprintable characters escaped and without noncharacters.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(|c| is_unprintable(c) || is_noncharacter(c)) {
        return Cow::Borrowed(text);
    }
    let mut result = String::with_capacity(text.len() + 16);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            // The line end of another system.
            '\r' if chars.peek() == Some(&'\n') => {}
            c if is_noncharacter(c) => {}
            c if is_unprintable(c) => result.extend(c.escape_unicode()),
            c => result.push(c),
        }
    }
    Cow::Owned(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_and_marks_lose_their_effect() {
        assert_eq!(printable("plain\ttext\n"), "plain\ttext\n");
        assert_eq!(printable("a\r\nb\u{1b}[2J\u{fdd0}c"), "a\nb\\u{1b}[2Jc");
        assert_eq!(printable("\u{202e}gnp"), "\\u{202e}gnp");
    }
}
