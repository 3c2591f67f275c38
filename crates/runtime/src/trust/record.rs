//! What the user decided about the files of a project: in the state directory, one file per
//! project, by the project's path and the hash of each file. The texts are kept to show what
//! changed.
//!
//! ```text
//! <state>/trust/<first 32 hex digits of sha256(root)>.json
//! ```
//!
//! The directory is readable by the user alone, and hidden from commands with the rest of the state
//! directory. Records are replaced by renaming, so a reader finds the old or the new one.

use std::{
    collections::BTreeMap,
    io::{self, Write},
    os::unix::{ffi::OsStrExt, fs::DirBuilderExt},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{ProjectFileKind, grants};

const DIR: &str = "trust";
/// Texts of up to 8 MB, with room for their form in JSON.
const MAX_BYTES: u64 = 64 << 20;

/// The decisions about one project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrustRecord {
    /// The project's root.
    pub path: String,
    /// When the last decision was made.
    pub decided_at: String,
    /// The user trusted the project as a whole, whether or not a file of it grants anything.
    #[serde(default)]
    pub project: bool,
    /// By their path from the root.
    pub files: BTreeMap<String, Decided>,
}

/// The decision about one text of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    pub sha256: String,
    pub trusted: bool,
    /// For showing a difference later; the hash alone decides.
    pub text: String,
}

impl Decided {
    pub(super) fn new(text: &str, trusted: bool) -> Self {
        Self {
            sha256: hash(text.as_bytes()),
            trusted,
            text: text.to_owned(),
        }
    }

    /// Whether the decision is about this text.
    pub(super) fn is_about(&self, text: &str) -> bool {
        self.sha256 == hash(text.as_bytes())
    }
}

impl TrustRecord {
    /// The record of a project. One that cannot be read decides nothing: the user is asked
    /// again.
    pub(super) fn load(state: &Path, root: &Path) -> Self {
        let kept = read(&file(state, root)).filter(|record| record.path == name(root));
        kept.unwrap_or_else(|| Self {
            path: name(root),
            decided_at: String::new(),
            project: false,
            files: BTreeMap::new(),
        })
    }

    /// Writes it in one piece.
    pub(super) fn save(&mut self, state: &Path, root: &Path) -> io::Result<()> {
        self.decided_at = jiff::Timestamp::now().to_string();
        let path = file(state, root);
        let dir = state.join(DIR);
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&dir)?;
        let mut new = tempfile::NamedTempFile::new_in(&dir)?;
        new.write_all(serde_json::to_string_pretty(self)?.as_bytes())?;
        new.as_file().sync_all()?;
        new.persist(path).map_err(|error| error.error)?;
        Ok(())
    }
}

/// Puts a text that the user has just written through us on record. `before` is what was there:
/// a text that came with the repository is not trusted by the way.
pub fn record_own_text(
    state: &Path,
    root: &Path,
    name: &str,
    (before, after): (Option<&str>, &str),
) -> Result<(), String> {
    let mut record = TrustRecord::load(state, root);
    if let Some(before) = before {
        let is_trusted = record
            .files
            .get(name)
            .is_some_and(|known| known.trusted && known.is_about(before));
        if !is_trusted && !grants::of(ProjectFileKind::Settings, before).is_empty() {
            return Err(format!(
                "{name} is not trusted; look at it and run `codespar trust add {}`",
                root.display()
            ));
        }
    }
    record
        .files
        .insert(name.to_owned(), Decided::new(after, true));
    record
        .save(state, root)
        .map_err(|error| format!("cannot keep the decision: {error}"))
}

/// Forgets a project; says whether there was anything to forget.
pub fn forget(state: &Path, root: &Path) -> io::Result<bool> {
    match std::fs::remove_file(file(state, root)) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// All records, by path.
pub fn all(state: &Path) -> Vec<TrustRecord> {
    let Ok(entries) = std::fs::read_dir(state.join(DIR)) else {
        return Vec::new();
    };
    let mut records: Vec<TrustRecord> = entries
        .filter_map(|entry| read(&entry.ok()?.path()))
        .collect();
    records.sort_by(|a, b| a.path.cmp(&b.path));
    records
}

fn read(path: &Path) -> Option<TrustRecord> {
    let text = codespar_files::read_text(path, MAX_BYTES).ok()?;
    serde_json::from_str(&text).ok()
}

fn name(root: &Path) -> String {
    root.to_string_lossy().into_owned()
}

fn file(state: &Path, root: &Path) -> PathBuf {
    let mut name = hash(root.as_os_str().as_bytes());
    name.truncate(32);
    state.join(DIR).join(format!("{name}.json"))
}

fn hash(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
