//! Making a repository.

use std::path::Path;

use crate::{GitCall, GitError, Repository, Trust};

/// With or without a work tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RepositoryKind {
    /// With files; the first branch is `main`.
    WorkTree,
    /// Without.
    Bare,
}

/// Makes an empty repository in a directory, which need not be there. No template is used: it could
/// bring hooks. In a directory that has a repository already, git keeps what is there.
pub fn init(dir: &Path, kind: RepositoryKind) -> Result<Repository, GitError> {
    std::fs::create_dir_all(dir).map_err(GitError::file(dir))?;
    let dir = dir.canonicalize().map_err(GitError::file(dir))?;
    let mut args = vec!["init", "--quiet", "--template=", "--initial-branch=main"];
    if kind == RepositoryKind::Bare {
        args.push("--bare");
    }
    GitCall::detached(args, &dir).run()?.checked()?;
    Repository::find(&dir, Trust::Untrusted)
}
