//! Where a session is: its directories, and finding it by its id.

use std::path::{Path, PathBuf};

use codespar_protocol::SessionId;
use codespar_store::{SessionFilter, Store};

use crate::{args::matches_prefix, error::CommandError};

/// Directories that belong to one session.
pub(crate) struct SessionDirs {
    pub(crate) temp: PathBuf,
    pub(crate) output: PathBuf,
}

impl SessionDirs {
    /// Where they are.
    pub(crate) fn of(state: &Path, session: SessionId) -> Self {
        let id = session.to_string();
        Self {
            temp: state.join("tmp").join(&id),
            output: state.join("outputs").join(&id),
        }
    }

    pub(crate) fn create(state: &Path, session: SessionId) -> Result<Self, CommandError> {
        let dirs = Self::of(state, session);
        for dir in [&dirs.temp, &dirs.output] {
            std::fs::create_dir_all(dir).map_err(|error| {
                CommandError::Failed(format!("cannot make {}: {error}", dir.display()))
            })?;
        }
        Ok(dirs)
    }

    /// Takes away what nobody will look for: the temporary files, and the outputs if empty.
    pub(crate) fn clean(&self) {
        let _ = std::fs::remove_dir_all(&self.temp);
        let _ = std::fs::remove_dir(&self.output);
    }
}

/// A session by its id or an unambiguous beginning of it.
pub(crate) async fn find_session(store: &dyn Store, text: &str) -> Result<SessionId, CommandError> {
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
        [] => Err(CommandError::Usage(format!(
            "there is no session `{text}`; `codespar session list` shows those there are"
        ))),
        many => Err(CommandError::Usage(format!(
            "`{text}` fits {} sessions; give more of the id",
            many.len()
        ))),
    }
}
