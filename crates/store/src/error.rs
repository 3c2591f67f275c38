//! What can go wrong with the store, with the file and what to do.

use std::{
    io,
    path::{Path, PathBuf},
};

use codespar_protocol::SessionId;

/// A store operation that did not happen.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The state directory or the database in it cannot be opened or written.
    #[error("cannot use the state directory {}: {message}", path.display())]
    Unusable {
        /// Which.
        path: PathBuf,
        /// Why, and what to do.
        message: String,
    },
    /// No such session.
    #[error("there is no session {0}; `codespar session list` shows those there are")]
    NoSuchSession(SessionId),
    /// Another process has it.
    #[error("session {id} is in use by another process{}", pid.map(|p| format!(" (pid {p})")).unwrap_or_default())]
    SessionInUse {
        /// Which.
        id: SessionId,
        /// Who, when known.
        pid: Option<u32>,
    },
    /// The session has entries the caller does not know.
    #[error("session {id} has moved on: expected its last entry to be {expected}, it is {found}")]
    MovedOn {
        /// Which.
        id: SessionId,
        /// What the caller knew.
        expected: u64,
        /// What is there.
        found: u64,
    },
    /// A row cannot be read.
    #[error("session {id}, entry {seq} is damaged: {message}")]
    Damaged {
        /// Which session.
        id: SessionId,
        /// Which entry.
        seq: u64,
        /// How.
        message: String,
    },
    /// Written by a later version.
    #[error("{} was written by a newer version of codespar; use that one, or another state directory", path.display())]
    TooNew {
        /// The database.
        path: PathBuf,
    },
    /// The disk is full.
    #[error("no room left on the disk that holds {}; free some, nothing was lost", path.display())]
    DiskFull {
        /// The database.
        path: PathBuf,
    },
    /// Another process kept the database locked for too long.
    #[error("{} is locked by another process; nothing was written, try again", path.display())]
    Busy {
        /// The database.
        path: PathBuf,
    },
    /// A path that cannot be kept.
    #[error("{} is not valid UTF-8; the store keeps paths as text, so rename it", path.display())]
    NotText {
        /// Which.
        path: PathBuf,
    },
    /// Anything else the database says.
    #[error("the database says: {0}")]
    Database(String),
}

impl StoreError {
    /// What the file system said about a path of the state directory.
    pub(crate) fn unusable(path: &Path, error: &io::Error) -> Self {
        let path = path.to_owned();
        if error.kind() == io::ErrorKind::StorageFull {
            return Self::DiskFull { path };
        }
        Self::Unusable {
            path,
            message: format!("{error}; set CODESPAR_HOME to a directory you can write to"),
        }
    }
}
