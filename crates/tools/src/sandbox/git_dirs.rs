//! Where git keeps a workspace's repository, believed only as far as it can be checked.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The git directories a workspace needs to write to. A plain repository has its own `.git`. A
/// linked worktree has a `.git` *file*, which a command could have rewritten to name any place:
/// it counts only if that place, under `<repository>/worktrees`, points back to this workspace.
pub(super) fn of_workspace(directory: &Path) -> Vec<PathBuf> {
    let dot_git = directory.join(".git");
    let Ok(kind) = fs::symlink_metadata(&dot_git) else {
        return Vec::new();
    };
    if kind.is_file() {
        return linked(&dot_git).into_iter().collect();
    }
    vec![dot_git]
}

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
        assert_eq!(of_workspace(&side), vec![repository]);
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
        assert_eq!(of_workspace(&side), Vec::<PathBuf>::new());
    }
}
