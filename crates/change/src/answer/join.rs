//! Joining an answer that was cut at its length limit with what came after.
//!
//! A continuation is taken as exact: it starts at the character where the text stopped. It is
//! shortened only where taking it so is not believable, because it begins with what the text ended
//! with:
//!
//! - **the line that was cut, from its start** (with or without its indentation), when what is
//!   repeated has at least [`LINE_CHARS`] characters, or, with its indentation, a letter and one
//!   more character: a line that says its own beginning twice is not written;
//! - **a marker that was cut**, however little of it there was;
//! - **any other text, from the start of a word**, when it has at least [`TEXT_CHARS`] characters
//!   and is nowhere else in the answer so far. What is there more than once may well come once
//!   more, so lines that repeat are never taken for an overlap.
//!
//! A text that repeats a shorter one (`ababab`) is never an overlap. White space does not count as
//! characters.
//!
//! A code fence that the continuation opens with goes when an overlap follows it, or when the block
//! that is open is no Markdown and a fence would not fit where the text stopped. The marker of the
//! block that is still open, said again, goes too; when the block's beginning follows it, the block
//! starts anew and the part that was cut is dropped.
//!
//! What this cannot tell: a long text that truly comes twice in a row, for the first time, with the
//! cut exactly between the two; a newline that the model left out after the cut; a column that
//! equals the one before it at the start of an indented line (`  NA  NA`).

use super::{
    fence::{is_markdown, opening},
    markers::{Marker, marker},
};

/// How much of a cut line must be repeated to be taken for a repetition.
const LINE_CHARS: usize = 8;
/// How much of any other text.
const TEXT_CHARS: usize = 16;
/// Overlaps longer than this many bytes are not looked for.
const LONGEST: usize = 8 * 1024;

/// The parts of one answer as one text, what continuations repeat taken away.
pub fn join(parts: &[String]) -> String {
    let mut text = String::new();
    for part in parts {
        append(&mut text, part);
    }
    text
}

/// If the text ends in a complete marker, what follows begins a new line: models leave out the
/// newline that the cut swallowed.
fn append(text: &mut String, next: &str) {
    if text.is_empty() || next.is_empty() {
        text.push_str(next);
        return;
    }
    let unfenced = without_fence(next);
    for candidate in [Some(next), unfenced].into_iter().flatten() {
        if restart(text, candidate) {
            return;
        }
        if let Some(length) = overlap(text, candidate) {
            text.push_str(&candidate[length..]);
            return;
        }
    }
    let next = match unfenced {
        Some(unfenced) if fence_is_foreign(text) => unfenced,
        _ => next,
    };
    let last = last_line(text);
    let ends_marker = marker(last).is_some() && !next.starts_with(char::is_whitespace);
    if ends_marker && marker(&format!("{last}{}", first_line(next))).is_none() {
        text.push('\n');
    }
    text.push_str(next);
}

/// What follows a first line that opens a fence.
fn without_fence(next: &str) -> Option<&str> {
    let (first, rest) = next.split_once('\n')?;
    opening(first).map(|_| rest)
}

/// Whether a fence cannot belong where the text stopped: in a file that is no Markdown, at the
/// start of a line or after words.
fn fence_is_foreign(text: &str) -> bool {
    let last = last_line(text);
    let fits = !last.is_empty() && !last.contains(char::is_alphanumeric);
    open_block(text).is_some_and(|(_, path)| !is_markdown(path)) && !fits
}

/// Handles a continuation that says the marker of the open block again; false if it does not.
fn restart(text: &mut String, next: &str) -> bool {
    let Some((start, path)) = open_block(text) else {
        return false;
    };
    if marker(first_line(next)) != Some(Marker::File(path)) {
        return false;
    }
    let body = after_line(&text[start..]);
    let again = after_line(next);
    let head: usize = body.split_inclusive('\n').take(2).map(str::len).sum();
    let begins_anew = again.starts_with(&body[..head]);
    if begins_anew {
        text.truncate(start);
        text.push_str(next);
    } else if let Some(length) = overlap(text, again) {
        text.push_str(&again[length..]);
    } else if text.ends_with('\n') {
        text.push_str(again);
    } else {
        // Neither anew nor onwards: with the marker on a line of its own, the reader refuses it.
        text.push('\n');
        text.push_str(next);
    }
    true
}

