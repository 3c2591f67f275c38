//! Where files are read from before they change.

use codespar_protocol::{FileMode, RepoPath};

/// A file before it changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// All of it.
    pub content: Vec<u8>,
    /// What kind.
    pub mode: FileMode,
    /// Whether the author of the change has seen only parts of it, or nothing: then it may be
    /// changed in places, but not replaced whole.
    pub partial: bool,
}

/// What a path is in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceEntry {
    /// Nothing is there.
    Nothing,
    /// A file, plain or executable.
    File,
    Directory,
    /// A symbolic link, wherever it points.
    Symlink,
    /// A repository of its own.
    Repository,
    /// A pipe, a device, a socket.
    Special,
}

/// Why a source could not say.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{path}` cannot be read: {reason}")]
pub struct SourceError {
    pub path: String,
    /// What happened.
    pub reason: String,
}

/// A tree of files before it changes. Nothing in it is followed: a link is a link.
pub trait Source {
    /// What is at `path`.
    fn entry(&self, path: &RepoPath) -> Result<SourceEntry, SourceError>;

    /// The file at `path`; `None` when there is none.
    fn file(&self, path: &RepoPath) -> Result<Option<SourceFile>, SourceError>;

    /// A path of the tree that differs from `path`, or from a directory above it, in upper and
    /// lower case only.
    fn alike(&self, path: &RepoPath) -> Result<Option<RepoPath>, SourceError>;
}

/// The directories above `path`, from the top.
pub(super) fn ancestors(path: &RepoPath) -> impl Iterator<Item = RepoPath> + '_ {
    let text = path.as_str();
    text.match_indices('/')
        .filter_map(|(at, _)| RepoPath::new(&text[..at]).ok())
}

/// As a file system that does not tell case apart would read it.
pub(super) fn folded(text: &str) -> String {
    text.to_lowercase()
}
