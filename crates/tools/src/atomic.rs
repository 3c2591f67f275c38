//! Writing a file whole or not at all: a temporary file beside it, then a rename.

use std::{
    fs::Metadata,
    io,
    os::unix::fs::{MetadataExt, fchown},
    path::Path,
};

use codespar_files::{Place, Temporary};

use crate::ToolError;

/// A read-only file is refused, although a rename could replace it: its mode says that it is not to
/// be changed.
pub(crate) fn check(path: &Path, before: Option<&Metadata>) -> Result<(), ToolError> {
    if before.is_some_and(|before| before.permissions().readonly()) {
        return Err(ToolError(format!(
            "{} is read-only; its mode has to change first",
            path.display()
        )));
    }
    Ok(())
}

/// Puts `content` at `place`, which `path` names for people. `before` is the file that is there;
/// its mode and owner stay. Gives back what the new file is.
pub(crate) fn write(
    place: &Place,
    path: &Path,
    content: &[u8],
    before: Option<&Metadata>,
) -> Result<Metadata, ToolError> {
    replace(place, content, before)
        .map_err(|error| ToolError(format!("cannot write {}: {error}", path.display())))
}

/// Owner and mode are set before the rename, so the file never appears under its name with others.
/// On failure the temporary file is removed and the old file stays.
pub(crate) fn replace(
    place: &Place,
    content: &[u8],
    before: Option<&Metadata>,
) -> io::Result<Metadata> {
    let (mut new, file) = Temporary::beside(place, content)?;
    if let Some(before) = before {
        // Only root can give a file away; anybody else owns what they may replace.
        let _ = fchown(&file, Some(before.uid()), Some(before.gid()));
        file.set_permissions(before.permissions())?;
    }
    new.persist(place)?;
    file.metadata()
}
