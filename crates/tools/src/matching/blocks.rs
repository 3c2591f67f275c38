//! SEARCH/REPLACE blocks over whole lines: all of them or none.
//!
//! Whole lines, so that `10` never changes `100`. Each block is found in the original text, then
//! all changes are put in at once; a block therefore never sees what another one wrote, and two
//! that touch the same line are refused rather than applied in some order.

use std::ops::Range;

use super::{
    BlockFailure, MatchFailure, Rung,
    ladder::{Found, find},
    lines::{Line, block_lines, file_lines, is_blank, split_bom, usual_end},
    nearest::nearest,
    rewrite::rewrite,
};

/// Lines to find and lines to put there. Texts are lines joined by newlines, without a final one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The lines to find; empty only for an empty file.
    pub search: String,
    /// The lines to put there; empty deletes.
    pub replace: String,
}

/// What became of one block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedBlock {
    /// How closely its text agreed.
    pub rung: Rung,
    /// The lines of the original it replaced, from 1, the end excluded.
    pub lines: Range<usize>,
}

/// The outcome of all blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppliedEdits {
    /// The new text of the file.
    pub text: String,
    /// One for each block, in the order given.
    pub blocks: Vec<AppliedBlock>,
}

/// Applies every block to `original`, or none. Each block is matched against the original, so
/// their order does not matter.
///
/// The failures are those of all blocks, in their order, so that one answer to the model names
/// everything that has to be corrected. Bytes outside of the matched lines are kept, also the byte
/// order mark and a missing final newline.
pub fn apply_blocks(original: &str, blocks: &[Block]) -> Result<AppliedEdits, Vec<BlockFailure>> {
    let (bom, body) = split_bom(original);
    let file = file_lines(body);
    let mut failures = Vec::new();
    let mut changes = Vec::new();
    for (block, Block { search, replace }) in blocks.iter().enumerate() {
        let replacement = if replace.is_empty() {
            Vec::new()
        } else {
            block_lines(replace)
        };
        match change_of(&file, search, &replacement) {
            Ok(change) => changes.push((block, change)),
            Err(reason) => failures.push(BlockFailure { block, reason }),
        }
    }
    changes.sort_by_key(|(block, change)| (change.lines.start, change.lines.end, *block));
    failures.extend(overlaps(&changes));
    if !failures.is_empty() {
        failures.sort_by_key(|failure| failure.block);
        return Err(failures);
    }
    let text = bom.to_owned() + &assemble(&file, &changes);
    changes.sort_by_key(|(block, _)| *block);
    let blocks = changes
        .into_iter()
        .map(|(_, change)| AppliedBlock {
            rung: change.rung,
            lines: change.lines.start + 1..change.lines.end + 1,
        })
        .collect();
    Ok(AppliedEdits { text, blocks })
}

/// Lines of the file and the text that takes their place, terminators included.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) rung: Rung,
    /// From 0, the end excluded. Empty only for the content of an empty file.
    pub(super) lines: Range<usize>,
    pub(super) text: String,
}

/// Finds `search` and writes `replacement` the way the file is written there.
pub(super) fn change_of(
    file: &[Line<'_>],
    search: &str,
    replacement: &[&str],
) -> Result<Change, MatchFailure> {
    let search = split_bom(search).1;
    if search.is_empty() {
        return new_content(file, replacement);
    }
    let wanted = block_lines(search);
    let place = locate(file, &wanted, replacement)?;
    let lines = place.at..place.at + place.wanted.len();
    let text = rewrite(
        file,
        lines.clone(),
        place.wanted,
        place.replacement,
        place.rung,
    )?;
    Ok(Change {
        rung: place.rung,
        lines,
        text,
    })
}

/// An empty search is the way to fill an empty file, and refused on any other: it could mean any
/// place.
fn new_content(file: &[Line<'_>], replacement: &[&str]) -> Result<Change, MatchFailure> {
    if !file.is_empty() {
        return Err(MatchFailure::EmptySearch);
    }
    let mut text = replacement.join("\n");
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(Change {
        rung: Rung::Exact,
        lines: 0..0,
        text,
    })
}

/// One place, and the parts of the block that count there.
struct Place<'s, 'a> {
    rung: Rung,
    at: usize,
    wanted: &'s [&'a str],
    replacement: &'s [&'a str],
}

