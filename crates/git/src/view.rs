//! A git directory of our own that shares everything but the configuration with a real one.

use std::{
    env, fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use parking_lot::Mutex;
use tempfile::TempDir;

use crate::{GitError, GitSettings, Location, format::Format, small};

/// The directory. It goes when this is dropped; what it points to stays.
#[derive(Debug)]
pub(crate) struct View {
    dir: TempDir,
    real_head: PathBuf,
    head: Mutex<Vec<u8>>,
}

impl View {
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
    let usual = env::temp_dir();
    let others = ["/var/tmp", "/dev/shm", "/tmp"].map(PathBuf::from);
    let is_outside = |dir: &PathBuf| {
        let dir = dir.canonicalize();
        dir.is_ok_and(|dir| !dir.starts_with(location.root()))
    };
    let base = [usual].into_iter().chain(others).find(is_outside);
    let base = base.ok_or_else(|| GitError::Unsupported {
        path: location.common_dir.clone(),
        reason: "every directory for temporary files is within it; set TMPDIR to one that is not"
            .to_owned(),
    })?;
    tempfile::Builder::new()
        .prefix("codespar-git-")
        .tempdir_in(&base)
        .map_err(GitError::file(base))
}

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
