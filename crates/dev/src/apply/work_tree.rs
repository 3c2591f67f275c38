//! A tree on disk.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use codespar_protocol::{FileMode, RepoPath};

use super::source::{Entry, Source, SourceError, SourceFile, ancestors, folded};

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

impl Source for WorkTree {
    fn entry(&self, path: &RepoPath) -> Result<Entry, SourceError> {
        entry_at(&self.root.join(path.as_str())).map_err(|error| problem(path, &error))
    }

    fn file(&self, path: &RepoPath) -> Result<Option<SourceFile>, SourceError> {
        if self.entry(path)? != Entry::File {
            return Ok(None);
        }
        let place = self.root.join(path.as_str());
        let read = || {
            let mode = fs::symlink_metadata(&place)?.permissions().mode();
            Ok((fs::read(&place)?, mode))
        };
        let (content, mode) = read().map_err(|error: io::Error| problem(path, &error))?;
        Ok(Some(SourceFile {
            content,
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
            if self.entry(&part)? != Entry::Nothing {
                continue;
            }
            let above = part
                .as_str()
                .rsplit_once('/')
                .map_or("", |(above, _)| above);
            let wanted = folded(part.file_name());
            let names = names_in(&self.root.join(above)).map_err(|error| problem(path, &error))?;
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

/// What is at a place on disk, links not followed.
pub(super) fn entry_at(place: &Path) -> io::Result<Entry> {
    let meta = match fs::symlink_metadata(place) {
        Ok(meta) => meta,
        Err(error) if is_absence(&error) => return Ok(Entry::Nothing),
        Err(error) => return Err(error),
    };
    let kind = meta.file_type();
    Ok(if kind.is_symlink() {
        Entry::Symlink
    } else if kind.is_file() {
        Entry::File
    } else if !kind.is_dir() {
        Entry::Special
    } else if fs::symlink_metadata(place.join(".git")).is_ok() {
        Entry::Repository
    } else {
        Entry::Directory
    })
}

/// Names that are no text are nobody's namesakes.
fn names_in(dir: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if is_absence(&error) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry?.file_name().into_string());
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

fn problem(path: &RepoPath, error: &io::Error) -> SourceError {
    SourceError {
        path: path.to_string(),
        reason: error.to_string(),
    }
}
