//! Moving a base to its merge, with the work tree of whoever has it checked out.

use std::path::Path;

use codespar_protocol::CommitId;

use super::{
    LocalForge,
    git::{Place, Run},
};
use crate::ForgeError;

impl LocalForge {
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
                one.display(),
                other.display()
            ))),
        }
    }

    /// As the person would with `git merge --ff-only`: files that the merge does not touch stay
    /// as they are, and it is refused where it would lose something.
    async fn forward(
        &self,
        tree: &Path,
        branch: &str,
        from: &CommitId,
        to: &CommitId,
    ) -> Result<(), ForgeError> {
        let place = Place::Directory(tree.to_owned());
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
            // The person switched branches in between, so nobody has it checked out any more.
            return self.move_branch(branch, Some(from), to).await;
        }
        Err(ForgeError::Refused(reason(tree, branch, &ran.words)))
    }
}

/// Git lists the files that are in the way after a tab, one a line.
fn reason(tree: &Path, branch: &str, words: &str) -> String {
    let files: Vec<&str> = words
        .lines()
        .filter_map(|line| line.strip_prefix('\t'))
        .collect();
    let place = format!("{branch} is checked out in {}", tree.display());
    match &files[..] {
        [] => format!("{place}, and git would not update it: {}", words.trim()),
        files => format!(
            "{place}, with changes that are not committed in {}; commit or stash them, then merge \
             again",
            files.join(", ")
        ),
    }
}
