//! A throw-away work tree of one commit, apart from the person's.

use std::path::Path;

use codespar_protocol::CommitId;

use super::git::{self, Place, Run};
use crate::ForgeError;

/// Puts the files of a commit at `path`, as a work tree on no branch of the repository that
/// `repository` is in. One left there by a crash is replaced; anything else there is refused.
pub async fn check_out(
    repository: &Path,
    commit: &CommitId,
    path: &Path,
) -> Result<(), ForgeError> {
    remove_checkout(repository, path).await?;
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(|error| ForgeError::Unavailable {
            what: format!("make {}", parent.display()),
            reason: error.to_string(),
        })?;
    }
    let place = Place::Repository(git::find(repository).await?);
    let path = absolute(path)?;
    let args = ["worktree", "add", "--quiet", "--detach", "--force"].map(std::ffi::OsStr::new);
    let rest = [path.as_os_str(), std::ffi::OsStr::new(&commit.0)];
    let run = Run::new(args.into_iter().chain(rest));
    let what = format!("check {} out", commit.short());
    place.text(&what, run).await?;
    Ok(())
}

/// Takes a work tree away, whatever is in it, and forgets those whose directories are gone. A path
/// where there is nothing is fine; one that is no work tree of the repository is refused.
pub async fn remove_checkout(repository: &Path, path: &Path) -> Result<(), ForgeError> {
    let place = Place::Repository(git::find(repository).await?);
    let path = absolute(path)?;
    if path.exists() {
        let args = ["worktree", "remove", "--force", "--force"].map(std::ffi::OsStr::new);
        let run = Run::new(args.into_iter().chain([path.as_os_str()]));
        let ran = place.run(run).await?;
        if ran.code != Some(0) && !is_empty(&path) {
            return Err(ForgeError::Refused(format!(
                "{} is not taken away: {}",
                path.display(),
                ran.words.trim()
            )));
        }
    }
    let prune = Run::new(["worktree", "prune"]);
    place.text("forget work trees that are gone", prune).await?;
    Ok(())
}

fn is_empty(path: &Path) -> bool {
    std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

/// Git runs elsewhere.
fn absolute(path: &Path) -> Result<std::path::PathBuf, ForgeError> {
    std::path::absolute(path).map_err(|error| ForgeError::Unavailable {
        what: format!("find {}", path.display()),
        reason: error.to_string(),
    })
}
