//! Pairs that stand outside a `FILE` block, which models write when one file is the subject.
//!
//! Such a pair is read only where both questions have one answer. **Which file?** The one named
//! alone on the line above, the one whose block was begun, the one of the pair directly before, or
//! the only one that was shown. **Where does it end?** The seven-character form says so itself; a
//! `>>>REPLACE` text ends at `===END===`, at the code fence around the pair, or at the next marker
//! or the end of the answer if nothing in it can be taken for something else
//! ([`unended`](super::unended)).

use codespar_tools::matching::Block;

use super::{
    AnswerContext, AnswerEnding,
    body::{BodyProblem, Pairs},
    fence::{Fence, edges, opening},
    markers::{Marker, bare, marker, unescape},
    unended,
};

/// Words that may stand before a path on the line that names it.
const LEADS: &[&str] = &["file", "path", "in", "edit", "update", "change", "modify"];

/// A pair and the lines it took.
pub(super) struct BarePair {
    pub(super) block: Block,
    /// Counted from the SEARCH marker, with an `===END===` or a closing fence.
    pub(super) used: usize,
    /// The fence around it goes on: another pair follows in it.
    pub(super) in_fence: bool,
}

/// Reads the pair that starts at the first of these lines; `fence` is the one that is open there.
pub(super) fn pair(
    lines: &[&str],
    fence: Option<Fence<'_>>,
    path: &str,
    ending: AnswerEnding,
) -> Result<BarePair, BodyProblem> {
    let mut pairs = Pairs::new(lines);
    if marker(lines[0]) == Some(Marker::LongSearch) {
        let block = pairs.long()?;
        let next = lines[pairs.at..]
            .iter()
            .find(|line| !line.trim().is_empty());
        let closes = |fence: Fence<'_>| next.is_some_and(|line| fence.is_closed_by(line));
        return Ok(BarePair {
            block,
            used: pairs.at,
            in_fence: fence.is_some_and(|fence| !closes(fence)),
        });
    }
    pairs.at = 1;
    let search = pairs.text(unescape, |_| false);
    if pairs.marker() != Some(Marker::Replace) {
        return Err(pairs.unanswered(0, "<<<SEARCH", ">>>REPLACE"));
    }
    let from = pairs.at + 1;
    let rest = &lines[from..];
    let length = rest.iter().position(|line| marker(line).is_some());
    let text = &rest[..length.unwrap_or(rest.len())];
    let next = length.and_then(|at| marker(rest[at]));
    let found = match (fence, next) {
        (_, Some(Marker::Replace | Marker::LongReplace)) => Err((
            text.len(),
            "this marker has no SEARCH of its own".to_owned(),
        )),
        (Some(fence), _) if text.iter().any(|line| opening(line).is_some()) => fenced(fence, text),
        (None, Some(Marker::End)) => Ok((text, text.len() + 1, false)),
        (None, None) if ending == AnswerEnding::Unknown => Err((
            0,
            "the text after `>>>REPLACE` never ends; the answer seems to be cut: put the pair \
             between `===FILE: path===` and `===END===`"
                .to_owned(),
        )),
        (Some(_), None) => Err((
            0,
            "the code fence around the pair does not close".to_owned(),
        )),
        (fence, _) => {
            open_ended(path, &search, text).map(|kept| (kept, text.len(), fence.is_some()))
        }
    };
    let (kept, used, in_fence) = found.map_err(|(line, reason)| (from + line, reason))?;
    let replace: Vec<&str> = kept.iter().map(|line| unescape(line)).collect();
    Ok(BarePair {
        block: Block {
            search,
            replace: replace.join("\n"),
        },
        used: from + used,
        in_fence,
    })
}

/// The lines up to the one fence that closes it. A second fence could be the file's. The slice, the
/// number of lines used, and whether the fence goes on.
fn fenced<'s, 'a>(
    fence: Fence<'_>,
    text: &'s [&'a str],
) -> Result<(&'s [&'a str], usize, bool), BodyProblem> {
    let fences: Vec<usize> = (0..text.len())
        .filter(|&at| opening(text[at]).is_some())
        .collect();
    let last = edges(text).map(|(_, last)| last);
    match fences.as_slice() {
        [at] if fence.is_closed_by(text[*at]) => Ok((&text[..*at], *at + 1, false)),
        // The next pair has a fence of its own, directly above it.
        [at, next] if fence.is_closed_by(text[*at]) && last == Some(*next) => {
            Ok((&text[..*at], *at + 1, false))
        }
        _ => Err((
            fences.first().copied().unwrap_or(0),
            "it is not clear which code fence ends the pair; put it between `===FILE: path===` and \
             `===END===`, without fences"
                .to_owned(),
        )),
    }
}

/// A text that ends at a marker or with the answer, without the blank lines before that.
fn open_ended<'s, 'a>(
    path: &str,
    search: &str,
    text: &'s [&'a str],
) -> Result<&'s [&'a str], BodyProblem> {
    if let Some((line, what)) = unended::doubt(path, text) {
        return Err((line, unended::refusal(what)));
    }
    let kept = &text[..edges(text).map_or(0, |(_, last)| last + 1)];
    // With blank lines at the end of SEARCH, those at the end of REPLACE may be meant.
    let blanks = text.len() - kept.len();
    let last = search.rsplit('\n').next().unwrap_or_default();
    if blanks > 0 && last.trim().is_empty() {
        return Err((
            kept.len(),
            unended::refusal("blank lines that may or may not belong to the file"),
        ));
    }
    Ok(kept)
}

/// What the line above a pair says of its file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Named<'a> {
    /// It names this path and says nothing else.
    Alone(&'a str),
    /// It has a path in it, among other words.
    Mentioned(&'a str),
    Nothing,
}

/// Reads the line above a pair. A shown path counts also if it does not look like one (`Makefile`).
/// A path that was not shown and has no slash is only believed if it stands alone: in a sentence it
/// may be a word.
pub(super) fn named<'a>(line: &'a str, context: &AnswerContext<'_>) -> Named<'a> {
    let words: Vec<&str> = line
        .split_whitespace()
        .map(undecorated)
        .filter(|word| !word.is_empty())
        .collect();
    let is_path = |word: &str| context.shown.contains(&word) || is_path_like(word);
    let is_lead = |word: &str| LEADS.contains(&word.to_ascii_lowercase().as_str());
    match words.as_slice() {
        [word] if is_path(word) => Named::Alone(word),
        [lead, word] if is_lead(lead) && is_path(word) => Named::Alone(word),
        words => words
            .iter()
            .find(|word| {
                context.shown.contains(*word) || (is_path_like(word) && word.contains('/'))
            })
            .map_or(Named::Nothing, |word| Named::Mentioned(word)),
    }
}

/// Without Markdown and punctuation around it.
fn undecorated(word: &str) -> &str {
    let word = word.trim_start_matches(['#', '*', '-', '>', '(', '"', '\'']);
    bare(word.trim_end_matches(['*', ':', ',', ')', '"', '\'']))
}

/// A name with an ending, or in a directory.
pub(super) fn is_path_like(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    let is_plain = |c: char| c.is_alphanumeric() || "_-./@+[]".contains(c);
    let has_ending = name
        .rsplit_once('.')
        .is_some_and(|(_, ending)| (1..=10).contains(&ending.len()));
    word.chars().all(is_plain)
        && !name.is_empty()
        && word.chars().any(char::is_alphabetic)
        && (has_ending || word.contains('/'))
}
