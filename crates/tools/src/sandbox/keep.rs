//! Protected paths, remembered before a command and put back after it.
//!
//! Landlock cannot make a hole in a writable tree, and not every path has a mount of its own. What
//! a command leaves in the place of a protected path is moved away as it is, whatever it is, and
//! what was there before is put back. Every error on the way is an error of the command.
//!
//! [`Kept::take`] reads the paths and, for each of them, the directories on the way.
//! [`Kept::put_back`] compares both once everything the command started has ended:
//!
//! ```text
//! before      after            done
//! nothing     anything         moved away
//! anything    nothing          put back
//! file        other content    moved away, put back
//! directory   directory        mode put back, entries compared one by one
//! way         a symlink        moved away, what is below is put back
//! ```
//!
//! The command owns these files and may have made them unreadable, huge, or links to elsewhere. So
//! nothing it left is followed, and content is read only where its length is that of the original.
//! If the watcher is killed in between, nothing is put back: the copies are in its memory.

mod place;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs, io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use super::order::Restored;
use place::{Parent, Place};

/// How much content is remembered in all. What is beyond it can be moved away, not put back. It is
/// memory of the watcher, and taken before every command that has such paths.
const LIMIT: u64 = 64 << 20;

/// Tells whether a file was changed without reading it. The time in `changed` cannot be set by a
/// command.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    inode: (u64, u64),
    size: u64,
    mode: u32,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(kind: &fs::Metadata) -> Self {
        Self {
            inode: (kind.dev(), kind.ino()),
            size: kind.len(),
            mode: kind.mode(),
            modified: (kind.mtime(), kind.mtime_nsec()),
            changed: (kind.ctime(), kind.ctime_nsec()),
        }
    }
}

/// What stood at a path, with enough of it to make it again, unless it was too large or is neither
/// file, link nor directory.
#[derive(Debug, Clone)]
enum Entry {
    File {
        stamp: Stamp,
        /// `None` beyond [`LIMIT`] or where it cannot be read: a change is noticed but cannot be
        /// undone.
        bytes: Option<Vec<u8>>,
    },
    Link(PathBuf),
    Directory {
        mode: u32,
        /// Could not be looked into, so nothing is known of what is in it.
        opaque: bool,
    },
    /// Sockets, pipes and devices; a change is noticed but cannot be undone.
    Other(Stamp),
}

/// A directory on the way to a protected path, between the writable tree and the path itself. A
/// command that exchanges it exchanges what is below too.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Way {
    /// A directory made here is left alone; what is in it is compared by its own path.
    Absent,
    Directory,
    Link(PathBuf),
    Other,
}

/// What stood below some paths. A path that is not in it did not exist. The default protects
/// nothing.
#[derive(Default)]
pub(super) struct Kept {
    /// Writable trees, without symlinks.
    trees: Vec<PathBuf>,
    /// The protected paths themselves, sorted.
    roots: Vec<PathBuf>,
    ways: BTreeMap<PathBuf, Way>,
    /// The roots and everything below them, as they were.
    before: BTreeMap<PathBuf, Entry>,
    /// Bytes of content that may still be remembered.
    budget: u64,
}

impl Kept {
    /// Remembers `paths`, each in one of the writable `trees`. Paths outside of the trees are
    /// passed over: the command cannot write there. A path that cannot be looked at for another
    /// reason than absence is an error, and the command is not run.
    pub(super) fn take(
        paths: impl IntoIterator<Item = PathBuf>,
        trees: &[PathBuf],
    ) -> io::Result<Self> {
        let mut kept = Self {
            trees: trees.to_vec(),
            budget: LIMIT,
            ..Self::default()
        };
        for path in paths {
            let Some(tree) = kept.tree_of(&path) else {
                continue;
            };
            if kept.remember_way(&tree, &path)? {
                kept.look(&path)?;
                kept.roots.push(path);
            }
        }
        kept.roots.sort();
        kept.roots.dedup();
        Ok(kept)
    }

    /// The innermost tree around a path; `None` also for a tree itself.
    fn tree_of(&self, path: &Path) -> Option<PathBuf> {
        let around = self.trees.iter().filter(|tree| path.starts_with(tree));
        let nearest = around.max_by_key(|tree| tree.as_os_str().len())?;
        (nearest != path).then(|| nearest.clone())
    }

