//! One protected path, reached through no symlink and in spite of missing permissions.
//!
//! A command that has ended may have left anything at such a path. So a path is never resolved as a
//! whole: its directory is opened by a call that refuses symlinks, and everything is done to a name
//! in that directory. What cannot be done for want of permissions is done once more after they were
//! given to us, and they are taken back afterwards.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File},
    io::{self, Read, Write},
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::{
            ffi::{OsStrExt, OsStringExt},
            fs::PermissionsExt,
        },
    },
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

use rustix::{
    fs::{AtFlags, CWD, Dir, Mode, OFlags, ResolveFlags},
    io::Errno,
};

/// A protected path, as a name in a directory. The directory is opened anew for each action, as the
/// one before may have replaced it.
pub(super) struct Place {
    tree: PathBuf,
    path: PathBuf,
    name: OsString,
}

impl Place {
    /// `path` lies in `tree`, which has no symlinks. Nothing is opened yet.
    pub(super) fn new(tree: PathBuf, path: &Path) -> io::Result<Self> {
        let name = path
            .file_name()
            .ok_or_else(|| io::Error::other("a path without a name"))?;
        Ok(Self {
            tree,
            path: path.to_path_buf(),
            name: name.to_owned(),
        })
    }

    /// What is there now; `None` also where the way to it does not exist.
    pub(super) fn metadata(&self) -> io::Result<Option<fs::Metadata>> {
        let found = self.act(|| {
            let parent = self.parent()?;
            let path = through(&parent).join(&self.name);
            fs::symlink_metadata(path)
        });
        match found {
            Ok(kind) => Ok(Some(kind)),
            Err(error) if super::is_absent(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Where the symlink leads, as it is written.
    pub(super) fn target(&self) -> io::Result<PathBuf> {
        let target = rustix::fs::readlinkat(self.parent()?, &self.name, Vec::new())?;
        Ok(OsString::from_vec(target.into_bytes()).into())
    }

    /// Whether the file has exactly these bytes. Its length is known to be theirs. One byte more
    /// than expected is read, so a file that grows meanwhile is not the same. A pipe does not
    /// block.
    pub(super) fn has_content(&self, bytes: &[u8]) -> io::Result<bool> {
        self.act(|| {
            let file = File::from(self.open(OFlags::RDONLY | OFlags::NONBLOCK)?);
            let mut found = Vec::with_capacity(bytes.len());
            let limit = bytes.len() as u64 + 1;
            file.take(limit).read_to_end(&mut found)?;
            Ok(found == bytes)
        })
    }

    /// The names in the directory.
    pub(super) fn names(&self) -> io::Result<Vec<OsString>> {
        self.act(|| {
            let directory = self.open(OFlags::RDONLY | OFlags::DIRECTORY)?;
            let mut names = Vec::new();
            for entry in Dir::read_from(&directory)? {
                let name = OsStr::from_bytes(entry?.file_name().to_bytes()).to_owned();
                if name != "." && name != ".." {
                    names.push(name);
                }
            }
            Ok(names)
        })
    }

    /// Through a descriptor that follows no symlink, so the mode of nothing else is changed.
    pub(super) fn set_mode(&self, mode: u32) -> io::Result<()> {
        self.act(|| {
            let file = self.open(OFlags::PATH)?;
            fs::set_permissions(through(&file), fs::Permissions::from_mode(mode))
        })
    }

    /// Like the two below, makes missing directories on the way and fails if something is there.
    /// The mode is that of the owner alone until it is filled.
    pub(super) fn make_directory(&self) -> io::Result<()> {
        self.make_way()?;
        self.act(|| Ok(rustix::fs::mkdirat(self.parent()?, &self.name, Mode::RWXU)?))
    }

    pub(super) fn symlink(&self, target: &Path) -> io::Result<()> {
        self.make_way()?;
        self.act(|| Ok(rustix::fs::symlinkat(target, self.parent()?, &self.name)?))
    }

    /// The file is private until it is written; then it gets `mode`.
    pub(super) fn create(&self, bytes: &[u8], mode: u32) -> io::Result<()> {
        self.make_way()?;
        self.act(|| {
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW;
            let parent = self.parent()?;
            let file = rustix::fs::openat(
                parent,
                &self.name,
                flags | OFlags::CLOEXEC,
                Mode::RUSR | Mode::WUSR,
            )?;
            let mut file = File::from(file);
            file.write_all(bytes)?;
            file.set_permissions(fs::Permissions::from_mode(mode))
        })
    }

    /// Moves what is there to `quarantine`, unread; beside its place if that is on another file
    /// system, missing or read-only. Returns the new path:
    ///
    /// ```text
    /// <quarantine>/quarantined-<pid>-<number>-<name>
    /// <directory>/<name>.quarantined-<pid>-<number>
    /// ```
    ///
    /// A rename takes a directory along with everything in it, however large, and needs no right to
    /// read it.
    pub(super) fn move_to(&self, quarantine: &Path) -> io::Result<PathBuf> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{}-{number}", std::process::id());
        let mut away = OsString::from(format!("quarantined-{mark}-"));
        away.push(&self.name);
        let mut beside = self.name.clone();
        beside.push(format!(".quarantined-{mark}"));
        self.act(|| {
            let parent = self.parent()?;
            let target = rustix::fs::openat(
                CWD,
                quarantine,
                OFlags::PATH | OFlags::CLOEXEC,
                Mode::empty(),
            );
            let moved =
                target.and_then(|target| rustix::fs::renameat(&parent, &self.name, target, &away));
            match moved {
                Ok(()) => Ok(quarantine.join(&away)),
                Err(Errno::XDEV | Errno::NOENT | Errno::ROFS) => {
                    rustix::fs::renameat(&parent, &self.name, &parent, &beside)?;
                    Ok(self.path.with_file_name(&beside))
                }
                Err(error) => Err(error.into()),
            }
        })
    }

    /// Makes the directories on the way. Their former modes are not known, so they get the usual
    /// one.
    fn make_way(&self) -> io::Result<()> {
        let rest = self.path.strip_prefix(&self.tree).unwrap_or(&self.path);
        let mut current = self.tree.clone();
        for name in rest.parent().into_iter().flat_map(Path::iter) {
            let parent = open_beneath(&current, OFlags::PATH | OFlags::DIRECTORY)?;
            let mode = Mode::RWXU | Mode::RGRP | Mode::XGRP | Mode::ROTH | Mode::XOTH;
            match rustix::fs::mkdirat(parent, name, mode) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            current.push(name);
        }
        Ok(())
    }

    /// A symlink on the way is an error of kind `NotFound`, as if nothing were there.
    fn parent(&self) -> io::Result<OwnedFd> {
        let parent = self.path.parent().unwrap_or(&self.tree);
        open_beneath(parent, OFlags::PATH | OFlags::DIRECTORY)
    }

    /// The thing itself: a symlink is not followed.
    fn open(&self, flags: OFlags) -> io::Result<OwnedFd> {
        let parent = self.parent()?;
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(
            parent,
            &self.name,
            flags,
            Mode::empty(),
        )?)
    }

    /// Does it; where permissions are missing, gives them to us for as long as it takes. What a
    /// command owns we own too, so there is nothing it could take from us for good. The action may
    /// run twice and must not have an effect when it fails for want of permission. Rights are given
    /// to directories from the tree down to the path itself, and taken back in reverse, also when
    /// the action fails.
    fn act<T>(&self, action: impl Fn() -> io::Result<T>) -> io::Result<T> {
        match action() {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            other => return other,
        }
        let mut opened = Vec::new();
        let rest = self.path.strip_prefix(&self.tree).unwrap_or(&self.path);
        let mut current = self.tree.clone();
        for name in std::iter::once(OsStr::new("")).chain(rest.iter()) {
            if !name.is_empty() {
                current.push(name);
            }
            let Ok(fd) = open_beneath(&current, OFlags::PATH | OFlags::NOFOLLOW) else {
                break;
            };
            let kind = fs::metadata(through(&fd))?;
            let mode = kind.permissions().mode() & 0o7777;
            if kind.is_dir() && mode & 0o700 != 0o700 {
                fs::set_permissions(through(&fd), fs::Permissions::from_mode(mode | 0o700))?;
                opened.push((fd, mode));
            }
        }
        let done = action();
        for (fd, mode) in opened.into_iter().rev() {
            // It may have been moved away, with the mode it had.
            fs::set_permissions(through(&fd), fs::Permissions::from_mode(mode))?;
        }
        done
    }
}

/// A directory in which protected paths are, or the fact that it is not there. Held open for many
/// questions in a row; see `Restorer::is_missing`.
pub(super) struct Parent(Option<OwnedFd>);

impl Parent {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        match open_beneath(path, OFlags::PATH | OFlags::DIRECTORY) {
            Err(error) if super::is_absent(&error) => Ok(Self(None)),
            opened => Ok(Self(Some(opened?))),
        }
    }

    /// Whether there is certainly nothing of this name.
    pub(super) fn is_without(&self, name: &OsStr) -> bool {
        let Some(directory) = &self.0 else {
            return true;
        };
        let found = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
        matches!(found, Err(Errno::NOENT))
    }
}

/// Opens a path on which no component is a symlink. On kernels without `openat2`, only the last
/// component is checked.
fn open_beneath(path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC;
    match rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        // A symlink on the way: what is behind it is not ours.
        Err(Errno::LOOP) => Err(io::ErrorKind::NotFound.into()),
        Err(Errno::NOSYS) => {
            let flags = flags | OFlags::NOFOLLOW;
            Ok(rustix::fs::openat(CWD, path, flags, Mode::empty())?)
        }
        other => Ok(other?),
    }
}

/// The path of an open file, for calls that want one.
fn through(fd: &impl AsFd) -> PathBuf {
    let number = fd.as_fd().as_raw_fd();
    PathBuf::from(format!("/proc/self/fd/{number}"))
}
