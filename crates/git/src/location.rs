//! Finds a repository without asking git, which would read its configuration.
//!
//! The paths that [`Location::find`] returns are canonical, so a link that is exchanged later does
//! not lead them elsewhere.

use std::{
    ffi::OsStr,
    io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use crate::{GitError, small};

/// Where the parts of a repository are, as they were when it was looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// `HEAD` and index: of this work tree alone.
    pub git_dir: PathBuf,
    /// References and objects, which all work trees share.
    pub common_dir: PathBuf,
    /// The files; none for a bare repository.
    pub work_tree: Option<PathBuf>,
}

impl Location {
    /// The repository that a directory is in. A bare one is found at its own directory only.
    pub fn find(dir: &Path) -> Result<Self, GitError> {
        let start = dir.canonicalize().map_err(GitError::file(dir))?;
        // Files of a work tree can look like a bare repository; its own `.git` comes first.
        if start.join(".git").symlink_metadata().is_err() && is_git_dir(&start) {
            return Self::bare(&start);
        }
        for root in start.ancestors() {
            let entry = root.join(".git");
            let git_dir = match entry.metadata() {
                Ok(facts) if facts.is_dir() && is_git_dir(&entry) => entry.clone(),
                Ok(facts) if facts.is_file() => pointed_to(&entry)?,
                _ => continue,
            };
            let git_dir = git_dir.canonicalize().map_err(GitError::file(&git_dir))?;
            return Ok(Self {
                common_dir: common_of(&git_dir)?,
                git_dir,
                work_tree: Some(root.to_owned()),
            });
        }
        Err(GitError::NoRepository(start))
    }

    /// At a git directory itself. One that is named `.git` has the directory above it as its work
    /// tree; any other has none, whatever its configuration says.
    fn bare(git_dir: &Path) -> Result<Self, GitError> {
        let work_tree = (git_dir.file_name() == Some(OsStr::new(".git")))
            .then(|| git_dir.parent().map(Path::to_owned))
            .flatten();
        Ok(Self {
            common_dir: common_of(git_dir)?,
            git_dir: git_dir.to_owned(),
            work_tree,
        })
    }

    /// The directory that programs are not looked for in. It is also where temporary directories
    /// must not be.
    pub(crate) fn root(&self) -> &Path {
        self.work_tree.as_deref().unwrap_or(&self.common_dir)
    }
}

/// As git tells one: a `HEAD`, objects and references, of its own or of the one it belongs to.
fn is_git_dir(dir: &Path) -> bool {
    let has_head = dir.join("HEAD").symlink_metadata().is_ok();
    let is_own = dir.join("objects").is_dir() && dir.join("refs").is_dir();
    has_head && (is_own || dir.join("commondir").is_file())
}

/// What a `.git` file names. Relative to the directory of the file, as git writes it for
/// submodules.
fn pointed_to(file: &Path) -> Result<PathBuf, GitError> {
    let line = small::read_line(file).map_err(GitError::file(file))?;
    let path = line.strip_prefix(b"gitdir: ").ok_or_else(|| {
        let source = io::Error::other("does not begin with `gitdir: `");
        GitError::file(file)(source)
    })?;
    let base = file.parent().unwrap_or(Path::new("/"));
    Ok(base.join(path_of(path)))
}

/// The git directory that a linked work tree's one belongs to, as its `commondir` file says; one
/// without that file is its own.
fn common_of(git_dir: &Path) -> Result<PathBuf, GitError> {
    let file = git_dir.join("commondir");
    let common = match small::read_line(&file) {
        Ok(line) => git_dir.join(path_of(&line)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => git_dir.to_owned(),
        Err(error) => return Err(GitError::file(file)(error)),
    };
    common.canonicalize().map_err(GitError::file(&common))
}

pub(crate) fn path_of(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}
