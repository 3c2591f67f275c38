//! A file that takes another's place whole or not at all.
//!
//! The content goes to a new file in the same directory, which is then renamed: a reader sees the
//! old file or the new one, and a crash of the process leaves at most a file whose name begins with
//! `.codespar-`. Nothing is synced to disk here.

use std::{
    ffi::OsString,
    fs::File,
    hash::{BuildHasher as _, RandomState},
    io::{self, Write as _},
};

use rustix::{
    fs::{AtFlags, Mode, OFlags, linkat, openat},
    io::Errno,
};

use crate::{OpenError, Place};

/// What temporary names begin with.
const PREFIX: &str = ".codespar-";

/// Names are tried this often before the directory counts as hopeless. A name has 64 random bits,
/// so a second attempt is already unlikely.
const MOST_NAMES: u64 = 100;

/// A temporary name in a held directory. Unless it is moved to its place, it goes when this is
/// dropped.
#[derive(Debug)]
pub struct Temporary(Option<Place>);

impl Temporary {
    /// A new file beside `place`, with this content and the mode of any new file. The open file
    /// comes with it, for setting another mode before it is moved.
    pub fn beside(place: &Place, content: &[u8]) -> io::Result<(Self, File)> {
        // The process's umask narrows it.
        Self::with_mode(place, content, Mode::from_raw_mode(0o666))
    }

    /// The same for its owner alone.
    pub fn private_beside(place: &Place, content: &[u8]) -> io::Result<Self> {
        let (temporary, _) = Self::with_mode(place, content, Mode::from_raw_mode(0o600))?;
        Ok(temporary)
    }

    fn with_mode(place: &Place, content: &[u8], mode: Mode) -> io::Result<(Self, File)> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let (name, fd) = free_name(place, |name| openat(&name.dir, &name.name, flags, mode))?;
        let temporary = Self(Some(name));
        let mut file = File::from(fd);
        file.write_all(content)?;
        Ok((temporary, file))
    }

    /// A second name for the file at `place`, which keeps it when the place is taken; a copy where
    /// a file cannot have two names. Persisting it later puts the old file back.
    pub fn second_name(place: &Place) -> Result<Self, OpenError> {
        let linked = free_name(place, |name| {
            let flags = AtFlags::empty();
            linkat(&place.dir, &place.name, &name.dir, &name.name, flags)
        });
        if let Ok((name, ())) = linked {
            return Ok(Self(Some(name)));
        }
        let mut original = place.open()?;
        let (copy, mut file) = Self::beside(place, b"")?;
        io::copy(&mut original.file, &mut file)?;
        file.set_permissions(original.metadata.permissions())?;
        Ok(copy)
    }

    /// Moves it to the place; what was there is gone. On failure it stays temporary.
    pub fn persist(&mut self, place: &Place) -> io::Result<()> {
        if let Some(name) = &self.0 {
            name.rename(place)?;
            self.0 = None;
        }
        Ok(())
    }

    /// Leaves it where it is; its name.
    pub fn keep(mut self) -> OsString {
        self.0.take().map(|place| place.name).unwrap_or_default()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(place) = &self.0 {
            let _ = place.remove_file();
        }
    }
}

/// Tries names until `make` finds one that is not taken.
fn free_name<T>(
    place: &Place,
    make: impl Fn(&Place) -> Result<T, Errno>,
) -> io::Result<(Place, T)> {
    let random = RandomState::new();
    for attempt in 0..MOST_NAMES {
        let name = format!("{PREFIX}{:016x}", random.hash_one(attempt));
        let name = place.beside(name.as_ref());
        match make(&name) {
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
            Ok(made) => return Ok((name, made)),
        }
    }
    Err(io::Error::other("no temporary name is free"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::place;

    #[test]
    fn a_temporary_file_takes_its_place_or_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::write(root.join("a"), "old").unwrap();
        let a = place(&root.join("a")).unwrap();
        drop(Temporary::beside(&a, b"new").unwrap());
        assert_eq!(fs::read_dir(&root).unwrap().count(), 1);
        let mut old = Temporary::second_name(&a).unwrap();
        let (mut new, _) = Temporary::beside(&a, b"new").unwrap();
        new.persist(&a).unwrap();
        assert_eq!(fs::read(root.join("a")).unwrap(), b"new");
        old.persist(&a).unwrap();
        assert_eq!(fs::read(root.join("a")).unwrap(), b"old");
        assert_eq!(fs::read_dir(&root).unwrap().count(), 1);
    }
}
