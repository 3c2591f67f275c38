//! A git directory of our own that shares everything but the configuration with a real one.
//!
//! ```text
//! codespar-git-XXXX/
//!   config                  written by us
//!   HEAD                    a copy, renewed before each call
//!   refs, packed-refs, shallow, lfs            -> common directory
//!   info/exclude, info/attributes              -> common directory
//!   info/sparse-checkout, sharedindex.*        -> git directory of the work tree
//!   logs/HEAD, logs/refs    -> where the repository keeps logs
//! ```
//!
//! Objects and index are not in it: every call names them by environment variables. There is no
//! `hooks` directory, no `config.worktree` and no `modules`. Writes to references go through the
//! links into the real repository, with git's own locks there; a write to `HEAD` itself does not
//! reach it.

use std::{
    env, fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use parking_lot::Mutex;
use tempfile::TempDir;

use crate::{GitError, GitSettings, Location, format::Format, small};

/// The directory. It goes when this is dropped; what it points to stays. Calls hold it by an
/// [`Arc`](std::sync::Arc), so it stays until the last of them is over. A process that is killed
/// leaves the directory behind in the directory for temporary files.
#[derive(Debug)]
pub(crate) struct View {
    dir: TempDir,
    /// Read again before each call: the user may switch branches while a repository is open.
    real_head: PathBuf,
    /// What was copied last, so that an unchanged `HEAD` is not written again.
    head: Mutex<Vec<u8>>,
}

impl View {
    /// Without settings the view is bare: for calls that look at references and objects alone.
    pub(crate) fn new(
        location: &Location,
        settings: Option<&GitSettings>,
    ) -> Result<Self, GitError> {
        let mut config = Format::read(&location.common_dir)?.config();
        config += &match settings {
            Some(settings) => settings.config(),
            // Otherwise git would take the current directory for the work tree.
            None => "[core]\n\tbare = true\n".to_owned(),
        };
        let dir = scratch(location)?;
        fill(dir.path(), location, &config).map_err(GitError::file(dir.path()))?;
        let view = Self {
            real_head: location.git_dir.join("HEAD"),
            head: Mutex::default(),
            dir,
        };
        view.refresh_head()?;
        Ok(view)
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// `HEAD` cannot be shared (git refuses links that lead elsewhere), so it is copied, again
    /// before each call.
    pub(crate) fn refresh_head(&self) -> Result<(), GitError> {
        let content = small::read(&self.real_head, 4096);
        let content = content.map_err(GitError::file(&self.real_head))?;
        let mut known = self.head.lock();
        if *known == content {
            return Ok(());
        }
        let (new, head) = (self.path().join("HEAD.new"), self.path().join("HEAD"));
        fs::write(&new, &content)
            .and_then(|()| fs::rename(&new, &head))
            .map_err(GitError::file(&head))?;
        *known = content;
        Ok(())
    }
}

/// A new directory that is not in the work tree: commands that are confined to the work tree must
/// not reach it.
pub(crate) fn scratch(location: &Location) -> Result<TempDir, GitError> {
    scratch_outside_of(location.root())
}

/// The same for a work tree at this place.
pub(crate) fn scratch_outside_of(root: &Path) -> Result<TempDir, GitError> {
    let usual = env::temp_dir();
    let others = ["/var/tmp", "/dev/shm", "/tmp"].map(PathBuf::from);
    let is_outside = |dir: &PathBuf| {
        let dir = dir.canonicalize();
        dir.is_ok_and(|dir| !dir.starts_with(root))
    };
    let base = [usual].into_iter().chain(others).find(is_outside);
    let base = base.ok_or_else(|| GitError::Unsupported {
        path: root.to_owned(),
        reason: "every directory for temporary files is within it; set TMPDIR to one that is not"
            .to_owned(),
    })?;
    tempfile::Builder::new()
        .prefix("codespar-git-")
        .tempdir_in(&base)
        .map_err(GitError::file(base))
}

/// Links instead of copies, so that a reference which another process moves is seen at once.
fn fill(dir: &Path, location: &Location, config: &str) -> io::Result<()> {
    let (own, common) = (&location.git_dir, &location.common_dir);
    fs::write(dir.join("config"), config)?;
    for name in ["info", "logs"] {
        fs::create_dir(dir.join(name))?;
    }
    // Links to what is not there yet are fine: git writes through them.
    for name in [
        "refs",
        "packed-refs",
        "shallow",
        "info/exclude",
        "info/attributes",
        "lfs",
    ] {
        symlink(common.join(name), dir.join(name))?;
    }
    symlink(
        own.join("info/sparse-checkout"),
        dir.join("info/sparse-checkout"),
    )?;
    // Git makes directories for logs, but not through links.
    if own.join("logs").is_dir() {
        symlink(own.join("logs/HEAD"), dir.join("logs/HEAD"))?;
    }
    if common.join("logs/refs").is_dir() {
        symlink(common.join("logs/refs"), dir.join("logs/refs"))?;
    }
    for entry in fs::read_dir(own)?.flatten() {
        let name = entry.file_name();
        if name.as_encoded_bytes().starts_with(b"sharedindex.") {
            symlink(entry.path(), dir.join(name))?;
        }
    }
    Ok(())
}
