//! Lines that differ between two texts.
//!
//! The diff library is generic over what it compares, and each crate that used it compiled it anew;
//! these functions are what the other crates need of it.

use std::{
    ops::Range,
    time::{Duration, Instant},
};

use similar::{
    Algorithm, DiffOp, TextDiff, capture_diff_slices, capture_diff_slices_deadline, group_diff_ops,
};

/// After this the rest counts as replaced. Only texts with tens of thousands of changed lines take
/// longer.
const DEADLINE: Duration = Duration::from_millis(500);

/// Neighbouring changed lines with a few unchanged ones around them. Ranges count lines from zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LineRange {
    pub(crate) old: Range<usize>,
    pub(crate) new: Range<usize>,
}

/// The lines of a text with their ends, so that another line end or a missing one is a change.
pub(crate) fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// The hunks of a change, with so many unchanged lines on each side; changes that would share such a
/// line are one hunk. Very large changes may be divided otherwise another time.
pub(crate) fn hunks(old: &[&str], new: &[&str], context: usize) -> Vec<LineRange> {
    let deadline = Instant::now().checked_add(DEADLINE);
    let ops = capture_diff_slices_deadline(Algorithm::Myers, old, new, deadline);
    let hunk = |group: &Vec<DiffOp>| {
        let (first, last) = (group.first()?, group.last()?);
        Some(LineRange {
            old: first.old_range().start..last.old_range().end,
            new: first.new_range().start..last.new_range().end,
        })
    };
    let groups = group_diff_ops(ops, context);
    groups.iter().filter_map(hunk).collect()
}

/// How many lines are added and removed.
pub fn changed_lines(old: &str, new: &str) -> (usize, usize) {
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    let changes = capture_diff_slices(Algorithm::Myers, &old, &new);
    let differing = changes
        .iter()
        .filter(|change| !matches!(change, similar::DiffOp::Equal { .. }));
    differing.fold((0, 0), |(added, removed), change| {
        (
            added + change.new_range().len(),
            removed + change.old_range().len(),
        )
    })
}

/// A unified diff with three lines of context, of a file called `name`.
pub fn unified_diff(name: &str, old: &str, new: &str) -> String {
    TextDiff::from_lines(old, new)
        .unified_diff()
        .context_radius(3)
        .header(&format!("a/{name}"), &format!("b/{name}"))
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_and_shown() {
        assert_eq!(changed_lines("", "a\nb\n"), (2, 0));
        assert_eq!(changed_lines("a\nb\nc\n", "a\nx\ny\nc\n"), (2, 1));
        assert_eq!(changed_lines("a\n", "a"), (1, 1));
        assert_eq!(changed_lines("same\n", "same\n"), (0, 0));
        assert_eq!(
            unified_diff("f", "a\nb\n", "a\nc\n"),
            "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"
        );
    }
}
