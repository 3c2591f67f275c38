//! The tree of a run's agent on this host: made from the repository if the agent was begun on
//! another one.
//!
//! Both the run and its agent may need it first, since each is a task that any host can take over:
//! a lock beside the tree lets one of them make it.
//!
//! ```text
//! <run>/agent-tree            the files
//! <run>/agent-tree.lock       held while it is made or brought along
//! <run>/agent-tree.kept       which state this host has (`codespar_tasks::OwnTree`)
//! <run>/agent-tree.provided   the run has given it what the tests need
//! ```

use std::{
    ffi::OsString,
    fs::{self, File},
    path::{Path, PathBuf},
};

use codespar_change::{Checkout, Trust, verify::Tree};
use codespar_protocol::{CommitId, RepositoryRef};
use codespar_tasks::OwnTree;

use crate::Linker;

/// The name of an agent's tree in the directory of its run.
pub const AGENT_TREE: &str = "agent-tree";

/// Where the tree of an agent is, and what it is made from.
pub struct AgentTree<'a> {
    pub linker: &'a dyn Linker,
    pub repository: &'a RepositoryRef,
    pub path: &'a Path,
}

/// A tree that nobody else makes or brings along while this lives.
pub struct OpenedTree {
    pub tree: OwnTree,
    _lock: File,
}

impl AgentTree<'_> {
    /// The tree as it is; at the commit, if it is not on this host. The error is for people.
    pub async fn open(&self, commit: &CommitId) -> Result<OpenedTree, String> {
        let lock = locked(self.path).await?;
        let clone = match self.path.is_dir() {
            true => None,
            false => Some(self.clone_with(commit).await?),
        };
        let (path, commit) = (self.path.to_owned(), commit.clone());
        let trust = self.linker.trust(self.repository);
        let opening = move || open(clone.as_deref(), path, &commit, trust);
        let tree = tokio::task::spawn_blocking(opening).await;
        Ok(OpenedTree {
            tree: tree.map_err(|error| error.to_string())??,
            _lock: lock,
        })
    }

    /// A clone on this machine, with the submodules of the commit.
    async fn clone_with(&self, commit: &CommitId) -> Result<PathBuf, String> {
        let link = self.linker.link(self.repository).await?;
        let fetched = self.linker.fetch_submodules(self.repository, &link, commit);
        // The tests say whether those that are missing matter.
        let _ = fetched.await;
        link.clone.ok_or_else(|| {
            "the agent engine needs a clone of the repository, and there is none".to_owned()
        })
    }
}

fn open(
    clone: Option<&Path>,
    path: PathBuf,
    commit: &CommitId,
    trust: Trust,
) -> Result<OwnTree, String> {
    if let Some(clone) = clone {
        let made = Tree::open(clone, &path, commit, trust).map_err(|error| error.to_string())?;
        made.keep();
    }
    let checkout = Checkout::open(&path, trust).map_err(|error| error.to_string())?;
    Ok(OwnTree {
        git: checkout.git().clone(),
        path,
        base: commit.0.clone(),
        branch: None,
    })
}

async fn locked(tree: &Path) -> Result<File, String> {
    let path = beside(tree, ".lock");
    let locking = move || {
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        fs::create_dir_all(path.parent().unwrap_or(&path)).map_err(failed)?;
        let file = File::create(&path).map_err(failed)?;
        file.lock().map_err(failed)?;
        Ok(file)
    };
    let locked = tokio::task::spawn_blocking(locking).await;
    locked.map_err(|error| error.to_string())?
}

/// Whether the run has given the tree what the tests need.
pub(crate) fn is_provided(tree: &Path) -> bool {
    tree.is_dir() && beside(tree, ".provided").exists()
}

pub(crate) fn mark_provided(tree: &Path) -> Result<(), String> {
    let path = beside(tree, ".provided");
    fs::write(&path, "").map_err(|error| format!("{}: {error}", path.display()))
}

fn beside(tree: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(tree.file_name().unwrap_or_default());
    name.push(ending);
    tree.with_file_name(name)
}
