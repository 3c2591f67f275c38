//! The session of the gateway, as it is kept for the next process.

use std::{io::Write, path::Path};

use serde::{Deserialize, Serialize};

/// What resumes a session. The number is that of the last event that is done with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct GatewaySession {
    pub(super) id: String,
    pub(super) url: String,
    /// Our own account.
    pub(super) user: String,
    pub(super) sequence: u64,
}

impl GatewaySession {
    /// None if there is none, or it cannot be read: a new one is begun then.
    pub(super) fn load(path: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(path).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Whole or not at all. If it fails, events come again after a restart, and are known.
    pub(super) fn keep(&self, path: &Path) {
        let kept = serde_json::to_vec(self).map_err(std::io::Error::from);
        let kept = kept.and_then(|bytes| {
            let directory = path.parent().unwrap_or_else(|| Path::new("."));
            std::fs::create_dir_all(directory)?;
            let mut file = tempfile::NamedTempFile::new_in(directory)?;
            file.write_all(&bytes)?;
            file.persist(path).map_err(|error| error.error)?;
            Ok(())
        });
        if let Err(error) = kept {
            tracing::warn!("the session of Discord is not kept: {error}");
        }
    }

    /// It cannot be resumed any more.
    pub(super) fn forget(path: &Path) {
        let _ = std::fs::remove_file(path);
    }
}
