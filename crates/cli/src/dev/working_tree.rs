//! What of the user's working tree a run leaves out: it reads commits, not files.
//!
//! A run starts from a commit. Changes that are not committed, and a detached head, are a common
//! surprise, so both are said before the run begins; neither stops it.

use codespar_dev::RepositoryRef;
use codespar_git::{Repository, WorkTreeState};
use codespar_runtime::{Project, which};
use serde::Serialize;

/// The working tree when the run was started. The field names are part of `dev --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct WorkingTree {
    branch: Option<String>,
    detached_head: bool,
    uncommitted_files: usize,
}

impl WorkingTree {
    /// `None` where the repository has no working tree here, or it cannot be read: the run does not
    /// need it. A repository on GitHub has one here if it is the origin of this directory.
    pub(crate) async fn look(project: &Project, repository: &RepositoryRef) -> Option<Self> {
        let dir = match repository {
            RepositoryRef::Local { path } => path.clone(),
            RepositoryRef::GitHub { .. } => {
                let here = which(&project.dir, &project.settings, None).ok()?;
                (here == *repository).then(|| project.dir.root.clone())?
            }
        };
        let trust = project.dir.trust_of(&dir).git();
        let look = move || Repository::find(&dir, trust)?.work_tree_state();
        match tokio::task::spawn_blocking(look).await.ok()? {
            Ok(state) => Some(state.into()),
            Err(error) => {
                tracing::warn!("the working tree cannot be compared with its commit: {error}");
                None
            }
        }
    }

    /// What a person should know before the run begins.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.detached_head {
            notes.push(
                "Note: HEAD is detached; the base is a branch, not the commit that is checked out"
                    .to_owned(),
            );
        }
        let files = match self.uncommitted_files {
            0 => return notes,
            1 => "1 file".to_owned(),
            count => format!("{count} files"),
        };
        notes.push(format!(
            "Note: uncommitted changes are not part of the run ({files})"
        ));
        notes
    }
}

impl From<WorkTreeState> for WorkingTree {
    fn from(state: WorkTreeState) -> Self {
        Self {
            detached_head: state.branch.is_none(),
            branch: state.branch,
            uncommitted_files: state.uncommitted_files,
        }
    }
}
