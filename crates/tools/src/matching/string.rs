//! Replacing a string: the Edit tool's unit. Exact first, whole lines of the ladder second.
//!
//! Four attempts, each only when the one before found nothing:
//!
//! 1. The text exactly as given, anywhere, also within a line.
//! 2. The same with CRLF and LF taken as equal, in a file that uses only one of them.
//! 3. As whole lines on the looser rungs, like a block with one change.
//! 4. Within a line, runs of blanks between words taken as equal.
//!
//! Ambiguity ends the search at any of them. New text gets the line ends of the file, whichever it
//! came with.

use std::borrow::Cow;

use memchr::memmem;

use super::{
    MatchFailure, Rung,
    blanks::{differ_in_quotes, places_of_words},
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
    /// How many lines the first occurrence covers in the old text.
    pub old_lines: usize,
    /// How many lines it covers in the new text.
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
            None => loosely(body, &file, old, new)?,
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
        old_lines: 0,
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
    let ends = Ends::of(file);
    let mut text = String::with_capacity(body.len() + places.len() * new.len());
    let mut next = 0;
    for &at in &places {
        text.push_str(&body[next..at]);
        text.push_str(&ends.put_on(new, old, &body[at..]));
        next = at + old.len();
    }
    text.push_str(&body[next..]);
    Ok(Some(Replaced {
        text,
        count: places.len(),
        rung: Rung::Exact,
        first_line: line_of(body, first),
        old_lines: line_count(old),
        new_lines: line_count(new),
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

/// As whole lines, then within a line. Text that is within lines as well as a whole line is in more
/// than one place.
fn loosely(body: &str, file: &[Line<'_>], old: &str, new: &str) -> Result<Replaced, MatchFailure> {
    let as_lines = whole_lines(file, old, new);
    let may_be_within = match &as_lines {
        Ok(replaced) => replaced.rung == Rung::InnerBlanks,
        Err(failure) => matches!(failure, MatchFailure::NotFound { .. }),
    };
    let places = match may_be_within {
        true => places_of_words(body, old),
        false => Vec::new(),
    };
    match places.as_slice() {
        [place] if as_lines.is_err() => {
            let line = line_of(body, place.start);
            let there = file.get(line - 1).map_or("", |line| line.text);
            let column = place.start - body[..place.start].rfind('\n').map_or(0, |at| at + 1);
            // The blanks in front are the file's, so that quotes that opened there count.
            let believed = format!("{}{old}", &there[..column]);
            if differ_in_quotes(&believed, &there[..column + place.len()]) {
                return as_lines;
            }
            let new = Ends::of(file).put_on(new, old, &body[place.start..]);
            Ok(Replaced {
                text: [&body[..place.start], &new, &body[place.end..]].concat(),
                count: 1,
                rung: Rung::InnerBlanks,
                first_line: line,
                old_lines: 1,
                new_lines: line_count(&new),
            })
        }
        [] | [_] => as_lines,
        several => {
            let starts: Vec<usize> = several.iter().map(|place| place.start).collect();
            Err(ambiguous(body, &starts, Rung::InnerBlanks))
        }
    }
}

/// Finding nothing is an error with the nearest text. Whether or not both texts end with a newline
/// decides what they mean as lines:
///
/// ```text
/// old ends with \n, new too       both as lines
/// old ends with \n, new empty     the lines are deleted
/// old ends with \n, new without   both as lines at the end of the file; elsewhere refused: it
///                                 would join lines
/// old without                     both as lines
/// ```
fn whole_lines(file: &[Line<'_>], old: &str, new: &str) -> Result<Replaced, MatchFailure> {
    // A newline at the end belongs to the last line here; as a block it would be one line more.
    let (lines, replacement) = match (old.strip_suffix('\n'), new.strip_suffix('\n')) {
        (Some(old), Some(new)) => (old, block_lines(new)),
        (Some(old), None) if new.is_empty() => (old, Vec::new()),
        (without, _) => (without.unwrap_or(old), block_lines(new)),
    };
    if lines.is_empty() {
        return Err(not_found(file, lines, ""));
    }
    let mut change = change_of(file, lines, &replacement)?;
    if old.ends_with('\n') && !new.is_empty() && !new.ends_with('\n') {
        if change.lines.end < file.len() {
            // The next line would be joined to this one: only exact text can ask for that.
            return Err(not_found(file, lines, new));
        }
        change
            .text
            .truncate(change.text.trim_end_matches(['\r', '\n']).len());
    }
    let (rung, first_line) = (change.rung, change.lines.start + 1);
    let old_lines = change.lines.len();
    let new_lines = line_count(&change.text);
    Ok(Replaced {
        text: assemble(file, &[(0, change)]),
        count: 1,
        rung,
        first_line,
        old_lines,
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

/// The line ends of a file.
enum Ends {
    /// It has no line end to go by.
    None,
    /// All of them are this.
    Only(&'static str),
    Mixed,
}

impl Ends {
    fn of(file: &[Line<'_>]) -> Self {
        let usual = usual_end(file);
        match file.first() {
            Some(first) if !first.end.is_empty() => match uses_only(file, usual) {
                true => Self::Only(usual),
                false => Self::Mixed,
            },
            _ => Self::None,
        }
    }

    /// `new` with the file's ends. Where the file has both kinds, a text within a line gets the end
    /// of that line, which is the next one in `rest`; a text over several lines was copied with
    /// its ends and says itself what it wants.
    fn put_on<'n>(&self, new: &'n str, old: &str, rest: &str) -> Cow<'n, str> {
        let end = match self {
            Self::Only(end) => end,
            Self::Mixed if !old.contains('\n') => match rest.split_once('\n') {
                Some((line, _)) if line.ends_with('\r') => "\r\n",
                Some(_) => "\n",
                None => return Cow::Borrowed(new),
            },
            Self::Mixed | Self::None => return Cow::Borrowed(new),
        };
        if !new.contains('\n') {
            return Cow::Borrowed(new);
        }
        let plain = new.replace("\r\n", "\n");
        Cow::Owned(match end {
            "\n" => plain,
            end => plain.replace('\n', end),
        })
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
