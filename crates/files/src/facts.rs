//! What is at a path now, by one system call and without opening it.

use std::{
    fs::Metadata,
    io,
    path::Path,
    time::{Duration, UNIX_EPOCH},
};

use rustix::fs::{AtFlags, FileType, statat};

use crate::{Dir, EntryKind};

/// Kind, size and time of last change of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryFacts {
    pub kind: EntryKind,
    pub bytes: u64,
    /// Since 1970; `None` for a time before it.
    pub modified: Option<Duration>,
}

impl Dir {
    /// The facts of an entry below this directory; a link at its end is not followed. For listing
    /// many entries: resolving each from the root of the file system takes half as long again.
    /// Nothing is opened, so links in the middle do no more harm than a wrong answer.
    pub fn facts(&self, relative: &Path) -> io::Result<EntryFacts> {
        let stat = statat(self, relative, AtFlags::SYMLINK_NOFOLLOW)?;
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Directory,
            FileType::Symlink => EntryKind::Symlink,
            _ => EntryKind::Special,
        };
        let seconds = u64::try_from(stat.st_mtime).ok();
        let nanos = u32::try_from(stat.st_mtime_nsec).ok();
        Ok(EntryFacts {
            kind,
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
            modified: seconds
                .zip(nanos)
                .map(|(seconds, nanos)| Duration::new(seconds, nanos)),
        })
    }
}

impl From<&Metadata> for EntryFacts {
    fn from(metadata: &Metadata) -> Self {
        let kind = metadata.file_type();
        Self {
            kind: match () {
                () if kind.is_file() => EntryKind::File,
                () if kind.is_dir() => EntryKind::Directory,
                () if kind.is_symlink() => EntryKind::Symlink,
                () => EntryKind::Special,
            },
            bytes: metadata.len(),
            modified: metadata
                .modified()
                .ok()
                .and_then(|time| time.duration_since(UNIX_EPOCH).ok()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_those_of_the_standard_library() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("sub")).unwrap();
        std::fs::write(dir.path().join("sub/file"), "four").unwrap();
        std::os::unix::fs::symlink("sub/file", dir.path().join("link")).unwrap();
        let root = Dir::open(dir.path()).unwrap();
        for name in ["sub", "sub/file", "link"] {
            let expected = std::fs::symlink_metadata(dir.path().join(name)).unwrap();
            let found = root.facts(Path::new(name)).unwrap();
            assert_eq!(found, EntryFacts::from(&expected), "{name}");
        }
        assert!(root.facts(Path::new("missing")).is_err());
    }
}
