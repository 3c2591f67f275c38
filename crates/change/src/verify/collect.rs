//! The change that an agent made in a throw-away copy, read from git.

use std::path::Path;

use codespar_git::{Checkout, Git, Staged, Trust, zero_separated};
use codespar_protocol::{Bytes, ChangeSet, CommitId, FileChange, FileMode, RepoPath};

use super::tree::{SUBMODULE, broken};
use crate::TreeError;

/// What differs between the files and the commit. Nothing that the agent left in the tree is run,
/// and its own `.git` is not looked at. Renames are not looked for: a moved file is a deletion and
/// an addition. Symbolic links, submodules and files that are too large are refused, with the name.
pub fn collect(tree: &Path, commit: &CommitId, trust: Trust) -> Result<ChangeSet, TreeError> {
    let checkout = Checkout::open(tree, trust).map_err(broken)?;
    match checkout.stage_all().map_err(broken)? {
        Staged::All => {}
        Staged::Nested(name) => {
            return Err(TreeError::Refused(format!(
                "`{name}`: is a repository of its own"
            )));
        }
        Staged::TooLarge(name) => {
            return Err(TreeError::Refused(format!(
                "`{name}`: is too large for a change; list it in `.gitignore` or remove it"
            )));
        }
    }
    let git = checkout.git();
    let args = [
        "diff-index",
        "--cached",
        "--raw",
        "--no-renames",
        "--no-abbrev",
        "-z",
        commit.0.as_str(),
    ];
    listed_changes(git, args)
}

/// The changes that a call of git lists in its raw format, with their content.
pub(super) fn listed_changes<'a>(
    git: &Git,
    args: impl IntoIterator<Item = &'a str>,
) -> Result<ChangeSet, TreeError> {
    let listed = git.run(args).map_err(broken)?;
    let mut fields = zero_separated(&listed.out);
    let mut changes = Vec::new();
    while let (Some(head), Some(name)) = (fields.next(), fields.next()) {
        changes.push(change(git, head, name)?);
    }
    Ok(ChangeSet(changes))
}

/// `:<old mode> <new mode> <old object> <new object> <letter>` and a name.
fn change(git: &Git, head: &[u8], name: &[u8]) -> Result<FileChange, TreeError> {
    let bad = |reason: &str| {
        let name = String::from_utf8_lossy(name);
        TreeError::Refused(format!("`{name}`: {reason}"))
    };
    let name = std::str::from_utf8(name).map_err(|_| bad("its name is not UTF-8"))?;
    let path = RepoPath::new(name).map_err(|error| bad(error.reason))?;
    let head = String::from_utf8_lossy(head);
    let fields: Vec<&str> = head.trim_start_matches(':').split(' ').collect();
    let [old, new, _, object, ..] = fields[..] else {
        return Err(TreeError::Broken(format!("git diff said `{head}`")));
    };
    if old == SUBMODULE {
        return Err(bad("is a repository of its own"));
    }
    if new == "000000" {
        return Ok(FileChange::Deleted { path });
    }
    let mode = FileMode::from_git(new)
        .filter(|mode| *mode != FileMode::Symlink)
        .ok_or_else(|| bad("is a link or a repository of its own"))?;
    // As git keeps it: on disk it may have other line ends, or be what a pointer stands for.
    let content = Bytes(git.run(["cat-file", "blob", object]).map_err(broken)?.out);
    Ok(if old == "000000" {
        FileChange::Added {
            path,
            content,
            mode,
        }
    } else {
        FileChange::Modified {
            path,
            content,
            mode,
        }
    })
}