    /// Whether the path is reached without a symlink. If not, what counts is that this one stays.
    fn remember_way(&mut self, tree: &Path, path: &Path) -> io::Result<bool> {
        let rest = path.strip_prefix(tree).unwrap_or(path);
        let mut current = tree.to_path_buf();
        for name in rest.parent().into_iter().flat_map(Path::iter) {
            current.push(name);
            let way = look_at_way(&current)?;
            let goes_on = !matches!(way, Way::Link(_) | Way::Other);
            self.ways.insert(current.clone(), way);
            if !goes_on {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Remembers a path and, if it is a directory, everything below it.
    fn look(&mut self, path: &Path) -> io::Result<()> {
        let kind = match fs::symlink_metadata(path) {
            Ok(kind) => kind,
            Err(error) if is_absent(&error) => return Ok(()),
            Err(error) => return Err(named(path, &error)),
        };
        let entry = if kind.is_file() {
            Entry::File {
                stamp: Stamp::of(&kind),
                bytes: self.content(path, kind.len()),
            }
        } else if kind.is_symlink() {
            Entry::Link(fs::read_link(path)?)
        } else if kind.is_dir() {
            let children = fs::read_dir(path);
            let opaque = children.is_err();
            for entry in children.into_iter().flatten() {
                self.look(&entry?.path())?;
            }
            Entry::Directory {
                mode: kind.permissions().mode() & 0o7777,
                opaque,
            }
        } else {
            Entry::Other(Stamp::of(&kind))
        };
        self.before.insert(path.to_path_buf(), entry);
        Ok(())
    }

    /// The budget is charged only for what could be read.
    fn content(&mut self, path: &Path, size: u64) -> Option<Vec<u8>> {
        let left = self.budget.checked_sub(size)?;
        let bytes = fs::read(path).ok()?;
        self.budget = left;
        Some(bytes)
    }

    /// Puts everything back. What had been changed is returned; its changed version is in
    /// `quarantine`, or beside its place where that is on another file system. Directories on the
    /// way come first, since paths below them are reached through them. Stops at the first error;
    /// what was moved until then stays moved.
    pub(super) fn put_back(&self, quarantine: &Path) -> io::Result<Vec<Restored>> {
        let mut restorer = Restorer {
            kept: self,
            quarantine,
            changed: BTreeMap::new(),
            parents: HashMap::new(),
        };
        for (path, way) in &self.ways {
            if *way == Way::Absent && restorer.is_missing(path) {
                continue;
            }
            restorer
                .check_way(path, way)
                .map_err(|error| named(path, &error))?;
        }
        for root in &self.roots {
            if !self.before.contains_key(root) && restorer.is_missing(root) {
                continue;
            }
            restorer.check(root).map_err(|error| named(root, &error))?;
        }
        let changed = restorer.changed.into_iter();
        Ok(changed
            .map(|(path, quarantined)| Restored { path, quarantined })
            .collect())
    }

    /// The entries that a directory had.
    fn children<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = &'a PathBuf> {
        let below = self.before.range(path.to_path_buf()..);
        below
            .map(|(found, _)| found)
            .take_while(move |found| found.starts_with(path))
            .filter(move |found| found.parent() == Some(path))
    }
}

/// One run of [`Kept::put_back`].
struct Restorer<'a> {
    kept: &'a Kept,
    quarantine: &'a Path,
    /// Paths that were changed, and where the changed version is, if there was one.
    changed: BTreeMap<PathBuf, Option<PathBuf>>,
    /// Directories that were looked into already, until something is moved.
    parents: HashMap<PathBuf, Option<Parent>>,
}

impl Restorer<'_> {
    /// Whether there is certainly nothing at a path. Most protected paths do not exist, and this is
    /// asked of all of them after every command.
    fn is_missing(&mut self, path: &Path) -> bool {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return false;
        };
        if !self.parents.contains_key(parent) {
            let opened = Parent::open(parent).ok();
            self.parents.insert(parent.to_path_buf(), opened);
        }
        match self.parents.get(parent) {
            Some(Some(parent)) => parent.is_without(name),
            _ => false,
        }
    }

    /// A link that was there is made again. A link or file in place of a directory, and a link
    /// where nothing was, are moved away.
    fn check_way(&mut self, path: &Path, before: &Way) -> io::Result<()> {
        let place = self.place(path)?;
        let now = match place.metadata()? {
            None => Way::Absent,
            Some(kind) if kind.is_dir() => Way::Directory,
            Some(kind) if kind.is_symlink() => Way::Link(place.target()?),
            Some(_) => Way::Other,
        };
        match (before, &now) {
            (_, now) if before == now => Ok(()),
            (Way::Link(target), now) => {
                if *now != Way::Absent {
                    self.move_away(&place, path)?;
                }
                self.changed.entry(path.to_path_buf()).or_default();
                self.parents.clear();
                place.symlink(target)
            }
            (Way::Directory | Way::Absent, Way::Link(_)) | (Way::Directory, Way::Other) => {
                self.move_away(&place, path)
            }
            // A directory that is gone comes back with what was in it; a new one is nobody's harm.
            _ => Ok(()),
        }
    }

    /// Compares one path, and puts it back if it is not the same.
    fn check(&mut self, path: &Path) -> io::Result<()> {
        let place = self.place(path)?;
        let now = place.metadata()?;
        match (self.kept.before.get(path), now) {
            (None, None) => Ok(()),
            (None, Some(_)) => self.move_away(&place, path),
            (Some(_), None) => self.restore(path),
            (Some(entry), Some(now)) if is_same(entry, &now, &place)? => Ok(()),
            (Some(Entry::Directory { mode, opaque }), Some(now)) if now.is_dir() => {
                if now.permissions().mode() & 0o7777 != *mode {
                    place.set_mode(*mode)?;
                    self.changed.entry(path.to_path_buf()).or_default();
                }
                if *opaque {
                    return Ok(());
                }
                let found = place.names()?.into_iter().map(|name| path.join(name));
                let before = self.kept.children(path).cloned();
                let all: BTreeSet<PathBuf> = found.chain(before).collect();
                all.iter().try_for_each(|child| self.check(child))
            }
            (Some(_), Some(_)) => {
                self.move_away(&place, path)?;
                self.restore(path)
            }
        }
    }

    fn place(&self, path: &Path) -> io::Result<Place> {
        let tree = self.kept.tree_of(path).unwrap_or_default();
        Place::new(tree, path)
    }

    /// What was looked into before may be gone now, so it is forgotten.
    fn move_away(&mut self, place: &Place, path: &Path) -> io::Result<()> {
        self.parents.clear();
        let quarantined = place.move_to(self.quarantine)?;
        self.changed.insert(path.to_path_buf(), Some(quarantined));
        Ok(())
    }

    /// Makes a path as it was, with everything below it; nothing must be there. A directory gets
    /// its mode last, as it may be read-only.
    fn restore(&mut self, path: &Path) -> io::Result<()> {
        let Some(entry) = self.kept.before.get(path) else {
            return Ok(());
        };
        self.changed.entry(path.to_path_buf()).or_default();
        self.parents.clear();
        let place = self.place(path)?;
        match entry {
            Entry::File {
                bytes: Some(bytes),
                stamp,
            } => place.create(bytes, stamp.mode & 0o7777),
            Entry::File { bytes: None, .. } => Err(io::Error::other(
                "it was changed and is too large to be put back; restore it from a copy",
            )),
            Entry::Link(target) => place.symlink(target),
            Entry::Directory { mode, .. } => {
                place.make_directory()?;
                let children: Vec<PathBuf> = self.kept.children(path).cloned().collect();
                for child in children {
                    self.restore(&child)?;
                }
                place.set_mode(*mode)
            }
            Entry::Other(_) => Err(io::Error::other("it was replaced and cannot be put back")),
        }
    }
}

