//! Which repository a git worktree belongs to, read without running git.

use std::path::{Path, PathBuf};

/// These files hold one path.
const MAX_BYTES: u64 = 16 * 1024;

/// The root of the main work tree, if `root` is one of its other work trees. Both sides must say
/// so: a directory cannot make itself the worktree of a repository that does not know it.
pub(super) fn main_repository(root: &Path) -> Option<PathBuf> {
    let link = root.join(".git");
    let named = line(&link)?;
    let git_dir = root
        .join(named.strip_prefix("gitdir:")?.trim())
        .canonicalize()
        .ok()?;
    let back = git_dir.join(line(&git_dir.join("gitdir"))?);
    if back.canonicalize().ok()? != link.canonicalize().ok()? {
        return None;
    }
    let common = git_dir
        .join(line(&git_dir.join("commondir"))?)
        .canonicalize()
        .ok()?;
    let is_listed = git_dir.parent() == Some(&common.join("worktrees"));
    let is_usual = common.file_name().is_some_and(|name| name == ".git");
    (is_listed && is_usual)
        .then(|| common.parent().map(Path::to_path_buf))
        .flatten()
}

fn line(path: &Path) -> Option<String> {
    let text = String::from_utf8(codespar_files::read(path, MAX_BYTES).ok()?).ok()?;
    Some(text.trim_end_matches(['\n', '\r']).to_owned()).filter(|line| !line.is_empty())
}
