//! Moving a base to its merge, with the work tree of whoever has it checked out.
//!
//! If no work tree has the branch, only the reference moves. With one, git updates files, index and
//! branch together, or nothing. With several, there is no way to update all of them at once, so it
//! is refused.

use std::path::Path;

use codespar_git::{Repository, WorkTreeEntry};
use codespar_protocol::CommitId;

use super::{
    LocalForge,
    git::{Place, Run, blocking},
};
use crate::ForgeError;

/// Files that git leaves while something is not finished.
const UNDER_WAY: &[&str] = &[
    "MERGE_HEAD",
    "CHERRY_PICK_HEAD",
    "REVERT_HEAD",
    "rebase-merge",
    "rebase-apply",
];

impl LocalForge {
    /// Errors: [`ForgeError::Moved`] if the branch is not at `from`, [`ForgeError::Refused`] if the
    /// work tree is in the way, with the files that are.
    pub(super) async fn land(
        &self,
        branch: &str,
        from: &CommitId,
        to: &CommitId,
    ) -> Result<(), ForgeError> {
        match &self.work_trees_of(branch).await?[..] {
            [] => self.move_branch(branch, Some(from), to).await,
            [tree] => self.forward(tree, branch, from, to).await,
            [one, other, ..] => Err(ForgeError::Refused(format!(
                "{branch} is checked out in {} and in {}; switch to another branch in one of them",
                one.path.display(),
                other.path.display()
            ))),
        }
    }

    /// As the user would with `git merge --ff-only`: files that the merge does not touch stay as
    /// they are, and it is refused where it would lose something. What counts is where the branch
    /// is afterwards, not git's exit code: the user may switch branches or commit at the same
    /// moment.
    async fn forward(
        &self,
        entry: &WorkTreeEntry,
        branch: &str,
        from: &CommitId,
        to: &CommitId,
    ) -> Result<(), ForgeError> {
        let tree = &entry.path;
        // Git would see these, but it looks for them in a directory of ours.
        let git_dir = &entry.location.git_dir;
        if let Some(name) = UNDER_WAY.iter().find(|name| git_dir.join(name).exists()) {
            return Err(ForgeError::Refused(format!(
                "{branch} is checked out in {}, where another operation is under way ({name}); \
                 finish or abort it, then merge again",
                tree.display()
            )));
        }
        let repository = Repository::at(entry.location.clone(), self.repository.trust());
        let place = Place(blocking(move || repository.git_with_files()).await?);
        let args = [
            "merge",
            "--ff-only",
            "--no-stat",
            "--quiet",
            "--no-autostash",
            "--no-verify-signatures",
            &to.0,
        ];
        let ran = place.run(Run::new(args).committer(&self.who)).await?;
        let found = self.known_head(branch).await?;
        if found == *to {
            return Ok(());
        }
        if found != *from {
            return Err(ForgeError::Moved {
                branch: branch.to_owned(),
                found,
                expected: from.clone(),
            });
        }
        if ran.code == Some(0) {
            // The user switched branches in between, so nobody has it checked out any more.
            return self.move_branch(branch, Some(from), to).await;
        }
        Err(ForgeError::Refused(reason(tree, branch, &ran.message)))
    }
}

/// Git lists the files that are in the way after a tab, one a line.
fn reason(tree: &Path, branch: &str, message: &str) -> String {
    let files: Vec<&str> = message
        .lines()
        .filter_map(|line| line.strip_prefix('\t'))
        .collect();
    let place = format!("{branch} is checked out in {}", tree.display());
    match &files[..] {
        [] => format!("{place}, and git would not update it: {}", message.trim()),
        files => format!(
            "{place}, with changes that are not committed in {}; commit or stash them, then merge \
             again",
            files.join(", ")
        ),
    }
}
