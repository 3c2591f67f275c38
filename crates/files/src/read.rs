//! Files by path: resolved first, then opened at the real path with no link followed.
//!
//! Three kinds of callers, by who chose the path:
//!
//! - [`open`], [`read`], [`place`]: the path was resolved and judged before, so a link in it now
//!   means that it was exchanged in between;
//! - [`read_real`], [`read_text`]: the user named the path, links and all;
//! - [`read_inside`]: a repository holds the file, and must not lead us out of itself.

use std::{io, path::Path};

use crate::{Dir, OpenError, Place, RegularFile};

/// The place that an absolute path names. No component of it may be a link.
pub fn place(path: &Path) -> io::Result<Place> {
    let (root, relative) = from_root(path)?;
    root.place(relative)
}

/// Holds the directory at an absolute path. No component of it may be a link.
pub fn dir(path: &Path) -> io::Result<Dir> {
    let (root, relative) = from_root(path)?;
    root.below(relative)
}

/// The place that an absolute path names, with missing directories made. No component of it may
/// be a link.
pub fn make_place(path: &Path) -> io::Result<Place> {
    let (root, relative) = from_root(path)?;
    root.make_place(relative).map(|(place, _)| place)
}

/// Opens the regular file at an absolute path. No component of it may be a link.
pub fn open(path: &Path) -> Result<RegularFile, OpenError> {
    absent(place(path))?.open()
}

/// Reads the regular file at an absolute path with no link in it.
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>, OpenError> {
    open(path)?.read(limit)
}

/// Reads the regular file that `path` leads to, through any links: for files that a person named.
pub fn read_real(path: &Path, limit: u64) -> Result<Vec<u8>, OpenError> {
    read(&real(path)?, limit)
}

/// The same for text.
pub fn read_text(path: &Path, limit: u64) -> Result<String, OpenError> {
    let bytes = read_real(path, limit)?;
    String::from_utf8(bytes).map_err(|_| OpenError::NotText)
}

/// Reads the regular file that `relative` leads to, through links that stay below `root`: for
/// files of a project.
pub fn read_inside(root: &Path, relative: &Path, limit: u64) -> Result<Vec<u8>, OpenError> {
    let root = real(root)?;
    let found = real(&root.join(relative))?;
    let Ok(below) = found.strip_prefix(&root) else {
        return Err(OpenError::Outside(root.display().to_string()));
    };
    let place = absent(Dir::open(&root).and_then(|root| root.place(below)))?;
    place.open()?.read(limit)
}

fn real(path: &Path) -> Result<std::path::PathBuf, OpenError> {
    absent(path.canonicalize())
}

fn from_root(path: &Path) -> io::Result<(Dir, &Path)> {
    let relative = path.strip_prefix("/").map_err(|_| {
        let reason = format!("{} is not an absolute path", path.display());
        io::Error::new(io::ErrorKind::InvalidInput, reason)
    })?;
    Ok((Dir::open(Path::new("/"))?, relative))
}

fn absent<T>(result: io::Result<T>) -> Result<T, OpenError> {
    result.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => OpenError::Missing,
        _ => OpenError::Io(error),
    })
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink, path::PathBuf};

    use super::*;

    fn dir() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap();
        (dir, path)
    }

    fn why(result: Result<Vec<u8>, OpenError>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn only_regular_files_are_read_and_no_more_than_the_limit() {
        let (_guard, dir) = dir();
        fs::write(dir.join("a"), "12345").unwrap();
        assert_eq!(read(&dir.join("a"), 5).unwrap(), b"12345");
        assert_eq!(why(read(&dir.join("a"), 4)), "it has more than 4 bytes");
        assert_eq!(why(read(&dir.join("none"), 4)), "it does not exist");
        assert_eq!(why(read(&dir, 4)), "it is a directory");
        rustix::fs::mkfifoat(rustix::fs::CWD, dir.join("pipe"), 0o600.into()).unwrap();
        assert_eq!(why(read(&dir.join("pipe"), 4)), "it is not a regular file");
        let socket = std::os::unix::net::UnixListener::bind(dir.join("socket")).unwrap();
        assert_eq!(
            why(read(&dir.join("socket"), 4)),
            "it is not a regular file"
        );
        drop(socket);
        let device = Path::new("/dev/zero");
        assert_eq!(why(read(device, 4)), "it is not a regular file");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn files_of_proc_are_not_read() {
        let environ = Path::new("/proc/self/environ").canonicalize().unwrap();
        assert_eq!(
            why(read(&environ, 1 << 20)),
            "it is a file of /proc, which is not read"
        );
        let outside = Path::new("/proc/self").join("root").join("etc/passwd");
        assert!(read(&outside, 1 << 20).is_err());
    }

    #[test]
    fn links_of_a_project_are_followed_within_it_and_not_out_of_it() {
        let (_guard, root) = dir();
        let (_other, outside) = dir();
        fs::create_dir(root.join("build")).unwrap();
        fs::write(root.join("build/Makefile"), "test:\n").unwrap();
        fs::write(outside.join("secret"), "s").unwrap();
        symlink("build/Makefile", root.join("Makefile")).unwrap();
        symlink(outside.join("secret"), root.join("setup.cfg")).unwrap();
        symlink("/dev/zero", root.join("tox.ini")).unwrap();
        symlink(&outside, root.join("away")).unwrap();
        let read = |name: &str| read_inside(&root, Path::new(name), 100);
        assert_eq!(read("Makefile").unwrap(), b"test:\n");
        for name in ["setup.cfg", "tox.ini", "away/secret"] {
            assert!(why(read(name)).starts_with("it leads out of"), "{name}");
        }
        let by_person = read_real(&root.join("setup.cfg"), 100);
        assert_eq!(by_person.unwrap(), b"s");
    }
}
