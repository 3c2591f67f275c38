//! A tree on disk.
//!
//! For `codespar apply`, which changes the user's own files. Every question opens the root again
//! and goes down without following links, so a directory that is replaced by a link meanwhile is
//! noticed.

use std::{
    io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use codespar_files::{Dir, EntryKind};
use codespar_protocol::{FileMode, RepoPath};

use super::source::{Source, SourceEntry, SourceError, SourceFile, ancestors, folded};

/// The most of a file that is read.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// The most names of a directory that are compared.
const MAX_NAMES: usize = 100_000;

/// A directory on disk. Whoever changes it is taken to have seen its files whole.
#[derive(Debug, Clone)]
pub struct WorkTree {
    root: PathBuf,
}

impl WorkTree {
    /// The tree below `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }
}

impl WorkTree {
    fn dir(&self) -> io::Result<Dir> {
        Dir::open(&self.root)
    }
}

impl Source for WorkTree {
    fn entry(&self, path: &RepoPath) -> Result<SourceEntry, SourceError> {
        let entry = self.dir().and_then(|root| entry_at(&root, path));
        entry.map_err(|error| problem(path, &error))
    }

    fn file(&self, path: &RepoPath) -> Result<Option<SourceFile>, SourceError> {
        if self.entry(path)? != SourceEntry::File {
            return Ok(None);
        }
        let place = self.dir().and_then(|root| root.place(&name(path)));
        let opened = place.map_err(|error| problem(path, &error))?.open();
        let opened = opened.map_err(|error| problem(path, &error))?;
        let mode = opened.metadata.permissions().mode();
        let content = opened.read(MAX_BYTES);
        Ok(Some(SourceFile {
            content: content.map_err(|error| problem(path, &error))?,
            mode: if mode & 0o100 == 0 {
                FileMode::Regular
            } else {
                FileMode::Executable
            },
            partial: false,
        }))
    }

    fn alike(&self, path: &RepoPath) -> Result<Option<RepoPath>, SourceError> {
        for part in ancestors(path).chain([path.clone()]) {
            if self.entry(&part)? != SourceEntry::Nothing {
                continue;
            }
            let above = part
                .as_str()
                .rsplit_once('/')
                .map_or("", |(above, _)| above);
            let wanted = folded(part.file_name());
            let names = self.dir().and_then(|root| names_in(&root, above));
            let names = names.map_err(|error| problem(path, &error))?;
            let Some(name) = names.iter().find(|name| folded(name) == wanted) else {
                return Ok(None);
            };
            let found = if above.is_empty() {
                name.clone()
            } else {
                format!("{above}/{name}")
            };
            return Ok(RepoPath::new(&found).ok());
        }
        Ok(None)
    }
}

/// What is at a path below a held directory, links not followed. A directory with a `.git` of any
/// kind in it is a repository of its own: a change to it would belong to another history.
pub(super) fn entry_at(root: &Dir, path: &RepoPath) -> io::Result<SourceEntry> {
    let place = match root.place(&name(path)) {
        Err(error) if is_absence(&error) => return Ok(SourceEntry::Nothing),
        other => other?,
    };
    Ok(match place.kind()? {
        EntryKind::Nothing => SourceEntry::Nothing,
        EntryKind::Symlink => SourceEntry::Symlink,
        EntryKind::File => SourceEntry::File,
        EntryKind::Special => SourceEntry::Special,
        EntryKind::Directory => {
            let git = place.dir()?.place(Path::new(".git"))?;
            match git.kind()? {
                EntryKind::Nothing => SourceEntry::Directory,
                _ => SourceEntry::Repository,
            }
        }
    })
}

fn name(path: &RepoPath) -> PathBuf {
    PathBuf::from(path.as_str())
}

/// Names that are no text are nobody's namesakes.
fn names_in(root: &Dir, above: &str) -> io::Result<Vec<String>> {
    let dir = match root.below(Path::new(above)) {
        Err(error) if is_absence(&error) => return Ok(Vec::new()),
        other => other?,
    };
    let mut names = Vec::new();
    for name in dir.names(MAX_NAMES)? {
        names.extend(name.into_string());
    }
    names.sort();
    Ok(names)
}

fn is_absence(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn problem(path: &RepoPath, error: &dyn std::fmt::Display) -> SourceError {
    SourceError {
        path: path.to_string(),
        reason: error.to_string(),
    }
}
