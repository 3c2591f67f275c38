//! The replacement as the file would have it: lines that did not change keep the file's bytes,
//! new lines get its indentation and its line ends.
//!
//! On the exact rung the replacement is put in as it is. On a looser rung the file differs from
//! what the model believed, so the two texts of the block are compared first. Lines that both have
//! are context: the file's own line stays, with its white space, tabs and quotes. Only lines that
//! the model changed or added are taken from the replacement, with their indentation translated
//! (`indent`).

use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::{
    MatchFailure, Rung,
    blanks::differ_in_quotes,
    blocks::end_at,
    indent::{Hunk, Indentation, Unclear},
    lines::{Line, is_blank, trim, trim_end},
    nearest::nearest,
};

/// Past this many pairs of lines the middle of a block is taken as changed throughout. Comparing
/// takes time in proportion to it. Equal lines at the beginning and the end are still kept.
const MAX_COMPARED: usize = 4_000_000;

/// A line of the outcome.
enum Outcome<'a> {
    /// The file's own line, by its place in the match.
    Kept(usize),
    /// A line of the replacement, as it is.
    Plain(&'a str),
    /// A line of the replacement with another indentation.
    Indented(String),
}

/// The text that takes the place of `lines`, terminators included.
pub(super) fn rewrite(
    file: &[Line<'_>],
    lines: Range<usize>,
    wanted: &[&str],
    replacement: &[&str],
    rung: Rung,
) -> Result<String, MatchFailure> {
    let there = &file[lines.clone()];
    if rung == Rung::InnerBlanks && would_change_a_string(there, wanted, replacement) {
        return Err(MatchFailure::NotFound {
            nearest: nearest(file, wanted, replacement),
        });
    }
    let outcome = if rung == Rung::Exact && alike_ends(there) {
        replacement
            .iter()
            .map(|line| Outcome::Plain(line))
            .collect()
    } else {
        outcome(file, lines.clone(), wanted, replacement).map_err(|unclear| {
            MatchFailure::IndentationUnclear {
                line: lines.start + 1,
                text: trim(unclear.line).to_owned(),
                difference: unclear.difference,
            }
        })?
    };
    Ok(joined(there, &outcome, end_at(file, lines)))
}

/// Whether a line that is written anew has other blanks within quotes than the model believed: its
/// text would change the string without anyone meaning to.
fn would_change_a_string(there: &[Line<'_>], wanted: &[&str], replacement: &[&str]) -> bool {
    let changes: Vec<DiffOp> = compare(wanted, replacement)
        .into_iter()
        .filter(|op| !matches!(op, DiffOp::Equal { .. }))
        .collect();
    let is_written = changes.iter().any(|op| !op.new_range().is_empty());
    let mut old = changes.iter().flat_map(DiffOp::old_range);
    is_written && old.any(|at| differ_in_quotes(wanted[at], there[at].text))
}

/// Where the matched lines end in different ways, an exact match still has to be compared line by
/// line, so that each kept line keeps its end.
fn alike_ends(lines: &[Line<'_>]) -> bool {
    lines.windows(2).all(|pair| pair[0].end == pair[1].end)
}

/// The lines of the result in order. A new blank line is written without white space, except where
/// the indentation agrees and lines are written as they came.
fn outcome<'a>(
    file: &[Line<'_>],
    at: Range<usize>,
    wanted: &[&str],
    replacement: &[&'a str],
) -> Result<Vec<Outcome<'a>>, Unclear<'a>> {
    let indentation = Indentation::learn(file, at, wanted, replacement)?;
    let mut lines = Vec::with_capacity(replacement.len());
    for op in compare(wanted, replacement) {
        if let DiffOp::Equal { old_index, len, .. } = op {
            lines.extend((old_index..old_index + len).map(Outcome::Kept));
            continue;
        }
        let hunk = Hunk {
            old: op.old_range(),
            new: op.new_range(),
        };
        for index in op.new_range() {
            let line = replacement[index];
            if indentation.is_same() {
                lines.push(Outcome::Plain(line));
            } else if is_blank(line) {
                lines.push(Outcome::Plain(""));
            } else {
                let indent = indentation.of(index, line, &hunk)?;
                lines.push(Outcome::Indented(indent + trim_start(line)));
            }
        }
    }
    Ok(lines)
}

fn trim_start(line: &str) -> &str {
    line.trim_start_matches([' ', '\t'])
}

/// What changed between the two texts of the block, white space at line ends aside.
fn compare(wanted: &[&str], replacement: &[&str]) -> Vec<DiffOp> {
    let old: Vec<&str> = wanted.iter().map(|line| trim_end(line)).collect();
    let new: Vec<&str> = replacement.iter().map(|line| trim_end(line)).collect();
    let head = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let tail = old[head..].iter().rev().zip(new[head..].iter().rev());
    let tail = tail.take_while(|(a, b)| a == b).count();
    let (old_middle, new_middle) = (old.len() - head - tail, new.len() - head - tail);
    if old_middle * new_middle <= MAX_COMPARED {
        return capture_diff_slices(Algorithm::Myers, &old, &new);
    }
    let equal = |old_index, new_index, len| DiffOp::Equal {
        old_index,
        new_index,
        len,
    };
    vec![
        equal(0, 0, head),
        DiffOp::Replace {
            old_index: head,
            old_len: old_middle,
            new_index: head,
            new_len: new_middle,
        },
        equal(old.len() - tail, new.len() - tail, tail),
    ]
}

/// Every line but the last ends as it does in the file, or with `end`; the last ends as the last
/// line of the match does, so that a file without a final newline stays so.
fn joined(there: &[Line<'_>], outcome: &[Outcome<'_>], end: &str) -> String {
    let mut text = String::new();
    let last_end = there.last().map_or("", |line| line.end);
    for (index, line) in outcome.iter().enumerate() {
        let own_end = match line {
            Outcome::Kept(at) => {
                text.push_str(there[*at].text);
                there[*at].end
            }
            Outcome::Plain(line) => {
                text.push_str(line);
                end
            }
            Outcome::Indented(line) => {
                text.push_str(line);
                end
            }
        };
        let is_last = index + 1 == outcome.len();
        text.push_str(match (is_last, own_end) {
            (true, _) => last_end,
            (false, "") => end,
            (false, own) => own,
        });
    }
    text
}
