//! Working trees of agents that other hosts may have to go on with.
//!
//! ```text
//! OwnTree      a tree that is on this host alone: a worktree, or the tree of a dev run
//! TreeKeeper   keeps its changes in the store after each step, under the lease of the attempt
//! bring        makes a tree on this host into the one that is kept
//! ```
//!
//! Beside a tree, a file names the state that this host kept last, or brought the tree to. While
//! that is what the store has, the tree here is at that state or past it (a step that a crash broke
//! off), and stays. Otherwise the agent has worked elsewhere since, and the tree is brought along.

mod keeper;
mod mark;
#[cfg(test)]
mod tests;

pub use keeper::TreeKeeper;

use std::path::PathBuf;

use codespar_store::{KeptTree, TreeContent};
use codespar_tools::worktree::{Git, GitError, Snapshot, SnapshotNames};

use mark::TreeMark;

/// A working tree that is on this host alone.
#[derive(Debug, Clone)]
pub struct OwnTree {
    /// On its files.
    pub git: Git,
    /// The root of its files; what this host knows of them is beside it.
    pub path: PathBuf,
    /// The commit that the work began from.
    pub base: String,
    /// The branch that is checked out; none in the tree of a dev run.
    pub branch: Option<String>,
}

/// What became of bringing a tree to what is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeBrought {
    /// The work has been on this host alone.
    WasHere,
    /// The work has been on another host, so its conversation names directories of that one.
    FromElsewhere,
}

impl OwnTree {
    /// Brings the files to what is kept, unless they are there already. The error is for people.
    pub async fn bring(&self, kept: KeptTree) -> Result<TreeBrought, String> {
        let tree = self.clone();
        let brought = tokio::task::spawn_blocking(move || tree.bring_now(kept)).await;
        brought.map_err(|error| error.to_string())?
    }

    fn bring_now(&self, kept: KeptTree) -> Result<TreeBrought, String> {
        let failed = |error: GitError| {
            format!("the files of the agent could not be made as they were: {error}")
        };
        let names = names_of(&kept);
        let mark = TreeMark::read(&self.path);
        if let Some(mark) = mark.filter(|mark| mark.names == names) {
            return Ok(mark.brought);
        }
        if let TreeContent::Missing(reason) = &kept.content {
            return Err(format!(
                "what the agent changed is not here: {reason}, more than is kept for other hosts. \
                 It is on the host that ran it last; send it a message when that host is back, or \
                 begin anew"
            ));
        }
        if !self.git.is_at(&names).map_err(failed)?
            && let TreeContent::Pack(pack) = kept.content
        {
            let snapshot = Snapshot {
                names: names.clone(),
                pack,
            };
            let branch = self.branch.as_deref();
            self.git.put_back(&snapshot, branch).map_err(failed)?;
        }
        let mark = TreeMark {
            names,
            brought: TreeBrought::FromElsewhere,
        };
        mark.write(&self.path)?;
        Ok(mark.brought)
    }
}

fn names_of(kept: &KeptTree) -> SnapshotNames {
    SnapshotNames {
        base: kept.base.clone(),
        head: kept.head.clone(),
        tree: kept.tree.clone(),
    }
}