/// Looks for the lines as they are and, when they are nowhere, without blank lines at their edges
/// that the file does not have.
///
/// The whole ladder is climbed with the blank edges before it is tried without them. Lines inside
/// are never skipped.
fn locate<'s, 'a>(
    file: &[Line<'_>],
    wanted: &'s [&'a str],
    replacement: &'s [&'a str],
) -> Result<Place<'s, 'a>, MatchFailure> {
    let not_found = || MatchFailure::NotFound {
        nearest: nearest(file, wanted, replacement),
    };
    match find(file, wanted) {
        Found::Once { rung, at } => {
            return Ok(Place {
                rung,
                at,
                wanted,
                replacement,
            });
        }
        Found::Often { rung, at } => return Err(ambiguous(rung, &at)),
        Found::Nowhere => {}
    }
    let (before, after) = blank_edges(wanted);
    if before + after == 0 || before == wanted.len() {
        return Err(not_found());
    }
    let core = &wanted[before..wanted.len() - after];
    match find(file, core) {
        Found::Once { rung, at } => Ok(widen(file, wanted, replacement, (before, after), rung, at)),
        Found::Often { rung, at } => Err(ambiguous(rung, &at)),
        Found::Nowhere => Err(not_found()),
    }
}

fn ambiguous(rung: Rung, at: &[usize]) -> MatchFailure {
    MatchFailure::Ambiguous {
        rung,
        lines: at.iter().map(|line| line + 1).collect(),
    }
}

/// The core stands at `at`. Blank edges that the file has there belong to the match; the others
/// leave both the search and, as far as it has them, the replacement.
fn widen<'s, 'a>(
    file: &[Line<'_>],
    wanted: &'s [&'a str],
    replacement: &'s [&'a str],
    (before, after): (usize, usize),
    rung: Rung,
    at: usize,
) -> Place<'s, 'a> {
    let end = at + wanted.len() - before - after;
    let blank = |line: &&Line<'_>| is_blank(line.text);
    let above = file[..at].iter().rev().take(before);
    let above = above.take_while(blank).count();
    let below = file[end..].iter().take(after).take_while(blank).count();
    let (first, last) = (before - above, after - below);
    let (blank_first, blank_last) = blank_edges(replacement);
    let cut_first = first.min(blank_first);
    let cut_last = last.min(blank_last).min(replacement.len() - cut_first);
    Place {
        rung: rung.max(Rung::TrailingSpace),
        at: at - above,
        wanted: &wanted[first..wanted.len() - last],
        replacement: &replacement[cut_first..replacement.len() - cut_last],
    }
}

/// How many blank lines there are at the start and at the end.
fn blank_edges(lines: &[&str]) -> (usize, usize) {
    let blank = |line: &&&str| is_blank(line);
    (
        lines.iter().take_while(blank).count(),
        lines.iter().rev().take_while(blank).count(),
    )
}

/// Both blocks of every pair of neighbours that share a line. `changes` are in file order.
///
/// `reach` is the change that ends furthest down so far: a long one may overlap several that
/// follow. Two insertions into an empty file have the same empty range and count as overlapping.
/// Each block is reported once.
fn overlaps(changes: &[(usize, Change)]) -> Vec<BlockFailure> {
    let mut failures = Vec::new();
    let mut reach: Option<&(usize, Change)> = None;
    for current in changes {
        if let Some(earlier) = reach {
            let shared = current.1.lines.start < earlier.1.lines.end;
            let same_spot = current.1.lines == earlier.1.lines;
            if shared || same_spot {
                for (block, with) in [(current.0, earlier.0), (earlier.0, current.0)] {
                    let reason = MatchFailure::Overlap { with };
                    failures.push(BlockFailure { block, reason });
                }
            }
        }
        if reach.is_none_or(|earlier| current.1.lines.end >= earlier.1.lines.end) {
            reach = Some(current);
        }
    }
    failures.sort_by_key(|failure| failure.block);
    failures.dedup_by_key(|failure| failure.block);
    failures
}

/// The file with the changes, which are in order and apart, put in.
pub(super) fn assemble(file: &[Line<'_>], changes: &[(usize, Change)]) -> String {
    let size: usize = file.iter().map(|l| l.text.len() + l.end.len()).sum();
    let added: usize = changes.iter().map(|(_, change)| change.text.len()).sum();
    let mut text = String::with_capacity(size + added);
    let mut next = 0;
    let keep = |text: &mut String, lines: &[Line<'_>]| {
        for line in lines {
            text.push_str(line.text);
            text.push_str(line.end);
        }
    };
    for (_, change) in changes {
        keep(&mut text, &file[next..change.lines.start]);
        text.push_str(&change.text);
        next = change.lines.end;
    }
    keep(&mut text, &file[next..]);
    text
}

/// The terminator for new lines at `lines`: that of a line there, else of one above, else the
/// file's usual one.
pub(super) fn end_at<'a>(file: &[Line<'a>], lines: Range<usize>) -> &'a str {
    file[lines.clone()]
        .iter()
        .chain(file[..lines.start].iter().rev())
        .map(|line| line.end)
        .find(|end| !end.is_empty())
        .unwrap_or_else(|| usual_end(file))
}
