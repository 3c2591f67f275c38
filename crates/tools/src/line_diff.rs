//! Lines that differ between two texts.
//!
//! The diff library is generic over what it compares, and each crate that used it compiled it anew;
//! these functions are what the other crates need of it.

use similar::{Algorithm, TextDiff, capture_diff_slices};

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
