//! Walking a tree: `.gitignore` is kept to, hidden files are seen, `.git` never is.

use std::path::Path;

use codespar_files::has_plain_ignore_files;
use ignore::{DirEntry, WalkBuilder};

use crate::{Hidden, ToolError};

/// A walk below `dir`. The user's own git configuration is not looked at: what a walk shows
/// depends on the tree and the rules alone. Ignore files that cannot be read as such are not: where
/// one stands above the walk none count, and a directory within it that has one is left out.
pub(crate) fn below(dir: &Path, hidden: &Hidden) -> WalkBuilder {
    let hidden = hidden.clone();
    let mut walk = WalkBuilder::new(dir);
    walk.hidden(false)
        .git_global(false)
        .require_git(false)
        .follow_links(false)
        .filter_entry(move |entry| {
            let is_git = entry.depth() > 0 && entry.file_name() == ".git";
            let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
            // Below this one a hostile file would be read for patterns.
            let is_hostile = entry.depth() > 0 && is_dir && !has_plain_ignore_files(entry.path());
            !is_git && !is_hostile && !hidden.covers(entry.path())
        });
    if !dir.ancestors().all(has_plain_ignore_files) {
        walk.parents(false)
            .ignore(false)
            .git_ignore(false)
            .git_exclude(false);
    }
    walk
}

/// Whether an entry is a regular file. A link is none, wherever it leads.
pub(crate) fn is_file(entry: &DirEntry) -> bool {
    entry.file_type().is_some_and(|kind| kind.is_file())
}

/// A directory to walk, or the reason why not. No component may be a link: `path` was resolved
/// before, so one that is there now was put there since.
pub(crate) fn directory(path: &Path, cwd: &Path) -> Result<(), ToolError> {
    match codespar_files::dir(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => Err(ToolError(format!(
            "{} is a file, not a directory",
            crate::paths::shown(path, cwd)
        ))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(crate::paths::missing(path, cwd))
        }
        Err(error) => Err(ToolError(format!(
            "cannot read {}: {error}",
            path.display()
        ))),
    }
}
