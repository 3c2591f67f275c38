//! Where the checkpoints of a session are.
//!
//! ```text
//! <state>/checkpoints/<session>/log       one record a line, in the order of the changes
//! <state>/checkpoints/<session>/blobs/H   a content, named after its SHA-256
//! ```
//!
//! Everything is made when the first file is changed, for the owner alone, below the state
//! directory and through no link. A blob appears whole under its name and is checked against it
//! when it is read. A record that a crash cut off is skipped: its change was never made. Several
//! processes may add records; the system puts each append at the end.

use std::{
    io,
    path::{Path, PathBuf},
};

use codespar_files::{Dir, OpenError, Place, Temporary};
use codespar_protocol::SessionId;

use super::{ChangeRecord, FileState};

/// Larger contents are not kept.
pub(crate) const MOST_KEPT_BYTES: u64 = 16 << 20;
const MOST_LOG_BYTES: u64 = 64 << 20;
const DIRECTORY: &str = "checkpoints";
const LOG: &str = "log";
const BLOBS: &str = "blobs";

/// The checkpoints of one session. Clones are handles to the same.
#[derive(Debug, Clone)]
pub struct CheckpointStore {
    state: PathBuf,
    session: SessionId,
}

/// Why checkpoints could not be kept or read.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    #[error("cannot use the checkpoints in {}: {source}", dir.display())]
    Unusable { dir: PathBuf, source: OpenError },
    #[error("the checkpoint {hash} in {} is missing or damaged", dir.display())]
    Damaged { dir: PathBuf, hash: String },
}

impl CheckpointStore {
    /// Nothing is opened or made yet.
    pub fn new(state: &Path, session: SessionId) -> Self {
        Self {
            state: state.to_path_buf(),
            session,
        }
    }

    /// The directory of a session, for whoever removes it.
    pub fn dir_of(state: &Path, session: SessionId) -> PathBuf {
        state.join(DIRECTORY).join(session.to_string())
    }

    /// All records, in their order; none if nothing was ever changed.
    pub fn records(&self) -> Result<Vec<ChangeRecord>, CheckpointError> {
        let log = match self.find(Path::new(LOG)) {
            Err(OpenError::Missing) => return Ok(Vec::new()),
            found => found.map_err(|error| self.unusable(error))?,
        };
        let bytes = match log.open().and_then(|log| log.read(MOST_LOG_BYTES)) {
            Err(OpenError::Missing) => return Ok(Vec::new()),
            read => read.map_err(|error| self.unusable(error))?,
        };
        let lines = bytes.split(|byte| *byte == b'\n');
        let records = lines.filter_map(|line| serde_json::from_slice(line).ok());
        Ok(records.collect())
    }

    /// Adds a record. The content before it must have been kept.
    pub(crate) fn append(&self, record: &ChangeRecord) -> Result<(), CheckpointError> {
        let added = || -> Result<(), OpenError> {
            let mut line = serde_json::to_vec(record).map_err(io::Error::from)?;
            // Before it too: the record before may have been cut off.
            line.insert(0, b'\n');
            line.push(b'\n');
            self.make(Path::new(""))?
                .place(Path::new(LOG))?
                .append(&line)
        };
        added().map_err(|error| self.unusable(error))
    }

    /// Keeps a content; one that is there already costs nothing.
    pub(crate) fn keep(&self, state: &FileState, content: &[u8]) -> Result<(), CheckpointError> {
        let FileState::Content { hash, .. } = state else {
            return Ok(());
        };
        let kept = || -> Result<(), OpenError> {
            let place = self.make(Path::new(BLOBS))?.place(Path::new(hash))?;
            match place.open() {
                Ok(found) if found.metadata.len() == content.len() as u64 => return Ok(()),
                Ok(_) | Err(OpenError::Missing) => {}
                Err(error) => return Err(error),
            }
            let mut blob = Temporary::private_beside(&place, content)?;
            Ok(blob.persist(&place)?)
        };
        kept().map_err(|error| self.unusable(error))
    }

    /// A content that was kept.
    pub(crate) fn content(&self, state: &FileState) -> Result<Vec<u8>, CheckpointError> {
        let FileState::Content { hash, .. } = state else {
            return Ok(Vec::new());
        };
        let blob = self.find(&Path::new(BLOBS).join(hash));
        let content = blob
            .and_then(|place| place.open())
            .and_then(|blob| blob.read(MOST_KEPT_BYTES));
        match content {
            Ok(content) if FileState::of(&content, 0).is_same(state) => Ok(content),
            Ok(_) | Err(OpenError::Missing | OpenError::TooLarge { .. }) => {
                Err(CheckpointError::Damaged {
                    dir: self.dir(),
                    hash: hash.clone(),
                })
            }
            Err(error) => Err(self.unusable(error)),
        }
    }

    fn dir(&self) -> PathBuf {
        Self::dir_of(&self.state, self.session)
    }

    fn relative(&self, below: &Path) -> PathBuf {
        Path::new(DIRECTORY)
            .join(self.session.to_string())
            .join(below)
    }

    fn find(&self, below: &Path) -> Result<Place, OpenError> {
        let found = Dir::open(&self.state).and_then(|dir| dir.place(&self.relative(below)));
        found.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => OpenError::Missing,
            _ => OpenError::Io(error),
        })
    }

    fn make(&self, below: &Path) -> Result<Dir, OpenError> {
        let state = Dir::open(&self.state)?;
        Ok(state.make_private_below(&self.relative(below))?)
    }

    fn unusable(&self, source: OpenError) -> CheckpointError {
        CheckpointError::Unusable {
            dir: self.dir(),
            source,
        }
    }
}
