//! How far an index has come, for another thread to show.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the files that are read for an index. Made by whoever wants to show it; an index that
/// is up to date reads none.
#[derive(Debug, Default)]
pub struct IndexProgress {
    read: AtomicUsize,
    expected: AtomicUsize,
}

/// Of the files that have to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FilesRead {
    pub read: usize,
    pub expected: usize,
}

impl IndexProgress {
    /// `None` until it is known which files have to be read, and if none has to be.
    pub fn files(&self) -> Option<FilesRead> {
        let expected = self.expected.load(Ordering::Relaxed);
        let read = self.read.load(Ordering::Relaxed);
        (expected > 0).then_some(FilesRead { read, expected })
    }

    pub(crate) fn expect(&self, files: usize) {
        self.expected.store(files, Ordering::Relaxed);
    }

    pub(crate) fn add_one(&self) {
        self.read.fetch_add(1, Ordering::Relaxed);
    }
}
