//! A tree in memory: what a forge says of a commit.

use std::collections::BTreeMap;

use codespar_protocol::{FileMode, RepoPath};

use super::source::{Source, SourceEntry, SourceError, SourceFile, ancestors, folded};

/// A tree in memory. Every path of the commit should be in it, or a new file may collide with one
/// that is not; contents are only needed for the files that an answer names
/// ([`crate::answer::ParsedAnswer::paths`]).
#[derive(Debug, Clone, Default)]
pub struct MapSource {
    entries: BTreeMap<RepoPath, Known>,
}

#[derive(Debug, Clone)]
enum Known {
    File(SourceFile),
    Listed(FileMode),
    Repository,
}

impl MapSource {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file with its content.
    pub fn insert(&mut self, path: RepoPath, file: SourceFile) {
        self.entries.insert(path, Known::File(file));
    }

    /// Adds a file by name alone. A content that is known already stays.
    pub fn list(&mut self, path: RepoPath, mode: FileMode) {
        self.entries.entry(path).or_insert(Known::Listed(mode));
    }

    /// Takes a file out.
    pub(super) fn remove(&mut self, path: &RepoPath) {
        self.entries.remove(path);
    }

    /// Adds a repository of its own: a submodule.
    pub fn insert_repository(&mut self, path: RepoPath) {
        self.entries.insert(path, Known::Repository);
    }

    /// A file or directory whose name is this but for the case of letters.
    fn spelled_otherwise(&self, path: &RepoPath) -> Option<RepoPath> {
        let wanted = folded(path.as_str());
        let depth = path.as_str().split('/').count();
        self.entries.keys().find_map(|known| {
            let known = known.as_str();
            let end = known.match_indices('/').nth(depth - 1);
            let head = end.map_or(known, |(end, _)| &known[..end]);
            (folded(head) == wanted)
                .then(|| RepoPath::new(head).ok())
                .flatten()
        })
    }

    /// A path is a directory if some file is below it, as in git. The first path below it in the
    /// order of the map is looked up, without a pass over all of them.
    fn is_directory(&self, path: &RepoPath) -> bool {
        let below = format!("{path}/");
        let Ok(first) = RepoPath::new(&format!("{below}\u{20}")) else {
            return false;
        };
        let mut next = self.entries.range(first..).map(|(path, _)| path.as_str());
        next.next().is_some_and(|path| path.starts_with(&below))
    }
}

impl Source for MapSource {
    fn entry(&self, path: &RepoPath) -> Result<SourceEntry, SourceError> {
        Ok(match self.entries.get(path) {
            Some(Known::File(SourceFile { mode, .. }) | Known::Listed(mode)) => match mode {
                FileMode::Symlink => SourceEntry::Symlink,
                FileMode::Regular | FileMode::Executable => SourceEntry::File,
            },
            Some(Known::Repository) => SourceEntry::Repository,
            None if self.is_directory(path) => SourceEntry::Directory,
            None => SourceEntry::Nothing,
        })
    }

    /// A path that is listed without content is an error and not an absence: it must not be taken
    /// for a new file.
    fn file(&self, path: &RepoPath) -> Result<Option<SourceFile>, SourceError> {
        match self.entries.get(path) {
            Some(Known::File(file)) => Ok(Some(file.clone())),
            Some(Known::Listed(_)) => Err(SourceError {
                path: path.to_string(),
                reason: "it was not among the files that were read".to_owned(),
            }),
            Some(Known::Repository) | None => Ok(None),
        }
    }

    fn alike(&self, path: &RepoPath) -> Result<Option<RepoPath>, SourceError> {
        for part in ancestors(path).chain([path.clone()]) {
            if self.entry(&part)? == SourceEntry::Nothing {
                return Ok(self.spelled_otherwise(&part));
            }
        }
        Ok(None)
    }
}
