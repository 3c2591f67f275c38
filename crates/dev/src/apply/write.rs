//! Putting a change on disk: all of it, or nothing.
//!
//! New contents are written beside their places first; then each takes its place by a rename, and
//! a second name keeps the old file until the end. A failure on the way puts everything back. A
//! crash on the way leaves every file either old or new, never in between.

use std::{
    fs::{self, File, Metadata, Permissions},
    io::{self, Write as _},
    os::unix::fs::{MetadataExt, PermissionsExt, fchown},
    path::{Path, PathBuf},
};

use codespar_protocol::{ChangeSet, FileChange, FileMode, RepoPath};
use tempfile::{NamedTempFile, TempPath};

use super::{
    source::{Entry, ancestors},
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

/// Writes a change below `root`.
pub fn write(root: &Path, changes: &ChangeSet) -> Result<(), WriteError> {
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
struct Stage<'a> {
    root: &'a Path,
    puts: Vec<Put>,
    removals: Vec<RepoPath>,
    /// Directories that were made, outer ones first.
    made: Vec<PathBuf>,
}

/// A new content, waiting beside its place.
struct Put {
    path: RepoPath,
    staged: TempPath,
}

/// What was done to one path, so that it can be undone.
struct Done {
    path: RepoPath,
    place: PathBuf,
    /// The old file; `None` when there was none.
    old: Option<TempPath>,
}

impl<'a> Stage<'a> {
    fn new(root: &'a Path) -> Self {
        Self {
            root,
            puts: Vec::new(),
            removals: Vec::new(),
            made: Vec::new(),
        }
    }

    fn prepare(&mut self, change: &FileChange) -> Result<(), Failed> {
        let named = |path: &RepoPath| {
            let path = path.clone();
            move |error: io::Error| (path, error)
        };
        if let Some(gone) = change.gone() {
            let expected = self.check(gone).map_err(named(gone))?;
            if expected != Entry::File {
                return Err((gone.clone(), io::Error::other("there is no such file")));
            }
            self.removals.push(gone.clone());
        }
        match change.after() {
            Some((path, content, mode)) => self
                .put(change, path, &content.0, mode)
                .map_err(named(path)),
            None => Ok(()),
        }
    }

    /// What is at `path`, once nothing on the way to it is a link.
    fn check(&self, path: &RepoPath) -> io::Result<Entry> {
        for above in ancestors(path) {
            match entry_at(&self.root.join(above.as_str()))? {
                Entry::Directory => {}
                Entry::Nothing => break,
                _ => return Err(io::Error::other(format!("`{above}` is no directory"))),
            }
        }
        match entry_at(&self.root.join(path.as_str()))? {
            entry @ (Entry::Nothing | Entry::File) => Ok(entry),
            _ => Err(io::Error::other("something that is no file is there")),
        }
    }

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
            FileChange::Modified { .. } => Entry::File,
            _ => Entry::Nothing,
        };
        if self.check(path)? != expected {
            return Err(io::Error::other(match expected {
                Entry::File => "there is no such file any more",
                _ => "something is there already",
            }));
        }
        let place = self.root.join(path.as_str());
        self.make_dirs(path)?;
        let before = match change {
            FileChange::Moved { from, .. } => Some(from),
            FileChange::Modified { path, .. } => Some(path),
            FileChange::Added { .. } | FileChange::Deleted { .. } => None,
        };
        let before = before
            .map(|before| fs::symlink_metadata(self.root.join(before.as_str())))
            .transpose()?;
        let mut file = temporary(parent(&place)?)?;
        file.write_all(content)?;
        set_mode(file.as_file(), mode, before.as_ref())?;
        file.as_file().sync_all()?;
        self.puts.push(Put {
            path: path.clone(),
            staged: file.into_temp_path(),
        });
        Ok(())
    }

    fn make_dirs(&mut self, path: &RepoPath) -> io::Result<()> {
        for above in ancestors(path) {
            let dir = self.root.join(above.as_str());
            match fs::create_dir(&dir) {
                Ok(()) => self.made.push(dir),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Takes back what was only staged.
    fn abandon(&mut self) {
        self.puts.clear();
        for dir in self.made.drain(..).rev() {
            // Somebody may have put something there meanwhile; then it stays.
            let _ = fs::remove_dir(dir);
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

    fn carry_out(&mut self, done: &mut Vec<Done>) -> Result<(), Failed> {
        for Put { path, staged } in self.puts.drain(..) {
            let place = self.root.join(path.as_str());
            let put = || {
                let old = second_name(&place)?;
                staged.persist(&place).map_err(|error| error.error)?;
                Ok(old)
            };
            match put() {
                Ok(old) => done.push(Done { path, place, old }),
                Err(error) => return Err((path, error)),
            }
        }
        for path in &self.removals {
            let place = self.root.join(path.as_str());
            // On a file system that does not tell case apart, a file may have been moved onto its
            // own name.
            if done.iter().any(|done| is_same_file(&done.place, &place)) {
                continue;
            }
            let remove = || {
                let old = second_name(&place)?;
                fs::remove_file(&place)?;
                Ok(old)
            };
            let old = remove().map_err(|error| (path.clone(), error))?;
            let path = path.clone();
            done.push(Done { path, place, old });
        }
        Ok(())
    }

    /// Git knows no empty directories, so those that the change emptied go.
    fn remove_empty_dirs(&self) {
        for path in &self.removals {
            let above: Vec<RepoPath> = ancestors(path).collect();
            for dir in above.iter().rev() {
                if fs::remove_dir(self.root.join(dir.as_str())).is_err() {
                    break;
                }
            }
        }
    }
}

/// Puts old files back, the last one first; names those for which it did not work.
fn undo(done: Vec<Done>) -> Vec<String> {
    let mut stuck = Vec::new();
    for Done { path, place, old } in done.into_iter().rev() {
        let back = match old {
            Some(old) => old.persist(&place).map_err(|error| {
                // The old content is worth more than a tidy directory.
                let kept = error.path.keep().unwrap_or_default();
                format!("`{path}` (its old content is in {})", kept.display())
            }),
            None => fs::remove_file(&place).map_err(|_| format!("`{path}`")),
        };
        stuck.extend(back.err());
    }
    stuck
}

/// Another name for the file at `place`, which keeps it when the place is taken.
fn second_name(place: &Path) -> io::Result<Option<TempPath>> {
    if entry_at(place)? == Entry::Nothing {
        return Ok(None);
    }
    let dir = parent(place)?;
    let name = tempfile::Builder::new()
        .prefix(PREFIX)
        .make_in(dir, |name| {
            fs::hard_link(place, name).or_else(|_| copy(place, name))
        })?;
    Ok(Some(name.into_temp_path()))
}

/// Where a file cannot have two names.
fn copy(place: &Path, name: &Path) -> io::Result<()> {
    File::create_new(name)?;
    fs::copy(place, name).map(|_| ()).inspect_err(|_| {
        let _ = fs::remove_file(name);
    })
}

const PREFIX: &str = ".codespar-";

fn temporary(dir: &Path) -> io::Result<NamedTempFile> {
    // The mode of a new file, which the process's umask narrows.
    tempfile::Builder::new()
        .prefix(PREFIX)
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(dir)
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

fn is_same_file(one: &Path, other: &Path) -> bool {
    match (fs::symlink_metadata(one), fs::symlink_metadata(other)) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    }
}

fn parent(place: &Path) -> io::Result<&Path> {
    place
        .parent()
        .ok_or_else(|| io::Error::other("it has no parent directory"))
}

#[cfg(test)]
mod tests;
