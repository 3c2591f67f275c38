//! Entry points for fuzz targets.

use crate::{github::ShownLines, local};

/// The lines on the new side of a unified diff that a remark can stand on, as pairs of file and
/// line, sorted.
pub fn shown_lines(diff: &str) -> Vec<(String, u32)> {
    let mut shown: Vec<(String, u32)> = ShownLines::of(diff).into_pairs().collect();
    shown.sort();
    shown
}

/// Reads a line of `git ls-tree --long`. A path that is found is what follows the tab.
pub fn tree_line(line: &[u8]) {
    if let Some(entry) = local::tree_entry(line) {
        assert!(line.ends_with(entry.path.as_bytes()));
    }
}
