//! A directory held open; everything below it is reached without following links.
//!
//! `openat2` with `RESOLVE_BENEATH` and `RESOLVE_NO_SYMLINKS` resolves a whole relative path in the
//! kernel. Where it is missing, the path is opened component by component, each with `O_NOFOLLOW`
//! relative to the one before. Both give the same answers: `..`, an absolute path or a symbolic
//! link in any component is an error, also a link that stays inside.

use std::{
    ffi::OsStr,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Component, Path},
    sync::Arc,
};

use rustix::{
    fs::{Mode, OFlags, mkdirat, openat},
    io::Errno,
};

use crate::Place;

/// A directory held open. What happens to its path afterwards does not matter.
///
/// Clones share one descriptor, so a [`Place`] can keep its directory alive at no cost.
#[derive(Debug, Clone)]
pub struct Dir(Arc<OwnedFd>);

impl Dir {
    /// The directory at `path`, through any links: for a root that a person named.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = flags() - OFlags::NOFOLLOW;
        let fd = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(Self(Arc::new(fd)))
    }

    /// The directory below this one. An empty path or `.` is this directory itself.
    pub fn below(&self, relative: &Path) -> io::Result<Self> {
        let names = names(relative)?;
        if names.is_empty() {
            return Ok(self.clone());
        }
        match self.at_once(&names.iter().collect::<std::path::PathBuf>()) {
            Some(fd) => fd.map(|fd| Self(Arc::new(fd))).map_err(readable),
            None => self.step_by_step(&names),
        }
    }

    /// One system call for the whole way; `None` where the kernel does not have it, or a filter of
    /// system calls denies it. `EAGAIN` is the kernel's answer to a rename elsewhere during
    /// resolution; it falls back too.
    #[cfg(target_os = "linux")]
    fn at_once(&self, relative: &Path) -> Option<Result<OwnedFd, Errno>> {
        use rustix::fs::{ResolveFlags, openat2};
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        match openat2(&*self.0, relative, flags(), Mode::empty(), resolve) {
            Err(Errno::NOSYS | Errno::PERM | Errno::AGAIN) => None,
            other => Some(other),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn at_once(&self, _: &Path) -> Option<Result<OwnedFd, Errno>> {
        None
    }

    fn step_by_step(&self, names: &[&OsStr]) -> io::Result<Self> {
        let mut dir = self.clone();
        for name in names {
            dir = dir.child(name).map_err(readable)?;
        }
        Ok(dir)
    }

    fn child(&self, name: &OsStr) -> Result<Self, Errno> {
        let fd = openat(&*self.0, name, flags(), Mode::empty())?;
        Ok(Self(Arc::new(fd)))
    }

    /// The directory below this one; missing ones are made. Gives back those that were, outer
    /// ones first.
    ///
    /// On failure the directories made so far stay. One that another process makes at the same time
    /// is used and not listed.
    pub fn make_below(&self, relative: &Path) -> io::Result<(Self, Vec<Place>)> {
        self.make_with(relative, Mode::from_raw_mode(0o777))
    }

    /// The same; only their owner may enter those that are made.
    pub fn make_private_below(&self, relative: &Path) -> io::Result<Self> {
        let (dir, _) = self.make_with(relative, Mode::from_raw_mode(0o700))?;
        Ok(dir)
    }

    fn make_with(&self, relative: &Path, mode: Mode) -> io::Result<(Self, Vec<Place>)> {
        let mut dir = self.clone();
        let mut made = Vec::new();
        for name in names(relative)? {
            let next = match dir.child(name) {
                Err(Errno::NOENT) => {
                    match mkdirat(&*dir.0, name, mode) {
                        Ok(()) => made.push(Place::new(&dir, name)),
                        Err(Errno::EXIST) => {}
                        Err(error) => return Err(error.into()),
                    }
                    dir.child(name)
                }
                other => other,
            };
            dir = next.map_err(readable)?;
        }
        Ok((dir, made))
    }

    /// A name below this directory. The directory it is in is held from now on.
    pub fn place(&self, relative: &Path) -> io::Result<Place> {
        let (parent, name) = split(relative)?;
        Ok(Place::new(&self.below(parent)?, name))
    }

    /// The same, making missing directories. The directories that were made come second, outer ones
    /// first, so that a caller can remove them in reverse order when it gives up. Nothing is made
    /// at the name itself.
    pub fn make_place(&self, relative: &Path) -> io::Result<(Place, Vec<Place>)> {
        let (parent, name) = split(relative)?;
        let (dir, made) = match self.below(parent) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.make_below(parent)?,
            found => (found?, Vec::new()),
        };
        Ok((Place::new(&dir, name), made))
    }

    /// The names in it, without `.` and `..`; at most `limit` of them. The order is that of the
    /// file system. The directory is opened again as `.`, because a handle with `O_PATH` cannot be
    /// listed; this is where a directory must be readable.
    pub fn names(&self, limit: usize) -> io::Result<Vec<std::ffi::OsString>> {
        use std::os::unix::ffi::OsStrExt as _;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = openat(&*self.0, ".", flags, Mode::empty())?;
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::new(fd)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name != "." && name != ".." && names.len() < limit {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A handle to a directory, which need not be readable.
fn flags() -> OFlags {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    #[cfg(target_os = "linux")]
    return flags | OFlags::PATH;
    #[cfg(not(target_os = "linux"))]
    return flags | OFlags::RDONLY;
}

fn split(relative: &Path) -> io::Result<(&Path, &OsStr)> {
    match (relative.parent(), relative.file_name()) {
        (Some(parent), Some(name)) => Ok((parent, name)),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the path names no file",
        )),
    }
}

/// The components of a relative path. `..` and a root are errors before the kernel sees them, so
/// that both ways down refuse them alike.
fn names(relative: &Path) -> io::Result<Vec<&OsStr>> {
    let mut names = Vec::new();
    for component in relative.components() {
        match component {
            Component::Normal(name) => names.push(name),
            Component::CurDir => {}
            _ => {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "the path leaves its directory",
                ));
            }
        }
    }
    Ok(names)
}

