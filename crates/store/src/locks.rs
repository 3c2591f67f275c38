//! A session taken by one process: an advisory lock on a file, which the kernel lets go of with
//! the process, however it ends.
//!
//! The file is only the place of the lock; that it exists means nothing. A process that is killed
//! leaves it behind unlocked, and the next one takes it. The process id in it is for the message to
//! others, never for a decision.
//!
//! Removing the file of a lock that is let go makes a race: somebody may have opened it before, and
//! would lock a file without a name while a third process locks a new one. Therefore `take`
//! compares the locked file with the one at the path, and begins again when they differ.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    process,
};

use codespar_protocol::SessionId;

use crate::StoreError;

/// The directory of the lock files.
pub(crate) struct Locks {
    dir: PathBuf,
}

/// A session that is ours until this is dropped. Not tied to a thread; held by the open file, so a
/// second `take` in the same process is refused too.
pub(crate) struct SessionLock {
    file: File,
    path: PathBuf,
}

impl Locks {
    pub(crate) fn in_state_dir(dir: &Path) -> Self {
        Self {
            dir: dir.join("locks"),
        }
    }

    /// Takes the session, or says who has it. Does not wait. The process id in the error is `None`
    /// when the holder has not written it yet.
    pub(crate) fn take(&self, id: SessionId) -> Result<SessionLock, StoreError> {
        let path = self.dir.join(format!("{id}.lock"));
        let failed = |error: io::Error| StoreError::unusable(&path, &error);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.dir)
            .map_err(failed)?;
        loop {
            let mut file = open(&path).map_err(failed)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let pid = pid_in(&mut file);
                    return Err(StoreError::SessionInUse { id, pid });
                }
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
            // Its last holder may have removed the file after we opened it: then the lock is on
            // a file nobody else will look at.
            if is_at(&file, &path) {
                write_pid(&mut file).map_err(failed)?;
                return Ok(SessionLock { file, path });
            }
        }
    }

    /// Removes the lock files that killed processes left behind. Files of other names are left
    /// alone, and what cannot be removed is not an error.
    pub(crate) fn sweep(&self) {
        let Ok(files) = fs::read_dir(&self.dir) else {
            return;
        };
        for file in files.flatten() {
            let name = file.file_name();
            let id = name.to_str().and_then(|name| name.strip_suffix(".lock"));
            if let Some(Ok(id)) = id.map(str::parse) {
                // A lock that can be taken was nobody's; dropping it removes the file.
                drop(self.take(id));
            }
        }
    }
}

impl Drop for SessionLock {
    fn drop(&mut self) {
        // Removed while locked: whoever opened it meanwhile notices in `take`.
        if is_at(&self.file, &self.path)
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::debug!(path = %self.path.display(), %error, "a lock file stays behind");
        }
        // Not left to `close`: a child between fork and exec shares the open file.
        if let Err(error) = self.file.unlock() {
            tracing::debug!(path = %self.path.display(), %error, "cannot unlock");
        }
    }
}

/// Not truncated: the file may be another process's, with its id in it.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
}

/// Whether the path still leads to this open file, by device and inode.
fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(ours), Ok(there)) => ours.dev() == there.dev() && ours.ino() == there.ino(),
        _ => false,
    }
}

fn pid_in(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

fn write_pid(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    writeln!(file, "{}", process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_taken_on_a_file_that_was_just_removed_is_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.lock");
        let late = open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        late.try_lock().unwrap();
        assert!(!is_at(&late, &path));
        let fresh = open(&path).unwrap();
        assert!(!is_at(&late, &path));
        assert!(is_at(&fresh, &path));
    }

    #[test]
    fn many_threads_after_one_session_never_have_it_twice() {
        use std::sync::atomic::{AtomicU32, Ordering};

        let dir = tempfile::tempdir().unwrap();
        let (id, holders) = (SessionId::new(), AtomicU32::new(0));
        let take_a_hundred_times = || {
            let locks = Locks::in_state_dir(dir.path());
            let mut taken = 0;
            while taken < 100 {
                match locks.take(id) {
                    Ok(_lock) => {
                        assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0);
                        std::thread::yield_now();
                        holders.fetch_sub(1, Ordering::SeqCst);
                        taken += 1;
                    }
                    Err(StoreError::SessionInUse { .. }) => std::thread::yield_now(),
                    Err(other) => panic!("{other}"),
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(take_a_hundred_times);
            }
        });
        assert_eq!(fs::read_dir(dir.path().join("locks")).unwrap().count(), 0);
    }
}
