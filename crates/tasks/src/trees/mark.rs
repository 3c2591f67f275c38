//! Which state of a tree this host has, as a file beside the tree: `NAME.kept`.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use codespar_tools::worktree::SnapshotNames;

use super::TreeBrought;

/// In the file when the work has been elsewhere.
const ELSEWHERE: &str = "elsewhere";
const HERE: &str = "here";

/// The state that was kept from this host last, or that the tree was brought to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TreeMark {
    pub(super) names: SnapshotNames,
    pub(super) brought: TreeBrought,
}

impl TreeMark {
    /// None where there is none, or where it cannot be read: then the tree is looked at itself.
    pub(super) fn read(tree: &Path) -> Option<Self> {
        let text = fs::read_to_string(file(tree)).ok()?;
        let lines: Vec<&str> = text.lines().collect();
        let [base, head, tree, brought] = lines[..] else {
            return None;
        };
        Some(Self {
            names: SnapshotNames {
                base: base.to_owned(),
                head: head.to_owned(),
                tree: tree.to_owned(),
            },
            brought: match brought {
                ELSEWHERE => TreeBrought::FromElsewhere,
                _ => TreeBrought::WasHere,
            },
        })
    }

    pub(super) fn write(&self, tree: &Path) -> Result<(), String> {
        let brought = match self.brought {
            TreeBrought::FromElsewhere => ELSEWHERE,
            TreeBrought::WasHere => HERE,
        };
        let SnapshotNames {
            base,
            head,
            tree: files,
        } = &self.names;
        let (path, text) = (file(tree), format!("{base}\n{head}\n{files}\n{brought}\n"));
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    }
}

fn file(tree: &Path) -> PathBuf {
    let mut name = OsString::from(tree.file_name().unwrap_or_default());
    name.push(".kept");
    tree.with_file_name(name)
}
