//! Whether a word names a branch of a repository.

use codespar_git::Repository;

use crate::ProjectDir;

/// Whether the repository of a directory has this branch, here or at the origin.
pub fn has_branch(project_dir: &ProjectDir, name: &str) -> bool {
    if !codespar_change::is_branch_name(name) {
        return false;
    }
    let root = &project_dir.root;
    let git =
        Repository::find(root, project_dir.trust_of(root).git()).and_then(|found| found.git());
    let Ok(git) = git else { return false };
    ["refs/heads", "refs/remotes/origin"].iter().any(|place| {
        let found = git.commit_id(&format!("{place}/{name}"));
        matches!(found, Ok(Some(_)))
    })
}
