//! Where motions lead to: functions of a text and an offset on a grapheme boundary.
//!
//! A word is letters, digits and underscores; a chip is a word of its own.

use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

use super::chips::is_mark;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Blank,
    Word,
    Chip,
    Other,
}

fn class(grapheme: &str) -> Class {
    match grapheme.chars().next() {
        Some(c) if is_mark(c) => Class::Chip,
        Some(c) if c.is_whitespace() => Class::Blank,
        Some(c) if c.is_alphanumeric() || c == '_' => Class::Word,
        _ => Class::Other,
    }
}

/// The nearest boundary that is not before `at`.
pub(super) fn boundary_from(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at += 1;
    }
    let mut cursor = GraphemeCursor::new(at, text.len(), true);
    match cursor.is_boundary(text, 0) {
        Ok(false) => cursor
            .next_boundary(text, 0)
            .ok()
            .flatten()
            .unwrap_or(text.len()),
        _ => at,
    }
}

pub(super) fn left(text: &str, at: usize) -> usize {
    let last = text[..at].graphemes(true).next_back();
    at - last.map_or(0, str::len)
}

pub(super) fn right(text: &str, at: usize) -> usize {
    let first = text[at..].graphemes(true).next();
    at + first.map_or(0, str::len)
}

/// The beginning of the word before.
pub(super) fn word_left(text: &str, at: usize) -> usize {
    let is_word = |one: Class| matches!(one, Class::Word | Class::Chip);
    let start = back_while(text, at, |one| !is_word(one));
    match text[..start].graphemes(true).next_back().map(class) {
        Some(Class::Word) => back_while(text, start, |one| one == Class::Word),
        Some(Class::Chip) => left(text, start),
        _ => start,
    }
}

/// The end of the word after.
pub(super) fn word_right(text: &str, at: usize) -> usize {
    let is_word = |one: Class| matches!(one, Class::Word | Class::Chip);
    let start = forward_while(text, at, |one| !is_word(one));
    match text[start..].graphemes(true).next().map(class) {
        Some(Class::Word) => forward_while(text, start, |one| one == Class::Word),
        Some(Class::Chip) => right(text, start),
        _ => start,
    }
}

/// The beginning of what stands between blanks before.
pub(super) fn blank_word_left(text: &str, at: usize) -> usize {
    let end = back_while(text, at, |one| one == Class::Blank);
    back_while(text, end, |one| one != Class::Blank)
}

/// The beginning of the next word or run of other characters, as vi's `w` has it.
pub(super) fn next_start(text: &str, at: usize) -> usize {
    let here = text[at..].graphemes(true).next().map(class);
    let end = match here {
        Some(Class::Chip) => right(text, at),
        Some(here) => forward_while(text, at, |one| one == here),
        None => at,
    };
    forward_while(text, end, |one| one == Class::Blank)
}

/// The last character of the next word or run of other characters, as vi's `e` has it.
pub(super) fn next_end(text: &str, at: usize) -> usize {
    let start = forward_while(text, right(text, at), |one| one == Class::Blank);
    let end = match text[start..].graphemes(true).next().map(class) {
        Some(Class::Chip) | None => return start,
        Some(here) => forward_while(text, start, |one| one == here),
    };
    left(text, end)
}

/// The beginning of the word or run of other characters before, as vi's `b` has it.
pub(super) fn previous_start(text: &str, at: usize) -> usize {
    let end = back_while(text, at, |one| one == Class::Blank);
    match text[..end].graphemes(true).next_back().map(class) {
        Some(Class::Chip) => left(text, end),
        Some(here) => back_while(text, end, |one| one == here),
        None => end,
    }
}

pub(super) fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

pub(super) fn line_end(text: &str, at: usize) -> usize {
    text[at..]
        .find('\n')
        .map_or(text.len(), |newline| at + newline)
}

fn back_while(text: &str, at: usize, holds: impl Fn(Class) -> bool) -> usize {
    let graphemes = text[..at].graphemes(true).rev();
    let passed = graphemes.take_while(|one| holds(class(one)));
    at - passed.map(str::len).sum::<usize>()
}

fn forward_while(text: &str, at: usize, holds: impl Fn(Class) -> bool) -> usize {
    let graphemes = text[at..].graphemes(true);
    let passed = graphemes.take_while(|one| holds(class(one)));
    at + passed.map(str::len).sum::<usize>()
}
