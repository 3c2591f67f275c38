//! What installations left, on disk: see `provide`.
//!
//! Several processes may install, use and prune at the same time. An entry is made under another
//! name and renamed when it is complete; one that was opened within the last day is taken to be in
//! use and stays. There are no locks.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use codespar_git::{Checkout, Trust, zero_separated};
use codespar_tools::sandbox::WithoutOverlay;
use serde::{Deserialize, Serialize};

use super::{Tree, dependencies, provide::at, tree::broken};
use crate::TreeError;

/// Installations that are kept; the least recently used go first.
const MOST_ENTRIES: usize = 16;
/// One that was used so recently stays, whatever their number: a run may see it.
const IN_USE: Duration = Duration::from_secs(24 * 3600);
const RECORD: &str = "entry.json";

/// What is known of an installation.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Record {
    pub(super) dirs: Vec<Kept>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) path: PathBuf,
    pub(super) otherwise: WithoutOverlay,
}

pub(super) struct Entry {
    pub(super) dir: PathBuf,
    pub(super) record: Record,
}

impl Entry {
    /// One that is complete. It counts as used now.
    pub(super) fn open(dir: &Path) -> Option<Self> {
        let record = serde_json::from_slice(&fs::read(dir.join(RECORD)).ok()?).ok()?;
        // Its age only says what goes first.
        let _ = fs::File::open(dir).and_then(|file| file.set_modified(SystemTime::now()));
        Some(Self {
            dir: dir.to_path_buf(),
            record,
        })
    }

    /// Takes the directories that an installation made out of its tree and gives the rest a name.
    /// Single files that the installation made are dropped with the tree.
    pub(super) fn keep(making: &Path, tree: &Path, dir: &Path) -> Result<Self, TreeError> {
        let fail = |error: &std::io::Error| at(making, error);
        let dirs = made_in(tree)?;
        fs::create_dir(making.join("dirs")).map_err(|error| fail(&error))?;
        let mut record = Record { dirs: Vec::new() };
        for (number, one) in dirs.into_iter().enumerate() {
            let to = making.join("dirs").join(number.to_string());
            fs::rename(tree.join(&one.path), to).map_err(|error| fail(&error))?;
            record.dirs.push(one);
        }
        Tree::remove(tree);
        let _ = fs::remove_dir_all(making.join("downloads"));
        if !making.join("caches/cargo/registry").is_dir() {
            let _ = fs::remove_dir_all(making.join("caches/cargo"));
        }
        let text = serde_json::to_vec(&record).map_err(|error| at(making, &error.into()))?;
        fs::write(making.join(RECORD), text).map_err(|error| fail(&error))?;
        match fs::rename(making, dir) {
            Ok(()) => {}
            // Another process was faster; its result is as good.
            Err(_) if dir.join(RECORD).is_file() => {}
            Err(error) => return Err(fail(&error)),
        }
        Self::open(dir).ok_or_else(|| TreeError::Broken(format!("{}: is gone", dir.display())))
    }
}

/// Directories of a tree that its commit does not have, whether git ignores them or not. Those
/// reached through a link are not among them, nor is Python's bytecode.
fn made_in(tree: &Path) -> Result<Vec<Kept>, TreeError> {
    use std::os::unix::ffi::OsStrExt;
    let checkout = Checkout::open(tree, Trust::Untrusted).map_err(broken)?;
    let args = ["ls-files", "-z", "--others", "--directory"];
    let listed = checkout.git().run(args).map_err(broken)?;
    let known = dependencies::installed_in(tree);
    let mut dirs = Vec::new();
    for name in zero_separated(&listed.out) {
        let Some(name) = name.strip_suffix(b"/") else {
            continue;
        };
        let path = PathBuf::from(OsStr::from_bytes(name));
        let full = tree.join(&path);
        let is_real = full.canonicalize().is_ok_and(|real| real == full);
        if !is_real || path.file_name() == Some(OsStr::new("__pycache__")) {
            continue;
        }
        let known = known.iter().find(|one| one.path == path);
        dirs.push(Kept {
            otherwise: known.map_or(WithoutOverlay::ReadOnly, |one| one.otherwise),
            path,
        });
    }
    dirs.truncate(dependencies::MOST);
    Ok(dirs)
}

/// Removes what was not used for longest, and what was never finished. `but` is the entry that was
/// just made. Failures are ignored: the next installation prunes again.
pub(super) fn prune(deps: &Path, but: &Path) {
    let entries = fs::read_dir(deps).into_iter().flatten().flatten();
    let mut old: Vec<(Duration, PathBuf)> = entries
        .filter(|entry| entry.path() != but)
        .filter_map(|entry| {
            let age = entry.metadata().ok()?.modified().ok()?.elapsed().ok()?;
            Some((age, entry.path()))
        })
        .collect();
    old.sort();
    for (number, (age, path)) in old.into_iter().enumerate() {
        let is_unfinished = !path.join(RECORD).is_file();
        if age > IN_USE && (is_unfinished || number + 1 >= MOST_ENTRIES) {
            let _ = fs::remove_dir_all(path);
        }
    }
}
