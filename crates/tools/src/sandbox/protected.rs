//! The protected paths of a workspace directory.
//!
//! Two kinds are told apart by when they take effect. What a program obeys as soon as it exists
//! must not appear even for a moment, so an absent one gets a placeholder. What is obeyed later (a
//! definition of continuous integration, another agent's settings) is checked after the command,
//! which leaves no trace in the workspace while it runs.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{
    git_dirs,
    policy::{Absent, Protected},
};

/// Programs obey these as soon as they are there: nothing may appear in their place even while a
/// command runs. Whole directories, where `codespar_policy::PROTECTED` names single files in some
/// of them.
const LIVE: &[(&str, Absent)] = &[
    (".codespar", Absent::Directory),
    (".claude", Absent::Directory),
    (".vscode", Absent::Directory),
    (".idea", Absent::Directory),
    (".husky", Absent::Directory),
    (".devcontainer", Absent::Directory),
    (".envrc", Absent::File),
    (".mcp.json", Absent::File),
];

/// What was found in a workspace directory.
pub(super) struct Found {
    pub(super) protected: Vec<Protected>,
    /// Repositories that commits in this directory write to.
    pub(super) git_dirs: Vec<PathBuf>,
}

/// Everything protected in a directory of the workspace. `home` is where git finds the user's own
/// configuration, which may name hooks and files here.
pub(super) fn in_directory(directory: &Path, home: Option<&Path>) -> Found {
    let mut protected: Vec<Protected> = LIVE
        .iter()
        .map(|(name, absent)| Protected {
            path: directory.join(name),
            absent: *absent,
        })
        .collect();
    // Obeyed later, by a program that a person starts or a server that is sent them.
    let later = codespar_policy::PROTECTED
        .iter()
        .filter(|(entry, _)| !is_live(entry));
    protected.extend(later.map(|(entry, _)| Protected {
        path: directory.join(entry),
        absent: Absent::Checked,
    }));
    let git = git_dirs::of_workspace(directory, home);
    protected.extend(git.protected);
    Found {
        protected,
        git_dirs: git.writable,
    }
}

fn is_live(entry: &str) -> bool {
    LIVE.iter()
        .any(|(live, _)| Path::new(entry).starts_with(live))
}

/// What is protected of other repositories: directories, or files that lead to one. Of a file only
/// the file itself: that of a submodule leads to `modules` in the repository around, which is
/// protected with it.
pub(super) fn of_nested(repositories: &[PathBuf], home: Option<&Path>) -> Vec<Protected> {
    let mut protected = Vec::new();
    for repository in repositories {
        let around = repository.parent().unwrap_or(repository);
        if repository.is_dir() {
            protected.extend(git_dirs::of_repository(repository, around, home));
        } else {
            protected.push(Protected {
                path: repository.clone(),
                absent: Absent::Checked,
            });
        }
    }
    protected
}

/// What is writable in a directory that is or contains the home directory: everything in it but the
/// hidden files of the home. Nothing new can be made beside them. The list is of what exists now,
/// sorted. Symlinks are not in it.
pub(super) fn without_dot_files(directory: &Path, home: &Path) -> Vec<PathBuf> {
    let mut parts = Vec::new();
    let mut level = Some(directory.to_path_buf());
    while let Some(current) = level.take() {
        let entries = fs::read_dir(&current).into_iter().flatten().flatten();
        for entry in entries {
            let path = entry.path();
            let is_plain = entry
                .file_type()
                .is_ok_and(|kind| kind.is_dir() || kind.is_file());
            let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            if home.starts_with(&path) {
                level = Some(path);
            } else if is_plain && !(is_hidden && current == home) {
                parts.push(path);
            }
        }
    }
    parts.sort();
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_files_of_the_home_are_not_writable_in_a_workspace_around_it() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let home = root.join("ann");
        for name in ["ann/.config", "ann/notes", "bob/.config"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        fs::write(home.join(".bashrc"), "").unwrap();
        fs::write(home.join("todo.txt"), "").unwrap();
        let expected = ["ann/notes", "ann/todo.txt", "bob"].map(|name| root.join(name));
        assert_eq!(without_dot_files(&root, &home), expected);
        assert_eq!(without_dot_files(&home, &home), expected[..2]);
    }
}
