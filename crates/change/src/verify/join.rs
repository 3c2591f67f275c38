//! Joins two commits without a work tree, for a pull request whose base has moved on.

use std::path::Path;

use codespar_git::{MergedTree, Quarantine, Repository, Trust};
use codespar_protocol::{ChangeSet, CommitId, FileChange};
use serde::{Deserialize, Serialize};

use super::{collect::listed_changes, tree::broken};
use crate::TreeError;

/// Two commits joined.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JoinedCommits {
    /// What differs from the second commit. Files that both changed in the same places have git's
    /// marks in them.
    pub changes: ChangeSet,
    /// Those files.
    pub conflicts: Vec<String>,
}

/// Joins `theirs` into `ours`. The new objects are dropped: what is wanted of them is in the
/// result. Refused if `ours` has all of `theirs` already, or if they have nothing in common. The
/// programs and merge drivers that the repository configures do not run.
pub fn join(clone: &Path, ours: &CommitId, theirs: &CommitId) -> Result<JoinedCommits, TreeError> {
    let repository = Repository::find(clone, Trust::Untrusted).map_err(broken)?;
    let git = repository.git().map_err(broken)?;
    let within = ["merge-base", "--is-ancestor", &theirs.0, &ours.0];
    if git.call(within).run().map_err(broken)?.code == Some(0) {
        return Err(TreeError::Refused(
            "the branch has all commits of its base already".to_owned(),
        ));
    }
    let apart = Quarantine::new(&git, repository.location()).map_err(broken)?;
    let git = apart.git();
    let args = MergedTree::arguments(&ours.0, &theirs.0);
    let ran = git.call(args).run().map_err(broken)?;
    let Some(MergedTree { tree, conflicts }) = MergedTree::read(ran.code, &ran.out) else {
        let reason = ran.message.trim();
        return Err(TreeError::Refused(format!(
            "git cannot join them: {reason}"
        )));
    };
    let args = [
        "diff-tree",
        "-r",
        "--raw",
        "--no-renames",
        "--no-abbrev",
        "-z",
        &theirs.0,
        &tree,
    ];
    let changes = listed_changes(git, args)?;
    Ok(JoinedCommits { changes, conflicts })
}

impl JoinedCommits {
    /// The text of a file with conflicts, with git's marks. `None` for one without: it was removed
    /// on one side, or is no text.
    pub fn marked(&self, path: &str) -> Option<&str> {
        text_of(&self.changes, path).filter(|text| has_marks(text))
    }
}

/// The text of a file after a change.
pub fn text_of<'a>(changes: &'a ChangeSet, path: &str) -> Option<&'a str> {
    let mut after = changes.0.iter().filter_map(FileChange::after);
    let (_, content, _) = after.find(|(name, ..)| name.as_str() == path)?;
    std::str::from_utf8(&content.0).ok()
}

/// Whether a text has marks of a conflict, as git writes them at the beginning of lines.
pub fn has_marks(text: &str) -> bool {
    let begins = |mark: &str| text.lines().any(|line| line.starts_with(mark));
    begins("<<<<<<< ") || begins(">>>>>>> ") || begins("||||||| ")
}
