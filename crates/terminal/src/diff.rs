//! Changed lines: what they are, and how they are shown.
//!
//! Used for what an edit changes, in questions and in output. Both texts come from a model or a
//! file of any size, so the comparison has a limit in time; what is not compared by then is shown
//! as replaced, which is correct, only longer.

mod draw;

use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, DiffTag};

pub use self::draw::{DiffOptions, changed_lines};

/// After this the rest counts as replaced: longer than it takes for any text a person reads.
const DEADLINE: Duration = Duration::from_millis(500);
const MAX_CONTEXT: usize = 100_000;

/// How many lines were added and removed.
pub fn summary(old: &str, new: &str) -> (usize, usize) {
    let ops = ops(&lines(old), &lines(new));
    let changed = ops.iter().filter(|op| op.tag() != DiffTag::Equal);
    changed.fold((0, 0), |(added, removed), op| {
        (added + op.new_range().len(), removed + op.old_range().len())
    })
}

/// With their ends, so that a missing newline or another line end is a change.
fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

fn ops(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    let deadline = Instant::now().checked_add(DEADLINE);
    similar::capture_diff_slices_deadline(Algorithm::Myers, old, new, deadline)
}

/// Changes with so many unchanged lines around them; those that would overlap are one.
fn groups(old: &[&str], new: &[&str], context: usize) -> Vec<Vec<DiffOp>> {
    similar::group_diff_ops(ops(old, new), context.min(MAX_CONTEXT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted() {
        assert_eq!(summary("a\nb\n", "a\nc\nd\n"), (2, 1));
        assert_eq!(summary("", "a\nb"), (2, 0));
        assert_eq!(summary("a\n", ""), (0, 1));
        assert_eq!(summary("a\r\n", "a\n"), (1, 1));
        assert_eq!(summary("same", "same"), (0, 0));
    }
}