fn readable(error: Errno) -> io::Error {
    match error {
        Errno::LOOP => io::Error::other("a symbolic link is in the place of a directory"),
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn both_ways_down_find_directories_and_follow_no_link() {
        let root = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("a/b")).unwrap();
        fs::create_dir(outside.path().join("b")).unwrap();
        symlink("a", root.path().join("inside")).unwrap();
        symlink(outside.path(), root.path().join("away")).unwrap();
        fs::write(root.path().join("file"), "").unwrap();
        let dir = Dir::open(root.path()).unwrap();
        for (path, found) in [
            ("a/b", true),
            ("./a/b", true),
            ("a/b/c", false),
            ("inside/b", false),
            ("away", false),
            ("away/b", false),
            ("file", false),
        ] {
            let path = Path::new(path);
            assert_eq!(dir.below(path).is_ok(), found, "{path:?}");
            let steps = dir.step_by_step(&names(path).unwrap());
            assert_eq!(steps.is_ok(), found, "{path:?}");
        }
        for path in ["..", "a/../..", "/etc"] {
            assert!(dir.below(Path::new(path)).is_err(), "{path}");
        }
    }

    #[test]
    fn private_directories_are_for_their_owner_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let root = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let dir = Dir::open(root.path()).unwrap();
        dir.make_private_below(Path::new("x/y")).unwrap();
        for name in ["x", "x/y"] {
            let mode = fs::metadata(root.path().join(name)).unwrap().permissions();
            assert_eq!(mode.mode() & 0o777, 0o700, "{name}");
        }
        symlink(outside.path(), root.path().join("away")).unwrap();
        assert!(dir.make_private_below(Path::new("away/y")).is_err());
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    }

    #[test]
    fn missing_directories_are_made_but_not_through_a_link() {
        let root = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        symlink(outside.path(), root.path().join("away")).unwrap();
        let dir = Dir::open(root.path()).unwrap();
        let (_, made) = dir.make_below(Path::new("x/y")).unwrap();
        assert_eq!(made.len(), 2);
        assert!(root.path().join("x/y").is_dir());
        assert!(dir.make_below(Path::new("away/y")).is_err());
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    }
}
