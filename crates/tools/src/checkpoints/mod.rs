//! What files were before a tool changed them, so that the user can go back.
//!
//! Before Write or Edit replaces a file, its content is kept and a record of the change is added
//! to the log of the session ([`CheckpointStore`]); only then the file is written. A crash in
//! between leaves a record of a change that was never made, which a restore recognises: the file
//! still is what it was before. A change whose checkpoint cannot be kept is not made.
//!
//! [`Restore`] goes the other way: it compares files with what the last recorded change left, and
//! puts them back. It records each of its own changes in the same log first, so a restore is undone
//! like any other change.
//!
//! Changes that commands make are not seen here.

mod record;
mod restore;
mod store;
#[cfg(test)]
mod tests;

use std::{
    collections::HashSet,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use parking_lot::Mutex;

use crate::write::Existing;
pub use record::{ChangeCause, ChangeRecord, FileState};
pub(crate) use restore::missing_dirs;
pub use restore::{
    FileConflict, OnConflict, PlannedRestore, Restore, RestoreOutcome, RestoreStep, RestoreVerdict,
};
pub(crate) use store::MOST_KEPT_BYTES;
pub use store::{CheckpointError, CheckpointStore};

/// A session keeps no more than this; further contents are recorded as not kept.
const MOST_BYTES: u64 = 512 << 20;

/// Who the changes of a context are recorded for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeAuthor {
    /// The agent of the session.
    Main,
    /// An agent that works in the same tree for it.
    Subagent,
}

/// Keeps what files were before an agent changes them.
#[derive(Debug)]
pub struct Checkpoints {
    store: CheckpointStore,
    author: ChangeAuthor,
    left_out: Vec<PathBuf>,
    turn: Mutex<Turn>,
}

#[derive(Debug, Default)]
struct Turn {
    prompt: u64,
    /// Files whose content before this turn is kept.
    kept: HashSet<PathBuf>,
    /// Bytes that the session keeps, once it was counted.
    bytes: Option<u64>,
}

/// A file that is about to be replaced.
pub(crate) struct Upcoming<'a> {
    pub(crate) path: &'a Path,
    /// The file that is there.
    pub(crate) before: Option<&'a Existing>,
    pub(crate) after: &'a [u8],
    pub(crate) new_dirs: usize,
}

impl Checkpoints {
    pub fn new(store: CheckpointStore, author: ChangeAuthor) -> Self {
        Self {
            store,
            author,
            left_out: Vec::new(),
            turn: Mutex::default(),
        }
    }

    /// Changes below these directories are not recorded: they are no files of the user.
    #[must_use]
    pub fn leave_out(mut self, dirs: Vec<PathBuf>) -> Self {
        self.left_out = dirs;
        self
    }

    pub fn store(&self) -> &CheckpointStore {
        &self.store
    }

    /// Changes from now on belong to the turn that the entry at this place began.
    pub fn set_turn(&self, prompt: u64) {
        let mut turn = self.turn.lock();
        if turn.prompt != prompt {
            turn.prompt = prompt;
            turn.kept.clear();
        }
    }

    /// Records a change that is about to be made. The content before is kept once a turn.
    pub(crate) fn capture(&self, change: &Upcoming<'_>) -> Result<(), CheckpointError> {
        let mut left_out = self.left_out.iter();
        if left_out.any(|dir| change.path.starts_with(dir)) {
            return Ok(());
        }
        // Held to the end: calls that change files run one at a time anyway.
        let mut turn = self.turn.lock();
        let before = match change.before {
            None => FileState::Absent,
            Some(existing) => self.kept_before(&mut turn, change.path, existing)?,
        };
        let cause = match self.author {
            ChangeAuthor::Main => ChangeCause::Turn {
                prompt: turn.prompt,
            },
            ChangeAuthor::Subagent => ChangeCause::Subagent,
        };
        self.store.append(&ChangeRecord {
            at: Timestamp::now(),
            cause,
            path: change.path.to_path_buf(),
            before,
            after: FileState::of(change.after, 0),
            new_dirs: change.new_dirs,
        })?;
        if self.author == ChangeAuthor::Main {
            turn.kept.insert(change.path.to_path_buf());
        }
        Ok(())
    }

    fn kept_before(
        &self,
        turn: &mut Turn,
        path: &Path,
        existing: &Existing,
    ) -> Result<FileState, CheckpointError> {
        let size = existing.metadata.len();
        let kept_bytes = match turn.bytes {
            Some(bytes) => bytes,
            None => kept_bytes(&self.store.records()?),
        };
        turn.bytes = Some(kept_bytes);
        if size > MOST_KEPT_BYTES || kept_bytes.saturating_add(size) > MOST_BYTES {
            return Ok(FileState::NotKept { size });
        }
        let state = FileState::of(&existing.content, existing.metadata.mode());
        if !turn.kept.contains(path) {
            self.store.keep(&state, &existing.content)?;
            turn.bytes = Some(kept_bytes + size);
        }
        Ok(state)
    }
}

/// An upper bound: a content that was kept once may be in several records.
fn kept_bytes(records: &[ChangeRecord]) -> u64 {
    let mut seen = HashSet::new();
    let sizes = records.iter().filter_map(|record| match &record.before {
        FileState::Content { hash, size, .. } => seen.insert(hash).then_some(*size),
        FileState::Absent | FileState::NotKept { .. } => None,
    });
    sizes.sum()
}
