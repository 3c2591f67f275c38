//! Putting a change on disk: all of it, or nothing.
//!
//! New contents are written beside their places first; then each takes its place by a rename, and
//! a second name keeps the old file until the end. A failure on the way puts everything back. A
//! crash on the way leaves every file either old or new, never in between.
//!
//! ```text
//! prepare    check every place, write new contents beside them, sync    nothing has changed so far
//! carry out  second name for the old file, rename the new one over it   each step is atomic
//! done       drop the second names, remove directories that became empty
//! ```
//!
//! After a crash during the second phase, some files may be new and others old, and temporary names
//! may be left beside them. Directories are not synced: a power failure may lose renames, never
//! contents.

use std::{
    fs::{File, Metadata, Permissions},
    io,
    os::unix::fs::{MetadataExt, PermissionsExt, fchown},
    path::Path,
};

use codespar_files::{Dir, EntryKind, OpenError, Place, Temporary};
use codespar_protocol::{ChangeSet, FileChange, FileMode, RepoPath};

use super::{
    source::{SourceEntry, ancestors},
    work_tree::entry_at,
};

/// Why a change is not on disk. Nothing of it is.
#[derive(Debug, thiserror::Error)]
#[error("cannot write `{path}`: {reason}; {state}")]
pub struct WriteError {
    /// Where it failed.
    pub path: String,
    /// What happened.
    pub reason: String,
    /// What became of the rest.
    pub state: String,
}

/// Writes a change below `root`. The directory is held from beginning to end, and no link below
/// it is followed.
pub fn write(root: &Path, changes: &ChangeSet) -> Result<(), WriteError> {
    let root = Dir::open(root).map_err(|error| WriteError {
        path: root.display().to_string(),
        reason: error.to_string(),
        state: "nothing was changed".to_owned(),
    })?;
    let mut stage = Stage::new(root);
    for change in &changes.0 {
        if let Err((path, error)) = stage.prepare(change) {
            stage.abandon();
            return Err(failure(&path, &error, "nothing was changed"));
        }
    }
    stage.commit()
}

type Failed = (RepoPath, io::Error);

fn failure(path: &RepoPath, error: &io::Error, state: &str) -> WriteError {
    WriteError {
        path: path.to_string(),
        reason: error.to_string(),
        state: state.to_owned(),
    }
}

/// A change on its way to the disk.
struct Stage {
    root: Dir,
    puts: Vec<Put>,
    removals: Vec<(RepoPath, Place)>,
    /// Directories that were made, outer ones first.
    made: Vec<Place>,
}

/// A new content, waiting beside its place.
struct Put {
    path: RepoPath,
    place: Place,
    staged: Temporary,
}

/// What was done to one path, so that it can be undone.
struct Done {
    path: RepoPath,
    place: Place,
    /// The old file; `None` when there was none.
    old: Option<Temporary>,
}

impl Stage {
    fn new(root: Dir) -> Self {
        Self {
            root,
            puts: Vec::new(),
            removals: Vec::new(),
            made: Vec::new(),
        }
    }

    fn place(&self, path: &RepoPath) -> io::Result<Place> {
        self.root.place(Path::new(path.as_str()))
    }

    /// Expects what the change says: a file to modify or remove must be there, a new one must not.
    /// Somebody may have changed the tree since the change was made.
    fn prepare(&mut self, change: &FileChange) -> Result<(), Failed> {
        let named = |path: &RepoPath| {
            let path = path.clone();
            move |error: io::Error| (path, error)
        };
        if let Some(gone) = change.gone() {
            let expected = self.check(gone).map_err(named(gone))?;
            if expected != SourceEntry::File {
                return Err((gone.clone(), io::Error::other("there is no such file")));
            }
            let place = self.place(gone).map_err(named(gone))?;
            self.removals.push((gone.clone(), place));
        }
        match change.after() {
            Some((path, content, mode)) => self
                .put(change, path, &content.0, mode)
                .map_err(named(path)),
            None => Ok(()),
        }
    }

    /// What is at `path`, once nothing on the way to it is a link.
    fn check(&self, path: &RepoPath) -> io::Result<SourceEntry> {
        for above in ancestors(path) {
            match entry_at(&self.root, &above)? {
                SourceEntry::Directory => {}
                SourceEntry::Nothing => break,
                _ => return Err(io::Error::other(format!("`{above}` is no directory"))),
            }
        }
        match entry_at(&self.root, path)? {
            entry @ (SourceEntry::Nothing | SourceEntry::File) => Ok(entry),
            _ => Err(io::Error::other("something that is no file is there")),
        }
    }

