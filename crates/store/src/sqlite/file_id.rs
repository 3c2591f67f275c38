//! Which file a path leads to, so that a removed or replaced database is noticed.
//!
//! SQLite does not notice when its file is removed: the open descriptor goes on working, and all
//! that is written disappears with the process. So the file at the path is compared with the one
//! that was opened, before each piece of work and at the end.

use std::{fs, io, os::unix::fs::MetadataExt, path::Path};

use super::open::DATABASE;
use crate::StoreError;

/// Device and inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    pub(super) fn of(path: &Path) -> Result<Self, StoreError> {
        Self::read(path).map_err(|error| StoreError::unusable(path, &error))
    }

    /// Fails unless the database in `dir` is still this file. One call of `stat`. A file that is
    /// replaced between it and the work is noticed by the next check.
    pub(super) fn check(self, dir: &Path) -> Result<(), StoreError> {
        let path = dir.join(DATABASE);
        let what = match Self::read(&path) {
            Ok(found) if found == self => return Ok(()),
            Ok(_) => "was replaced",
            Err(error) if error.kind() == io::ErrorKind::NotFound => "was removed",
            Err(error) => return Err(StoreError::unusable(&path, &error)),
        };
        Err(StoreError::Unusable {
            path: dir.to_owned(),
            message: format!(
                "{DATABASE} {what} while it was in use, and nothing more can be recorded; \
                 restore it and start again"
            ),
        })
    }

    fn read(path: &Path) -> io::Result<Self> {
        let found = fs::metadata(path)?;
        Ok(Self {
            device: found.dev(),
            inode: found.ino(),
        })
    }
}
