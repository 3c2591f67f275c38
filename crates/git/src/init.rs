//! Making a repository.

use std::path::Path;

use crate::{Call, GitError, Repository, Trust};

/// With or without a work tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// With files; the first branch is `main`.
    WorkTree,
    /// Without.
    Bare,
}

/// Makes an empty repository in a directory, which need not be there. No template is used: it
/// could bring hooks.
pub fn init(dir: &Path, kind: Kind) -> Result<Repository, GitError> {
    std::fs::create_dir_all(dir).map_err(GitError::file(dir))?;
    let dir = dir.canonicalize().map_err(GitError::file(dir))?;
    let mut args = vec!["init", "--quiet", "--template=", "--initial-branch=main"];
    if kind == Kind::Bare {
        args.push("--bare");
    }
    Call::detached(args, &dir).run()?.checked()?;
    Repository::find(&dir, Trust::Untrusted)
}