    /// The permissions and the owner of the old file are kept, but for whether it is executable.
    fn put(
        &mut self,
        change: &FileChange,
        path: &RepoPath,
        content: &[u8],
        mode: FileMode,
    ) -> io::Result<()> {
        if mode == FileMode::Symlink {
            return Err(io::Error::other("symbolic links are not written"));
        }
        let expected = match change {
            FileChange::Modified { .. } => SourceEntry::File,
            _ => SourceEntry::Nothing,
        };
        if self.check(path)? != expected {
            return Err(io::Error::other(match expected {
                SourceEntry::File => "there is no such file any more",
                _ => "something is there already",
            }));
        }
        let (place, made) = self.root.make_place(Path::new(path.as_str()))?;
        self.made.extend(made);
        let before = match change {
            FileChange::Moved { from, .. } => Some(from),
            FileChange::Modified { path, .. } => Some(path),
            FileChange::Added { .. } | FileChange::Deleted { .. } => None,
        };
        let before = before
            .map(|before| self.place(before)?.open().map_err(io_error))
            .transpose()?
            .map(|before| before.metadata);
        let (staged, file) = Temporary::beside(&place, content)?;
        set_mode(&file, mode, before.as_ref())?;
        file.sync_all()?;
        self.puts.push(Put {
            path: path.clone(),
            place,
            staged,
        });
        Ok(())
    }

    /// Takes back what was only staged.
    fn abandon(&mut self) {
        self.puts.clear();
        for dir in self.made.drain(..).rev() {
            // Somebody may have put something there meanwhile; then it stays.
            let _ = dir.remove_dir();
        }
    }

    fn commit(mut self) -> Result<(), WriteError> {
        let mut done = Vec::new();
        match self.carry_out(&mut done) {
            Ok(()) => {
                // The old files go first: they are in those directories.
                drop(done);
                self.remove_empty_dirs();
                Ok(())
            }
            Err((path, error)) => {
                let stuck = undo(done);
                self.abandon();
                let state = match stuck.as_slice() {
                    [] => "everything was put back as it was".to_owned(),
                    _ => format!("and could not be put back: {}", stuck.join(", ")),
                };
                Err(failure(&path, &error, &state))
            }
        }
    }

    /// Contents first, removals after them, so that a moved file exists under one of its names at
    /// any time.
    fn carry_out(&mut self, done: &mut Vec<Done>) -> Result<(), Failed> {
        for put in self.puts.drain(..) {
            let Put {
                path,
                place,
                mut staged,
            } = put;
            let mut exchange = || {
                let old = second_name(&place)?;
                staged.persist(&place)?;
                Ok(old)
            };
            match exchange() {
                Ok(old) => done.push(Done { path, place, old }),
                Err(error) => return Err((path, error)),
            }
        }
        for (path, place) in &self.removals {
            // On a file system that does not tell case apart, a file may have been moved onto its
            // own name.
            if done.iter().any(|done| done.place.is_same_file(place)) {
                continue;
            }
            let remove = || {
                let old = second_name(place)?;
                place.remove_file()?;
                Ok(old)
            };
            let old = remove().map_err(|error| (path.clone(), error))?;
            let (path, place) = (path.clone(), place.clone());
            done.push(Done { path, place, old });
        }
        Ok(())
    }

    /// Git knows no empty directories, so those that the change emptied go.
    fn remove_empty_dirs(&self) {
        for (path, _) in &self.removals {
            let above: Vec<RepoPath> = ancestors(path).collect();
            for dir in above.iter().rev() {
                let removed = self.place(dir).and_then(|place| place.remove_dir());
                if removed.is_err() {
                    break;
                }
            }
        }
    }
}

/// Puts old files back, the last one first; names those for which it did not work. A file that
/// cannot be put back keeps its old content beside it, under the name that is told.
fn undo(done: Vec<Done>) -> Vec<String> {
    let mut stuck = Vec::new();
    for Done { path, place, old } in done.into_iter().rev() {
        let back = match old {
            Some(mut old) => old.persist(&place).map_err(|_| {
                // The old content is worth more than a tidy directory.
                let kept = old.keep();
                format!(
                    "`{path}` (its old content is beside it in {})",
                    kept.display()
                )
            }),
            None => place.remove_file().map_err(|_| format!("`{path}`")),
        };
        stuck.extend(back.err());
    }
    stuck
}

/// Another name for the file at `place`, which keeps it when the place is taken.
fn second_name(place: &Place) -> io::Result<Option<Temporary>> {
    match place.kind()? {
        EntryKind::Nothing => Ok(None),
        EntryKind::File => Temporary::second_name(place).map(Some).map_err(io_error),
        _ => Err(io::Error::other("something that is no file is there")),
    }
}

fn io_error(error: OpenError) -> io::Error {
    match error {
        OpenError::Io(error) => error,
        OpenError::Missing => io::ErrorKind::NotFound.into(),
        other => io::Error::other(other),
    }
}

/// The mode and owner of the file before; a new file is executable where it may be read.
fn set_mode(file: &File, mode: FileMode, before: Option<&Metadata>) -> io::Result<()> {
    let bits = match before {
        Some(before) => {
            // Only root can give a file away; anybody else owns what they may replace.
            let _ = fchown(file, Some(before.uid()), Some(before.gid()));
            before.permissions().mode()
        }
        None => file.metadata()?.permissions().mode(),
    };
    let runs = bits & 0o100 != 0;
    let bits = match mode {
        FileMode::Executable if !runs => bits | ((bits & 0o444) >> 2),
        FileMode::Regular if runs => bits & !0o111,
        _ => bits,
    };
    file.set_permissions(Permissions::from_mode(bits))
}

#[cfg(test)]
mod tests;