/// Moves one path of a tree away, unread. Returns where it is now.
pub(super) fn move_away(tree: &Path, path: &Path, quarantine: &Path) -> io::Result<PathBuf> {
    Place::new(tree.to_path_buf(), path)
        .and_then(|place| place.move_to(quarantine))
        .map_err(|error| named(path, &error))
}

/// Content is read only where the stamp differs and size and mode are the same: a file that was
/// written with what it had is no change.
fn is_same(entry: &Entry, now: &fs::Metadata, place: &Place) -> io::Result<bool> {
    Ok(match entry {
        Entry::File { stamp, bytes } if now.is_file() => {
            let same = *stamp == Stamp::of(now);
            let could_be = now.len() == stamp.size && now.mode() == stamp.mode;
            match bytes {
                // Touched, or written with what was there.
                Some(bytes) if !same && could_be => place.has_content(bytes)?,
                _ => same,
            }
        }
        Entry::Link(target) if now.is_symlink() => place.target()? == *target,
        Entry::Other(stamp) => *stamp == Stamp::of(now),
        // Directories are compared by what is in them.
        _ => false,
    })
}

/// Does not follow the last component, whatever it is.
fn look_at_way(path: &Path) -> io::Result<Way> {
    match fs::symlink_metadata(path) {
        Ok(kind) if kind.is_dir() => Ok(Way::Directory),
        Ok(kind) if kind.is_symlink() => Ok(Way::Link(fs::read_link(path)?)),
        Ok(_) => Ok(Way::Other),
        Err(error) if is_absent(&error) => Ok(Way::Absent),
        Err(error) => Err(error),
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests;
