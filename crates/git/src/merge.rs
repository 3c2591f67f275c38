//! Merging two commits without a work tree and without an index: the arguments for git, and the
//! reading of its answer.

use crate::zero_separated;

/// The tree of a merge, which is written where git's object directory is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergedTree {
    pub tree: String,
    /// Files that both sides changed in the same places; the tree has them with git's marks.
    pub conflicts: Vec<String>,
}

impl MergedTree {
    /// Arguments for merging `theirs` into `ours`. Merge attributes come from our side's commit;
    /// drivers that the repository configures are not run.
    pub fn arguments(ours: &str, theirs: &str) -> Vec<String> {
        let attributes = format!("attr.tree={ours}");
        let fixed = [
            "merge-tree",
            "--write-tree",
            "-z",
            "--name-only",
            "--no-messages",
        ];
        ["-c", attributes.as_str()]
            .into_iter()
            .chain(fixed)
            .chain([ours, theirs])
            .map(str::to_owned)
            .collect()
    }

    /// What git found, by its exit code and output. `None` if it could not merge them at all; why
    /// is in its messages.
    pub fn read(code: Option<i32>, out: &[u8]) -> Option<Self> {
        let mut parts = zero_separated(out).map(|part| String::from_utf8_lossy(part).into_owned());
        match (code, parts.next()) {
            (Some(0), Some(tree)) => Some(Self {
                tree,
                conflicts: Vec::new(),
            }),
            (Some(1), Some(tree)) => Some(Self {
                tree,
                conflicts: parts.collect(),
            }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_conflicts_only_where_git_says_that_there_are_some() {
        let read = |code| MergedTree::read(Some(code), b"1234\0a.txt\0b.txt\0");
        assert_eq!(read(0).unwrap().conflicts, Vec::<String>::new());
        let merged = read(1).unwrap();
        assert_eq!(merged.tree, "1234");
        assert_eq!(merged.conflicts, ["a.txt", "b.txt"]);
        assert_eq!(read(128), None);
        assert_eq!(MergedTree::read(Some(1), b""), None);
        assert_eq!(MergedTree::read(None, b"1234\0"), None);
    }
}
