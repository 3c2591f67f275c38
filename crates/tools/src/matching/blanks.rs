//! Runs of blanks within a line: where two lines differ by nothing else.
//!
//! A run of spaces and tabs is the same as any other run, but not the same as none: `f(a, b)` is
//! `f(a,  b)` and never `f(a,b)`. That is layout, such as aligned columns, which a model often
//! repeats with single spaces. Within quotes it is content, so a text whose blanks differ there is
//! not what the file has.

use std::{borrow::Cow, ops::Range};

use memchr::memmem;

use super::lines::trim;

const BLANKS: [char; 2] = [' ', '\t'];

/// The line trimmed, with one space for each run of blanks.
pub(super) fn collapsed(line: Cow<'_, str>) -> Cow<'_, str> {
    let single = |text: &str| !text.contains('\t') && !text.contains("  ");
    match line {
        Cow::Borrowed(line) if single(trim(line)) => Cow::Borrowed(trim(line)),
        line => Cow::Owned(words(&line).collect::<Vec<_>>().join(" ")),
    }
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    trim(line).split(BLANKS).filter(|word| !word.is_empty())
}

/// Whether the lines, which have the same words, have other blanks between them somewhere within
/// quotes. An apostrophe counts as a quote: a refusal too many is better than a changed string.
pub(super) fn differ_in_quotes(ours: &str, theirs: &str) -> bool {
    let (mut ours, mut theirs) = (trim(ours), trim(theirs));
    let mut quote = None;
    loop {
        let (our_word, our_rest) = split_word(ours);
        let (word, rest) = split_word(theirs);
        quote = quote_after(word, quote);
        let (our_gap, our_next) = split_gap(our_rest);
        let (gap, next) = split_gap(rest);
        if quote.is_some() && our_gap != gap {
            return true;
        }
        if our_word.is_empty() || word.is_empty() {
            return false;
        }
        (ours, theirs) = (our_next, next);
    }
}

fn split_word(line: &str) -> (&str, &str) {
    line.split_at(line.find(BLANKS).unwrap_or(line.len()))
}

fn split_gap(line: &str) -> (&str, &str) {
    line.split_at(line.len() - line.trim_start_matches(BLANKS).len())
}

/// Other quotes within one are text, as is whatever follows a backslash.
fn quote_after(word: &str, mut open: Option<char>) -> Option<char> {
    let mut is_escaped = false;
    for c in word.chars() {
        if is_escaped {
            is_escaped = false;
            continue;
        }
        match (c, open) {
            ('\\', _) => is_escaped = true,
            ('\'' | '"' | '`', None) => open = Some(c),
            (c, Some(quote)) if c == quote => open = None,
            _ => {}
        }
    }
    open
}

/// Where the words of `text` are within a line of `body`, one after another with any blanks
/// between them, overlapping places too. Nothing for a single word and for a text that begins or
/// ends with a blank. A place does not begin or end in the middle of a name or a number.
pub(super) fn places_of_words(body: &str, text: &str) -> Vec<Range<usize>> {
    let words: Vec<&str> = words(text).collect();
    if words.len() < 2 || trim(text) != text || text.contains('\n') {
        return Vec::new();
    }
    let finder = memmem::Finder::new(words[0]);
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = finder.find(&body.as_bytes()[from..]) {
        let start = from + at;
        from = start + body[start..].chars().next().map_or(1, char::len_utf8);
        let Some(end) = end_of_words(body, start, &words) else {
            continue;
        };
        let is_apart = !in_a_name(body, start) && !in_a_name(body, end);
        if is_apart {
            found.push(start..end);
        }
    }
    found
}

fn end_of_words(body: &str, start: usize, words: &[&str]) -> Option<usize> {
    let mut rest = &body[start..];
    for (index, word) in words.iter().enumerate() {
        if index > 0 {
            let (gap, next) = split_gap(rest);
            if gap.is_empty() {
                return None;
            }
            rest = next;
        }
        rest = rest.strip_prefix(word)?;
    }
    Some(body.len() - rest.len())
}

fn in_a_name(body: &str, at: usize) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    body[..at].chars().next_back().is_some_and(is_part)
        && body[at..].chars().next().is_some_and(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_of_blanks_is_any_other_run_but_not_none() {
        let same = |a, b| collapsed(Cow::Borrowed(a)) == collapsed(Cow::Borrowed(b));
        assert!(same("\tlet  a\t= 1;  ", "let a = 1;"));
        assert!(!same("f(a,b)", "f(a, b)"));
    }

    #[test]
    fn blanks_within_quotes_are_content() {
        assert!(differ_in_quotes("f(\"a b\")", "f(\"a  b\")"));
        assert!(differ_in_quotes(r#"f("\" b")"#, r#"f("\"  b")"#));
        assert!(!differ_in_quotes("x = \"a b\"", "x   = \"a b\""));
        assert!(!differ_in_quotes("f('a', b)", "f('a',  b)"));
    }

    #[test]
    fn words_are_found_within_a_line_and_not_within_names() {
        let body = "let x  = 1;\nmax  = 10;\nx\n= 1\n";
        assert_eq!(
            places_of_words(body, "x = 1"),
            std::slice::from_ref(&(4..10))
        );
        assert!(places_of_words(body, "x").is_empty());
        assert_eq!(places_of_words("a  a  a", "a a"), [0..4, 3..7]);
    }
}
