//! Writing a file whole or not at all: a temporary file beside it, then a rename.

use std::{
    fs::{self, Metadata, Permissions},
    io::{self, Write as _},
    os::unix::fs::{MetadataExt, PermissionsExt, fchown},
    path::Path,
};

use crate::ToolError;

/// Puts `content` at `path`. `before` is the file that is there; its mode and owner stay.
/// Missing directories are made.
pub(crate) fn write(
    path: &Path,
    content: &[u8],
    before: Option<&Metadata>,
) -> Result<(), ToolError> {
    if before.is_some_and(|before| before.permissions().readonly()) {
        return Err(ToolError(format!(
            "{} is read-only; its mode has to change first",
            path.display()
        )));
    }
    replace(path, content, before)
        .map_err(|error| ToolError(format!("cannot write {}: {error}", path.display())))
}

fn replace(path: &Path, content: &[u8], before: Option<&Metadata>) -> io::Result<()> {
    let dir = path
        .parent()
        .ok_or_else(|| io::Error::other("it has no parent directory"))?;
    fs::create_dir_all(dir)?;
    // The mode of a new file, which the process's umask narrows.
    let mut file = tempfile::Builder::new()
        .prefix(".codespar-")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(dir)?;
    file.write_all(content)?;
    if let Some(before) = before {
        // Only root can give a file away; anybody else owns what they may replace.
        let _ = fchown(file.as_file(), Some(before.uid()), Some(before.gid()));
        file.as_file().set_permissions(before.permissions())?;
    }
    file.persist(path)?;
    Ok(())
}
