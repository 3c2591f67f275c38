//! A name in a directory that is held open, and the regular file that may be there.

use std::{
    ffi::{OsStr, OsString},
    fs::{File, Metadata},
    io::{self, Read as _, Write as _},
};

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, openat, renameat, statat, unlinkat},
    io::Errno,
};

use crate::Dir;

/// A name in a directory that is held open.
///
/// Nothing need exist under the name. What is there can change between two calls; each method looks
/// again, and only [`Place::open`] ties its answer to one file.
#[derive(Debug, Clone)]
pub struct Place {
    pub(crate) dir: Dir,
    pub(crate) name: OsString,
}

/// What is at a place; a link is a link, wherever it leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    Nothing,
    File,
    Directory,
    Symlink,
    /// A pipe, a device, a socket.
    Special,
}

/// Why a file was not opened or read.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Nothing is there.
    #[error("it does not exist")]
    Missing,
    /// A directory is there.
    #[error("it is a directory")]
    Directory,
    /// A pipe, a device, a socket or a link is there.
    #[error("it is not a regular file")]
    NotRegular,
    /// The kernel makes its content up as it is read.
    #[error("it is a file of /proc, which is not read")]
    Proc,
    /// It leads out of the directory that it must be in.
    #[error("it leads out of {0}")]
    Outside(String),
    /// More than was wanted.
    #[error("it has more than {limit} bytes")]
    TooLarge {
        /// The most that would have been read.
        limit: u64,
    },
    /// Its bytes are no text.
    #[error("it is not UTF-8 text")]
    NotText,
    /// Anything else.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl From<Errno> for OpenError {
    fn from(error: Errno) -> Self {
        match error {
            Errno::NOENT => Self::Missing,
            // The last component was exchanged for a link.
            Errno::LOOP => Self::NotRegular,
            other => Self::Io(other.into()),
        }
    }
}

/// A regular file, open for reading. It stays this file when its name is given to another one.
#[derive(Debug)]
pub struct RegularFile {
    pub file: File,
    /// As it was when it was opened.
    pub metadata: Metadata,
}

impl RegularFile {
    /// All of it, if that is not more than `limit`.
    pub fn read(mut self, limit: u64) -> Result<Vec<u8>, OpenError> {
        if self.metadata.len() > limit {
            return Err(OpenError::TooLarge { limit });
        }
        let expected = usize::try_from(self.metadata.len()).unwrap_or(0);
        let mut content = Vec::with_capacity(expected);
        // It may be growing.
        (&mut self.file)
            .take(limit.saturating_add(1))
            .read_to_end(&mut content)?;
        match u64::try_from(content.len()) {
            Ok(length) if length <= limit => Ok(content),
            _ => Err(OpenError::TooLarge { limit }),
        }
    }
}

impl Place {
    pub(crate) fn new(dir: &Dir, name: &OsStr) -> Self {
        Self {
            dir: dir.clone(),
            name: name.to_owned(),
        }
    }

    /// Another name in the same directory.
    pub fn beside(&self, name: &OsStr) -> Self {
        Self::new(&self.dir, name)
    }

    /// What is there. No link is followed: a dangling link is [`EntryKind::Symlink`], not nothing.
    pub fn kind(&self) -> io::Result<EntryKind> {
        let stat = match statat(&self.dir, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(EntryKind::Nothing),
            other => other?,
        };
        Ok(match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Directory,
            FileType::Symlink => EntryKind::Symlink,
            _ => EntryKind::Special,
        })
    }

    /// Opens the regular file that is there. Nothing else is opened, not even for a look.
    ///
    /// Opening a device or a pipe can have effects or wait, so the kind is checked by name first;
    /// and once more on the open file, because another process can exchange it in between.
    pub fn open(&self) -> Result<RegularFile, OpenError> {
        match self.kind()? {
            EntryKind::File => {}
            EntryKind::Nothing => return Err(OpenError::Missing),
            EntryKind::Directory => return Err(OpenError::Directory),
            EntryKind::Symlink | EntryKind::Special => return Err(OpenError::NotRegular),
        }
        // A pipe may have taken its place since: it must not be waited for.
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = File::from(openat(&self.dir, &self.name, flags, Mode::empty())?);
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(OpenError::NotRegular);
        }
        if is_proc(&file)? {
            return Err(OpenError::Proc);
        }
        Ok(RegularFile { file, metadata })
    }

    /// Adds to the end of the regular file that is there, with one system call where the system
    /// takes it whole. A missing file is made for its owner alone.
    pub fn append(&self, content: &[u8]) -> Result<(), OpenError> {
        match self.kind()? {
            EntryKind::File | EntryKind::Nothing => {}
            EntryKind::Directory => return Err(OpenError::Directory),
            EntryKind::Symlink | EntryKind::Special => return Err(OpenError::NotRegular),
        }
        let flags = OFlags::WRONLY
            | OFlags::APPEND
            | OFlags::CREATE
            | OFlags::NOFOLLOW
            | OFlags::NONBLOCK
            | OFlags::NOCTTY
            | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o600);
        let mut file = File::from(openat(&self.dir, &self.name, flags, mode)?);
        if !file.metadata()?.is_file() {
            return Err(OpenError::NotRegular);
        }
        Ok(file.write_all(content)?)
    }

    /// The directory that is there.
    pub fn dir(&self) -> io::Result<Dir> {
        self.dir.below(self.name.as_ref())
    }

    /// Whether both are names of one file. `false` when either is missing. Used for renames that
    /// change only the case of a name, where the old and the new name are one file on some file
    /// systems.
    pub fn is_same_file(&self, other: &Self) -> bool {
        let stat = |place: &Self| {
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            let stat = statat(&place.dir, &place.name, flags).ok()?;
            Some((stat.st_dev, stat.st_ino))
        };
        stat(self).is_some_and(|one| Some(one) == stat(other))
    }

    /// Takes the name away from the file that is there.
    pub fn remove_file(&self) -> io::Result<()> {
        Ok(unlinkat(&self.dir, &self.name, AtFlags::empty())?)
    }

    /// Removes the empty directory that is there.
    pub fn remove_dir(&self) -> io::Result<()> {
        Ok(unlinkat(&self.dir, &self.name, AtFlags::REMOVEDIR)?)
    }

    pub(crate) fn rename(&self, to: &Self) -> io::Result<()> {
        Ok(renameat(&self.dir, &self.name, &to.dir, &to.name)?)
    }
}

#[cfg(target_os = "linux")]
fn is_proc(file: &File) -> io::Result<bool> {
    use rustix::fs::{PROC_SUPER_MAGIC, fstatfs};
    Ok(fstatfs(file)?.f_type == PROC_SUPER_MAGIC)
}

#[cfg(not(target_os = "linux"))]
fn is_proc(_: &File) -> io::Result<bool> {
    Ok(false)
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{PermissionsExt as _, symlink},
    };

    use crate::place;

    #[test]
    fn an_append_makes_a_private_file_and_follows_no_link() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let log = place(&root.join("log")).unwrap();
        log.append(b"one").unwrap();
        log.append(b"two").unwrap();
        assert_eq!(fs::read(root.join("log")).unwrap(), b"onetwo");
        let mode = fs::metadata(root.join("log")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        symlink("log", root.join("link")).unwrap();
        let link = place(&root.join("link")).unwrap().append(b"three");
        assert_eq!(link.unwrap_err().to_string(), "it is not a regular file");
        assert_eq!(fs::read(root.join("log")).unwrap(), b"onetwo");
    }
}