/// Where the block that has not ended starts, and its path.
fn open_block(text: &str) -> Option<(usize, &str)> {
    let mut open = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        match marker(line) {
            Some(Marker::File(path)) => open = Some((at, path)),
            Some(Marker::End) => open = None,
            _ => {}
        }
        at += line.len();
    }
    open
}

/// How many bytes at the start of `next` repeat the end of `text`.
fn overlap(text: &str, next: &str) -> Option<usize> {
    let length = longest_overlap(text, next);
    let is_text = length > 0 && is_repeated_text(text, &next[..length]);
    is_text
        .then_some(length)
        .or_else(|| repeated_line(last_line(text), next))
}

/// The longest end of `text` that `next` starts with, in bytes.
fn longest_overlap(text: &str, next: &str) -> usize {
    let tail = &text.as_bytes()[text.len().saturating_sub(LONGEST)..];
    let head = &next.as_bytes()[..next.len().min(LONGEST)];
    // No byte of UTF-8 is 0xff, so a border never crosses it.
    let joined = [head, &[0xff], tail].concat();
    borders(&joined).last().copied().unwrap_or(0)
}

/// For every beginning of `bytes`, the longest shorter beginning that it also ends with. The
/// failure function of Knuth, Morris and Pratt, in linear time: trying every length would be
/// quadratic in text that a model controls.
fn borders(bytes: &[u8]) -> Vec<usize> {
    let mut borders = vec![0; bytes.len()];
    for at in 1..bytes.len() {
        let mut length = borders[at - 1];
        while length > 0 && bytes[at] != bytes[length] {
            length = borders[length - 1];
        }
        borders[at] = length + usize::from(bytes[at] == bytes[length]);
    }
    borders
}

fn is_repeated_text(text: &str, repeated: &str) -> bool {
    let before = &text[..text.len() - repeated.len()];
    let inside_word =
        before.ends_with(char::is_alphanumeric) && repeated.starts_with(char::is_alphanumeric);
    let again = text.find(repeated) != Some(before.len());
    size(repeated) >= TEXT_CHARS && !inside_word && !again && !is_periodic(repeated)
}

/// The cut line, said again from its start.
fn repeated_line(line: &str, next: &str) -> Option<usize> {
    let content = line.trim_start();
    if content.is_empty() {
        return None;
    }
    if next.starts_with(line) && marker(first_line(next)).is_some() && marker(line).is_none() {
        return Some(line.len());
    }
    let is_long = size(content) >= LINE_CHARS;
    let is_worded = size(content) >= 2 && content.contains(char::is_alphabetic);
    if is_periodic(content) {
        None
    } else if next.starts_with(line) && (is_long || (is_worded && line.len() > content.len())) {
        Some(line.len())
    } else {
        (is_long && next.starts_with(content)).then_some(content.len())
    }
}

/// Characters that are not white space.
fn size(text: &str) -> usize {
    text.chars().filter(|c| !c.is_whitespace()).count()
}

/// Whether it is a shorter text over and over.
fn is_periodic(text: &str) -> bool {
    let border = borders(text.as_bytes()).last().copied().unwrap_or(0);
    2 * (text.len() - border) <= text.len()
}

fn last_line(text: &str) -> &str {
    text.rsplit('\n').next().unwrap_or(text)
}

fn first_line(text: &str) -> &str {
    text.split('\n').next().unwrap_or(text)
}

fn after_line(text: &str) -> &str {
    text.split_once('\n').map_or("", |(_, rest)| rest)
}
