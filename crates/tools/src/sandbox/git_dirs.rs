//! Where git keeps a workspace's repository, believed only as far as it can be checked, and what in
//! it can run commands or lead elsewhere.
//!
//! Git obeys what it finds: `.git` may be a file that names another directory, a directory may
//! share the configuration of a third (`commondir`), and configuration may include files from
//! anywhere. Each of these could be written by a command to lead our protection elsewhere, so it is
//! followed only to find more to protect, or where the place it names points back.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use super::{
    git_config,
    policy::{Absent, Neutral, Protected},
};

/// Files that other files lead to are followed this far, which is as far as git follows them.
const DEEPEST: usize = 10;

/// In a repository: what runs commands or leads elsewhere. `index`, `refs` and `objects` are not
/// among them, so that a command can commit. The first three get a placeholder where they are
/// absent, the others are checked after the command.
const PROTECTED: &[(&str, Absent)] = &[
    ("config", Absent::Text(Neutral::Empty)),
    ("commondir", Absent::Text(Neutral::SameDirectory)),
    ("hooks", Absent::Directory),
    ("config.worktree", Absent::Checked),
    ("gitdir", Absent::Checked),
    ("info", Absent::Checked),
    ("modules", Absent::Checked),
    ("objects/info/alternates", Absent::Checked),
    ("objects/info/http-alternates", Absent::Checked),
];

/// In the private directory of a linked worktree.
const IN_WORKTREE: [&str; 3] = ["commondir", "gitdir", "config.worktree"];

/// What git needs of a workspace and what it must not lose. For one directory of the workspace.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Git {
    /// Repositories that commits write to. Empty for a `.git` that is not believed: git then cannot
    /// commit, and nothing elsewhere is opened.
    pub(super) writable: Vec<PathBuf>,
    pub(super) protected: Vec<Protected>,
}

/// What a workspace directory has of git. A plain repository has its own `.git`. A linked worktree
/// has a `.git` *file*, which a command could have rewritten to name any place: it counts only if
/// that place, under `<repository>/worktrees`, points back to this workspace. A directory without
/// any gets a placeholder for `.git`, so that no command makes a repository of it with hooks of its
/// own.
pub(super) fn of_workspace(directory: &Path, home: Option<&Path>) -> Git {
    let dot_git = directory.join(".git");
    let mut git = Git::default();
    match fs::symlink_metadata(&dot_git) {
        Ok(kind) if kind.is_dir() => {
            git.protected
                .extend(of_repository(&dot_git, directory, home));
            git.writable.push(dot_git);
        }
        Ok(kind) => {
            if let Some(repository) = linked(&dot_git).filter(|_| kind.is_file()) {
                git.protected
                    .extend(of_repository(&repository, directory, home));
                git.writable.push(repository);
            }
            git.protected.push(protected(dot_git, Absent::Checked));
        }
        Err(_) if is_bare(directory) => {
            git.protected
                .extend(of_repository(directory, directory, home));
        }
        Err(_) => git.protected.push(protected(dot_git, Absent::Directory)),
    }
    git
}

/// Whether git would take a directory for a repository. By the same three names that git looks for.
pub(super) fn is_bare(directory: &Path) -> bool {
    directory.join("HEAD").symlink_metadata().is_ok()
        && directory.join("objects").is_dir()
        && directory.join("refs").is_dir()
}

/// What is protected of one repository, whose work tree is `directory`. What leads elsewhere in the
/// private directories of its linked worktrees is included.
pub(super) fn of_repository(
    git_dir: &Path,
    directory: &Path,
    home: Option<&Path>,
) -> Vec<Protected> {
    let mut found: Vec<Protected> = PROTECTED
        .iter()
        .map(|(name, absent)| protected(git_dir.join(name), *absent))
        .collect();
    let worktrees = fs::read_dir(git_dir.join("worktrees"));
    for entry in worktrees.into_iter().flatten().flatten() {
        let names = IN_WORKTREE.iter().map(|name| entry.path().join(name));
        found.extend(names.map(|path| protected(path, Absent::Checked)));
    }
    found.extend(led_to(git_dir, directory, home));
    found
}

