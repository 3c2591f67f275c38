//! Whether git, from a directory of the workspace, would find a repository other than the
//! project's.
//!
//! A repository in a subdirectory may have been put there by an earlier command, with a
//! configuration that makes `git status` run a program. Commands are therefore judged by where git
//! would look, not only by their words.

use std::path::{Path, PathBuf};

use codespar_policy::RepositoryScope;

/// The repository that git finds from `cwd`. One between it and the top of the workspace came with
/// the files, or was made by a command, and so did its configuration.
pub(crate) fn repository(cwd: &Path, workspace: &[PathBuf]) -> RepositoryScope {
    let below = cwd
        .ancestors()
        .take_while(|dir| !workspace.iter().any(|top| top == dir));
    for dir in below {
        if is_repository(dir) {
            return RepositoryScope::Nested;
        }
    }
    RepositoryScope::Project
}

/// With a `.git` of any kind in it, or laid out as a bare repository.
fn is_repository(dir: &Path) -> bool {
    let there = |name: &str| dir.join(name).symlink_metadata().is_ok();
    there(".git") || (there("HEAD") && there("objects") && there("refs"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_repository_below_the_top_is_nested() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().to_owned();
        for path in [".git", "src/deep", "vendor/x/.git", "vendor/x/src"] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        for path in ["bare/objects", "bare/refs", "bare/HEAD"] {
            fs::create_dir_all(root.join(path)).unwrap();
        }
        fs::create_dir(root.join("sub")).unwrap();
        fs::write(root.join("sub/.git"), "gitdir: ../elsewhere").unwrap();
        let workspace = [root.clone()];
        for (cwd, expected) in [
            ("", RepositoryScope::Project),
            ("src/deep", RepositoryScope::Project),
            ("vendor/x", RepositoryScope::Nested),
            ("vendor/x/src", RepositoryScope::Nested),
            ("bare", RepositoryScope::Nested),
            ("sub", RepositoryScope::Nested),
        ] {
            let cwd = if cwd.is_empty() {
                root.clone()
            } else {
                root.join(cwd)
            };
            assert_eq!(repository(&cwd, &workspace), expected, "{}", cwd.display());
        }
    }
}
