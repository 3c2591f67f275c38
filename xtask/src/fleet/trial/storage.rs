//! Where the servers of a trial keep their files: in memory, or on a disk as they would elsewhere.
//!
//! What is in memory is gone with the trial, however that ends. What is on a disk is removed at its
//! end; if it is interrupted, the next one does so.

use std::{
    fs::{self, File, Permissions},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use rustix::fs::{FlockOperation, flock};
use tempfile::TempDir;

use crate::fleet::postgres::Durability;

/// By convention on a disk, and open to all users: PostgreSQL does not run as root.
const DISK: &str = "/var/tmp";
const PREFIX: &str = "codespar-trial-";

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum TrialStorage {
    /// Below /var/tmp; PostgreSQL waits for the disk with each commit, as by default
    Disk,
    /// With the other files of the trial; nothing waits for a disk
    Memory,
}

impl TrialStorage {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Disk => "on disk",
            Self::Memory => "in memory",
        }
    }

    pub(super) fn durability(self) -> Durability {
        match self {
            Self::Disk => Durability::Disk,
            Self::Memory => Durability::None,
        }
    }
}

/// The directory of the servers.
pub(super) enum ServerFiles {
    InMemory(PathBuf),
    /// The lock tells other trials that it is in use.
    OnDisk {
        dir: TempDir,
        _lock: File,
    },
}

impl ServerFiles {
    /// `trial` is the directory of the trial, which is in memory.
    pub(super) fn make(storage: TrialStorage, trial: &Path) -> Result<Self> {
        if storage == TrialStorage::Memory {
            return Ok(Self::InMemory(trial.to_owned()));
        }
        remove_left_over(Path::new(DISK));
        let dir = tempfile::Builder::new()
            .prefix(PREFIX)
            .permissions(Permissions::from_mode(0o711))
            .tempdir_in(DISK)
            .with_context(|| format!("cannot make a directory in {DISK}"))?;
        let lock = File::open(dir.path())?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Self::OnDisk { dir, _lock: lock })
    }

    pub(super) fn dir(&self) -> &Path {
        match self {
            Self::InMemory(dir) => dir,
            Self::OnDisk { dir, .. } => dir.path(),
        }
    }
}

/// Directories of trials that are no more: nobody has their lock.
fn remove_left_over(place: &Path) {
    for entry in place.read_dir().into_iter().flatten().flatten() {
        if !entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(PREFIX.as_bytes())
        {
            continue;
        }
        let lock = File::open(entry.path());
        let is_free =
            lock.is_ok_and(|lock| flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok());
        if is_free {
            fs::remove_dir_all(entry.path()).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_interrupted_trial_left_is_removed_and_what_is_in_use_is_not() {
        let place = tempfile::tempdir().unwrap();
        let dir = |name: &str| {
            let dir = place.path().join(format!("{PREFIX}{name}"));
            fs::create_dir_all(dir.join("data")).unwrap();
            dir
        };
        let (used, left) = (dir("used"), dir("left"));
        let lock = File::open(&used).unwrap();
        flock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
        remove_left_over(place.path());
        assert_eq!([used.exists(), left.exists()], [true, false]);
    }
}
