//! Where a session is: its directories, and finding it by its id.
//!
//! ```text
//! <state>/tmp/<session>/           TMPDIR of commands, removed at the end
//! <state>/outputs/<session>/       long results, kept for the conversation that names them
//! <state>/checkpoints/<session>/   files before tools changed them; made with the first change
//! ```

use std::path::{Path, PathBuf};

use codespar_protocol::SessionId;
use codespar_store::{SessionFilter, Store};
use codespar_tools::CheckpointStore;

use crate::RuntimeError;

/// Directories that belong to one session.
pub struct SessionDirs {
    /// `TMPDIR` of its commands.
    pub temp: PathBuf,
    /// Outputs too long for the conversation.
    pub output: PathBuf,
    /// What files were before tools changed them.
    pub checkpoints: PathBuf,
}

impl SessionDirs {
    /// Where they are.
    pub fn of(state: &Path, session: SessionId) -> Self {
        let id = session.to_string();
        Self {
            temp: state.join("tmp").join(&id),
            output: state.join("outputs").join(&id),
            checkpoints: CheckpointStore::dir_of(state, session),
        }
    }

    pub(crate) fn create(state: &Path, session: SessionId) -> Result<Self, RuntimeError> {
        let dirs = Self::of(state, session);
        for dir in [&dirs.temp, &dirs.output] {
            std::fs::create_dir_all(dir).map_err(|error| {
                RuntimeError::Failed(format!("cannot make {}: {error}", dir.display()))
            })?;
        }
        Ok(dirs)
    }

    /// Takes away what nobody will look for: the temporary files, and the outputs if empty.
    pub fn clean(&self) {
        let _ = std::fs::remove_dir_all(&self.temp);
        let _ = std::fs::remove_dir(&self.output);
    }
}

/// A session by its id or an unambiguous beginning of it.
///
/// A whole id is looked up directly. A prefix is compared with all sessions.
pub async fn find_session(store: &dyn Store, text: &str) -> Result<SessionId, RuntimeError> {
    if let Ok(id) = text.parse() {
        return Ok(store.session(id).await?.id);
    }
    let sessions = store.sessions(SessionFilter::default()).await?;
    let matching: Vec<_> = sessions
        .iter()
        .map(|session| session.id)
        .filter(|id| matches_prefix(*id, text))
        .collect();
    match matching.as_slice() {
        [id] => Ok(*id),
        [] => Err(RuntimeError::Usage(format!(
            "there is no session `{text}`; `codespar session list` shows those there are"
        ))),
        many => Err(RuntimeError::Usage(format!(
            "`{text}` fits {} sessions; give more of the id",
            many.len()
        ))),
    }
}

/// Whether a text is an id or the beginning of it.
fn matches_prefix(id: SessionId, text: &str) -> bool {
    id.to_string().starts_with(&text.to_ascii_lowercase())
}
