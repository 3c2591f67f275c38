//! Which files of a commit have a text in them.

use std::path::Path;

use crate::{
    FileKind, LocateError,
    git::{Git, Scope},
};

/// More files than this say nothing.
const MOST: usize = 200;

/// The files of a commit that have a text in them, upper and lower case alike: source first, then
/// tests, then the rest. Links, binary files and hidden ones are left out.
pub fn files_with(repository: &Path, commit: &str, text: &str) -> Result<Vec<String>, LocateError> {
    let git = Git::new(repository, Scope::Whole);
    let mut found = git.files_with(&git.commit(commit)?, text)?;
    found.retain(|path| !is_hidden(path));
    found.sort_by_key(|path| FileKind::of(path));
    found.truncate(MOST);
    Ok(found)
}

/// Whether a part of a path begins with a dot.
fn is_hidden(path: &str) -> bool {
    path.split('/').any(|part| part.starts_with('.'))
}
