//! Replacing a string: the Edit tool's unit. Exact first, whole lines of the ladder second.
//!
//! Three attempts, each only when the one before found nothing:
//!
//! 1. The text exactly as given, anywhere, also within a line.
//! 2. The same with CRLF and LF taken as equal, in a file that uses only one of them.
//! 3. As whole lines on the looser rungs, like a block with one change.
//!
//! Ambiguity ends the search at any of them. New text gets the line ends of the file where these
//! are all alike.

use memchr::memmem;

use super::{
    MatchFailure, Rung,
    blocks::{assemble, change_of},
    lines::{Line, block_lines, file_lines, split_bom, usual_end},
    nearest::nearest,
};

/// How many occurrences are replaced. On the looser rungs the text has to be in one place in both
/// cases: the places may differ from each other, and one replacement would not fit them all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occurrence {
    /// The only one.
    One,
    /// Every one.
    All,
}

/// The outcome of a replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replaced {
    /// The new text of the file.
    pub text: String,
    /// How many occurrences were replaced.
    pub count: usize,
    /// How closely the text agreed.
    pub rung: Rung,
    /// The line of the first occurrence, from 1.
    pub first_line: usize,
    /// How many lines the first occurrence covers in the new text.
    pub new_lines: usize,
}

/// Replaces `old` by `new`. `old` must be in the file once, or anywhere at all with
/// [`Occurrence::All`]. When it is not there exactly but is made of whole lines, the ladder may
/// still find its one place.
pub fn replace_string(
    original: &str,
    old: &str,
    new: &str,
    occurrence: Occurrence,
) -> Result<Replaced, MatchFailure> {
    let (bom, body) = split_bom(original);
    let old = split_bom(old).1;
    if old == new {
        return Err(MatchFailure::NoChange);
    }
    if old.is_empty() {
        return created(bom, body, new);
    }
    let file = file_lines(body);
    let replaced = match exact(body, &file, old, new, occurrence)? {
        Some(replaced) => replaced,
        None => match across_line_ends(body, &file, old, new, occurrence)? {
            Some(replaced) => replaced,
            None => whole_lines(&file, old, new)?,
        },
    };
    Ok(Replaced {
        text: bom.to_owned() + &replaced.text,
        ..replaced
    })
}

/// An empty old text fills an empty file. The new text is taken as it is, without a newline added.
fn created(bom: &str, body: &str, new: &str) -> Result<Replaced, MatchFailure> {
    if !body.is_empty() {
        return Err(MatchFailure::EmptySearch);
    }
    Ok(Replaced {
        text: bom.to_owned() + new,
        count: 1,
        rung: Rung::Exact,
        first_line: 1,
        new_lines: line_count(new),
    })
}