/// What the configuration leads to: hooks elsewhere and files that are part of it. The user's own
/// configuration counts too, as it can name a relative path such as `.githooks`, which is one of
/// this work tree. Paths outside of the writable trees are found as well and dropped later.
fn led_to(git_dir: &Path, directory: &Path, home: Option<&Path>) -> Vec<Protected> {
    let own = ["config", "config.worktree"].map(|name| git_dir.join(name));
    let of_person = home
        .into_iter()
        .flat_map(|home| [".gitconfig", ".config/git/config"].map(|name| home.join(name)));
    let mut open: Vec<(PathBuf, usize)> =
        own.into_iter().chain(of_person).map(|p| (p, 0)).collect();
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    while let Some((file, depth)) = open.pop() {
        if !seen.insert(file.clone()) || depth > DEEPEST {
            continue;
        }
        for setting in git_config::read(&file).unwrap_or_default() {
            let around = file.parent().unwrap_or(git_dir);
            let path = |base: &Path| match (setting.value.strip_prefix("~/"), home) {
                (Some(rest), Some(home)) => home.join(rest),
                _ => codespar_policy::normalise(&base.join(&setting.value)),
            };
            match (setting.section.as_str(), setting.key.as_str()) {
                ("core", "hookspath") => found.push(protected(path(directory), Absent::Directory)),
                ("include" | "includeif", "path") => {
                    let included = path(around);
                    found.push(protected(included.clone(), Absent::Text(Neutral::Empty)));
                    open.push((included, depth + 1));
                }
                _ => {}
            }
        }
    }
    found
}

fn protected(path: PathBuf, absent: Absent) -> Protected {
    Protected { path, absent }
}

/// The repository of a linked worktree whose `.git` file this is; `None` if it is not believed.
fn linked(dot_git: &Path) -> Option<PathBuf> {
    let text = fs::read_to_string(dot_git).ok()?;
    let named = text.strip_prefix("gitdir:")?.trim();
    let private = dot_git.parent()?.join(named).canonicalize().ok()?;
    let back = fs::read_to_string(private.join("gitdir")).ok()?;
    let back = private.join(back.trim()).canonicalize().ok()?;
    if back != dot_git.canonicalize().ok()? {
        return None;
    }
    let worktrees = private.parent()?;
    (worktrees.file_name()? == "worktrees")
        .then(|| worktrees.parent().map(Path::to_path_buf))
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worktree(root: &Path) -> (PathBuf, PathBuf) {
        let private = root.join("main/.git/worktrees/side");
        let side = root.join("side");
        fs::create_dir_all(&private).unwrap();
        fs::create_dir_all(&side).unwrap();
        fs::write(
            side.join(".git"),
            format!("gitdir: {}\n", private.display()),
        )
        .unwrap();
        fs::write(
            private.join("gitdir"),
            format!("{}\n", side.join(".git").display()),
        )
        .unwrap();
        (side, root.join("main/.git"))
    }

    #[test]
    fn a_worktree_leads_to_its_repository() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let (side, repository) = worktree(&root);
        let git = of_workspace(&side, None);
        assert_eq!(git.writable, vec![repository.clone()]);
        let is_protected = |path: PathBuf| git.protected.iter().any(|found| found.path == path);
        assert!(is_protected(side.join(".git")));
        assert!(is_protected(repository.join("hooks")));
        assert!(is_protected(repository.join("worktrees/side/commondir")));
    }

    #[test]
    fn a_git_file_that_nothing_points_back_to_is_not_believed() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let (side, _) = worktree(&root);
        let elsewhere = root.join("elsewhere/worktrees/x");
        fs::create_dir_all(&elsewhere).unwrap();
        fs::write(
            side.join(".git"),
            format!("gitdir: {}\n", elsewhere.display()),
        )
        .unwrap();
        let git = of_workspace(&side, None);
        assert_eq!(git.writable, Vec::<PathBuf>::new());
        assert_eq!(
            git.protected,
            vec![protected(side.join(".git"), Absent::Checked)]
        );
    }

    #[test]
    fn hooks_and_included_files_that_configuration_names_are_protected() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let git_dir = root.join(".git");
        fs::create_dir_all(&git_dir).unwrap();
        fs::write(
            git_dir.join("config"),
            "[include]\n\tpath = ../shared.inc\n[core]\n\thooksPath = tools/hooks\n",
        )
        .unwrap();
        fs::write(root.join("shared.inc"), "[include]\npath = deep/more.inc\n").unwrap();
        let found = of_repository(&git_dir, &root, None);
        for (name, absent) in [
            ("shared.inc", Absent::Text(Neutral::Empty)),
            ("deep/more.inc", Absent::Text(Neutral::Empty)),
            ("tools/hooks", Absent::Directory),
        ] {
            assert!(
                found.contains(&protected(root.join(name), absent)),
                "{name}"
            );
        }
    }
}
