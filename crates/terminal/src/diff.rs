//! Changed lines: what they are, how they are shown, and applying some of them.

mod draw;

use std::{
    ops::Range,
    time::{Duration, Instant},
};

use similar::{Algorithm, DiffOp, DiffTag};

pub use self::draw::{DiffOptions, changed_lines};

/// After this the rest counts as replaced: longer than it takes for any text a person reads.
const DEADLINE: Duration = Duration::from_millis(500);
const MAX_CONTEXT: usize = 100_000;

/// Neighbouring changes with the unchanged lines around them. Ranges count lines from zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    pub old: Range<usize>,
    pub new: Range<usize>,
    /// What stands in place of the old lines if the hunk is accepted.
    pub new_text: String,
}

/// How many lines were added and removed.
pub fn summary(old: &str, new: &str) -> (usize, usize) {
    let ops = ops(&lines(old), &lines(new));
    let changed = ops.iter().filter(|op| op.tag() != DiffTag::Equal);
    changed.fold((0, 0), |(added, removed), op| {
        (added + op.new_range().len(), removed + op.old_range().len())
    })
}

/// The changes in parts that can be accepted one by one, with so many unchanged lines around.
pub fn hunks(old: &str, new: &str, context: usize) -> Vec<Hunk> {
    let new_lines = lines(new);
    let groups = groups(&lines(old), &new_lines, context);
    let hunk = |group: &Vec<DiffOp>| {
        let (first, last) = (group.first()?, group.last()?);
        let new = first.new_range().start..last.new_range().end;
        Some(Hunk {
            old: first.old_range().start..last.old_range().end,
            new_text: new_lines[new.clone()].concat(),
            new,
        })
    };
    groups.iter().filter_map(hunk).collect()
}

/// The old text with those hunks of it that were accepted. A hunk without an answer is refused.
pub fn apply_hunks(old: &str, hunks: &[Hunk], accepted: &[bool]) -> String {
    let old_lines = lines(old);
    let mut result = String::with_capacity(old.len());
    let mut at = 0;
    for (hunk, accepted) in hunks.iter().zip(accepted) {
        let fits = at <= hunk.old.start && hunk.old.end <= old_lines.len();
        if *accepted && fits {
            result.extend(old_lines[at..hunk.old.start].iter().copied());
            result.push_str(&hunk.new_text);
            at = hunk.old.end;
        }
    }
    result.extend(old_lines[at..].iter().copied());
    result
}

/// With their ends, so that a missing newline or another line end is a change.
fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

fn ops(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    let deadline = Instant::now().checked_add(DEADLINE);
    similar::capture_diff_slices_deadline(Algorithm::Myers, old, new, deadline)
}

fn groups(old: &[&str], new: &[&str], context: usize) -> Vec<Vec<DiffOp>> {
    similar::group_diff_ops(ops(old, new), context.min(MAX_CONTEXT))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn single_hunks_can_be_refused() {
        let old = "a\nb\nc\nd\ne\n";
        let new = "A\nb\nc\nd\nE";
        let hunks = hunks(old, new, 1);
        let ranges: Vec<_> = hunks.iter().map(|hunk| hunk.old.clone()).collect();
        assert_eq!(ranges, [0..2, 3..5]);
        assert_eq!(apply_hunks(old, &hunks, &[true, false]), "A\nb\nc\nd\ne\n");
        assert_eq!(apply_hunks(old, &hunks, &[false, true]), "a\nb\nc\nd\nE");
        assert_eq!(apply_hunks(old, &hunks, &[]), old);
    }

    #[test]
    fn lines_are_counted() {
        assert_eq!(summary("a\nb\n", "a\nc\nd\n"), (2, 1));
        assert_eq!(summary("", "a\nb"), (2, 0));
        assert_eq!(summary("a\n", ""), (0, 1));
        assert_eq!(summary("a\r\n", "a\n"), (1, 1));
        assert_eq!(summary("same", "same"), (0, 0));
    }

    fn text() -> impl Strategy<Value = String> {
        let parts = prop::sample::select(vec!["a\n", "b\n", "c\r\n", "\n", "a", "é\t\n"]);
        prop::collection::vec(parts, 0..30).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn all_hunks_make_the_new_text_and_none_the_old(
            old in text(),
            new in text(),
            context in 0..4usize,
        ) {
            let hunks = hunks(&old, &new, context);
            let answers = |answer| vec![answer; hunks.len()];
            prop_assert_eq!(apply_hunks(&old, &hunks, &answers(true)), new);
            prop_assert_eq!(apply_hunks(&old, &hunks, &answers(false)), old);
        }
    }
}