/// `None` when the text is not there. The offsets are bytes, which is safe: a match of valid UTF-8
/// in valid UTF-8 begins and ends at characters.
fn exact(
    body: &str,
    file: &[Line<'_>],
    old: &str,
    new: &str,
    occurrence: Occurrence,
) -> Result<Option<Replaced>, MatchFailure> {
    let places = places(body, old, occurrence);
    let Some(&first) = places.first() else {
        return Ok(None);
    };
    if occurrence == Occurrence::One && places.len() > 1 {
        return Err(ambiguous(body, &places, Rung::Exact));
    }
    let new = with_ends_of(file, new);
    let mut text = String::with_capacity(body.len() + places.len() * new.len());
    let mut next = 0;
    for &at in &places {
        text.push_str(&body[next..at]);
        text.push_str(&new);
        next = at + old.len();
    }
    text.push_str(&body[next..]);
    Ok(Some(Replaced {
        text,
        count: places.len(),
        rung: Rung::Exact,
        first_line: line_of(body, first),
        new_lines: line_count(&new),
    }))
}

/// The same with line ends aside: a file with CRLF is searched and changed as if it had LF, then
/// gets its own ends back. A file with both keeps to exact text and whole lines.
fn across_line_ends(
    body: &str,
    file: &[Line<'_>],
    old: &str,
    new: &str,
    occurrence: Occurrence,
) -> Result<Option<Replaced>, MatchFailure> {
    let end = usual_end(file);
    if !uses_only(file, end) || !(body.contains('\r') || old.contains('\r')) {
        return Ok(None);
    }
    let plain = |text: &str| text.replace("\r\n", "\n");
    let (body, old, new) = (plain(body), plain(old), plain(new));
    if old == new {
        return Ok(None);
    }
    let replaced = exact(&body, &file_lines(&body), &old, &new, occurrence)?;
    Ok(replaced.map(|replaced| Replaced {
        text: if end == "\n" {
            replaced.text
        } else {
            replaced.text.replace('\n', end)
        },
        rung: Rung::TrailingSpace,
        ..replaced
    }))
}

/// The last attempt, so finding nothing is an error with the nearest text. Whether or not both
/// texts end with a newline decides what they mean as lines:
///
/// ```text
/// old ends with \n, new too       both as lines
/// old ends with \n, new empty     the lines are deleted
/// old ends with \n, new without   refused: it would join lines
/// old without                     both as lines
/// ```
fn whole_lines(file: &[Line<'_>], old: &str, new: &str) -> Result<Replaced, MatchFailure> {
    // A newline at the end belongs to the last line here; as a block it would be one line more.
    let (old, new) = match (old.strip_suffix('\n'), new.strip_suffix('\n')) {
        (Some(old), Some(new)) => (old, Some(new)),
        (Some(old), None) if new.is_empty() => (old, None),
        // The next line would be joined to this one: only exact text can ask for that.
        (Some(old), None) => return Err(not_found(file, old, new)),
        (None, _) => (old, Some(new)),
    };
    if old.is_empty() {
        return Err(not_found(file, old, ""));
    }
    let replacement = new.map(block_lines).unwrap_or_default();
    let change = change_of(file, old, &replacement)?;
    let (rung, first_line) = (change.rung, change.lines.start + 1);
    let new_lines = line_count(&change.text);
    Ok(Replaced {
        text: assemble(file, &[(0, change)]),
        count: 1,
        rung,
        first_line,
        new_lines,
    })
}

fn not_found(file: &[Line<'_>], old: &str, new: &str) -> MatchFailure {
    MatchFailure::NotFound {
        nearest: nearest(file, &block_lines(old), &block_lines(new)),
    }
}

/// Byte offsets: overlapping ones when one is asked for, as each is a place it could mean.
fn places(body: &str, old: &str, occurrence: Occurrence) -> Vec<usize> {
    let finder = memmem::Finder::new(old);
    if occurrence == Occurrence::All {
        return finder.find_iter(body.as_bytes()).collect();
    }
    let mut found: Vec<usize> = finder.find_iter(body.as_bytes()).collect();
    if let [only] = found.as_slice() {
        let step = body[*only..].chars().next().map_or(1, char::len_utf8);
        let from = only + step;
        found.extend(finder.find(&body.as_bytes()[from..]).map(|at| from + at));
    }
    found
}

fn ambiguous(body: &str, places: &[usize], rung: Rung) -> MatchFailure {
    let mut lines = Vec::with_capacity(places.len());
    let (mut line, mut from) = (1, 0);
    for &at in places {
        line += newlines(&body[from..at]);
        from = at;
        lines.push(line);
    }
    MatchFailure::Ambiguous { rung, lines }
}

/// `new` with CRLF where the whole file has it: a model writes plain newlines.
fn with_ends_of(file: &[Line<'_>], new: &str) -> String {
    if usual_end(file) == "\r\n" && uses_only(file, "\r\n") {
        new.replace("\r\n", "\n").replace('\n', "\r\n")
    } else {
        new.to_owned()
    }
}

fn uses_only(file: &[Line<'_>], end: &str) -> bool {
    file.iter()
        .all(|line| line.end.is_empty() || line.end == end)
}

fn line_of(body: &str, at: usize) -> usize {
    1 + newlines(&body[..at])
}

fn newlines(text: &str) -> usize {
    memchr::memchr_iter(b'\n', text.as_bytes()).count()
}

fn line_count(text: &str) -> usize {
    newlines(text) + usize::from(!text.is_empty() && !text.ends_with('\n'))
}
