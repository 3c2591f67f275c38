//! Whether a file can stand where a change puts it.

use std::collections::HashMap;

use codespar_protocol::RepoPath;

use super::source::{Source, SourceEntry, ancestors, folded};

/// What is at a path that a change names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    Free,
    File,
}

/// What is at `path`, or why nobody may write there. Every directory above is looked at, from the
/// top: a link anywhere on the way could lead out of the repository.
pub(super) fn standing(source: &dyn Source, path: &RepoPath) -> Result<Standing, String> {
    for above in ancestors(path) {
        match entry(source, &above)? {
            SourceEntry::Nothing => return Ok(Standing::Free),
            SourceEntry::Directory => {}
            SourceEntry::Symlink => {
                return Err(format!(
                    "the path goes through `{above}`, which is a symbolic link"
                ));
            }
            SourceEntry::Repository => {
                return Err(format!("`{above}` is a repository of its own"));
            }
            SourceEntry::File | SourceEntry::Special => {
                return Err(format!("`{above}` is a file, so nothing can be below it"));
            }
        }
    }
    match entry(source, path)? {
        SourceEntry::Nothing => Ok(Standing::Free),
        SourceEntry::File => Ok(Standing::File),
        SourceEntry::Symlink => Err("it is a symbolic link, which is left alone".to_owned()),
        SourceEntry::Directory => Err("it is a directory".to_owned()),
        SourceEntry::Repository => Err("it is a repository of its own".to_owned()),
        SourceEntry::Special => Err("it is no plain file".to_owned()),
    }
}

fn entry(source: &dyn Source, path: &RepoPath) -> Result<SourceEntry, String> {
    source.entry(path).map_err(|error| error.to_string())
}

/// Why a new file may not have this name: another differs from it in case alone, and some file
/// systems take the two for one. `leaving` go in the same change.
pub(super) fn namesake(
    source: &dyn Source,
    path: &RepoPath,
    leaving: &[&RepoPath],
) -> Result<(), String> {
    match source.alike(path) {
        Ok(Some(other)) if !leaving.contains(&&other) => Err(format!(
            "`{other}` is there and differs only in upper and lower case; use its name, or another"
        )),
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// New paths that cannot be together, each with the reason. Each pair appears twice, once for each
/// of the two.
pub(super) fn clashes<'a>(paths: &[&'a RepoPath]) -> Vec<(&'a RepoPath, String)> {
    let mut by_name: HashMap<String, &RepoPath> = HashMap::new();
    let mut clashes = Vec::new();
    for &path in paths {
        if let Some(&other) = by_name.get(&folded(path.as_str())) {
            for (path, other) in [(path, other), (other, path)] {
                clashes.push((
                    path,
                    format!("`{other}` is new too and differs only in case"),
                ));
            }
        }
        by_name.insert(folded(path.as_str()), path);
    }
    for &path in paths {
        for above in ancestors(path) {
            if let Some(&other) = by_name.get(&folded(above.as_str())) {
                clashes.push((
                    path,
                    format!("`{other}` is to be a file, so nothing can be below it"),
                ));
                clashes.push((
                    other,
                    format!("`{path}` is to be below it, so it cannot be a file"),
                ));
            }
        }
    }
    clashes
}
