//! Test results without the change, kept by repository, commit and command.
//!
//! The tests of the base are the same for every run at that commit, and take as long as those with
//! the change. They are kept in files, replaced as a whole, so several processes can share them. A
//! cached run says so (`from_cache`), and the pull request shows it.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
};

use codespar_protocol::CommitId;

use super::TestRun;

/// Where such a result is kept. The hash only keeps names short. It may differ between versions of
/// the standard library; then the tests run once more.
pub fn place(dir: &Path, repository: &str, commit: &CommitId, command: &str) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    (repository, command).hash(&mut hasher);
    dir.join("before")
        .join(format!("{}-{:016x}.json", commit.0, hasher.finish()))
}

/// A result of an earlier run, if there is one that can be read.
pub fn known(path: &Path) -> Option<TestRun> {
    let mut run: TestRun = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    run.from_cache = true;
    Some(run)
}

/// Keeps a result that came to an exit code and for which nothing was missing. Failing to keep it
/// costs a run, no more.
pub fn keep(path: &Path, run: &TestRun) {
    if run.exit_code.is_none() || run.was_not_run() || !run.missing.is_empty() {
        return;
    }
    let write = || -> std::io::Result<()> {
        let dir = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(dir)?;
        let file = tempfile::NamedTempFile::new_in(dir)?;
        serde_json::to_writer(&file, run)?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    };
    let _ = write();
}
