//! What a rewind would do, to be looked at before it is done.

use std::path::{Path, PathBuf};

use codespar_tools::{
    FileConflict, OnConflict, PlannedRestore, Restore, RestoreStep, RestoreVerdict, changed_lines,
    unified_diff,
};
use serde::Serialize;

/// Longer texts are not compared line by line.
const COMPARED_BYTES: usize = 1 << 20;

/// What a rewind would do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RewindPreview {
    /// Files that would change.
    pub files: Vec<FilePreview>,
    /// Files that would be left alone.
    pub conflicts: Vec<RewindConflict>,
    /// Commands and the like that ran since, whose changes to files would stay.
    pub not_covered: Vec<String>,
    /// Messages that would no longer be part of the conversation.
    pub messages_dropped: usize,
    /// Messages that would be part of it again.
    pub messages_back: usize,
}

/// What would become of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FilePreview {
    pub path: PathBuf,
    pub effect: FileEffect,
    /// Lines; 0 of a file that is no text or very long.
    pub added: usize,
    pub removed: usize,
    /// From what it is to what it would be; `None` for a file that is no text or very long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileEffect {
    Changed,
    Created,
    Removed,
}

/// A file that is left alone, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RewindConflict {
    pub path: PathBuf,
    pub reason: String,
    /// Whether it can be restored all the same.
    pub can_be_overwritten: bool,
}

impl RewindConflict {
    pub(super) fn new(path: &Path, conflict: &FileConflict) -> Self {
        Self {
            path: path.to_path_buf(),
            reason: conflict.to_string(),
            can_be_overwritten: conflict.can_be_overwritten(),
        }
    }
}

impl RewindPreview {
    /// Looks at the files.
    pub(super) fn look(
        &mut self,
        restore: &Restore,
        steps: &[RestoreStep],
        on_conflict: OnConflict,
        root: &Path,
    ) {
        for step in steps {
            let planned = restore.plan(step, on_conflict);
            match &planned.verdict {
                RestoreVerdict::Unneeded => {}
                RestoreVerdict::Conflict(conflict) => {
                    let conflict = RewindConflict::new(&step.path, conflict);
                    self.conflicts.push(conflict);
                }
                RestoreVerdict::Possible => {
                    self.files.push(FilePreview::of(&step.path, planned, root));
                }
            }
        }
    }
}

impl FilePreview {
    fn of(path: &Path, planned: PlannedRestore, root: &Path) -> Self {
        let effect = match (&planned.now, &planned.then) {
            (None, _) => FileEffect::Created,
            (Some(_), None) => FileEffect::Removed,
            (Some(_), Some(_)) => FileEffect::Changed,
        };
        let texts = text(planned.now).zip(text(planned.then));
        let (added, removed) = match &texts {
            Some((now, then)) => changed_lines(now, then),
            None => (0, 0),
        };
        let diff = texts.map(|(now, then)| unified_diff(&name_of(path, root), &now, &then));
        Self {
            path: path.to_path_buf(),
            effect,
            added,
            removed,
            diff,
        }
    }
}

/// A missing file is an empty text.
fn text(content: Option<Vec<u8>>) -> Option<String> {
    let content = content.unwrap_or_default();
    if content.len() > COMPARED_BYTES || content.contains(&0) {
        return None;
    }
    String::from_utf8(content).ok()
}

/// A file as people name it.
pub(super) fn name_of(path: &Path, root: &Path) -> String {
    let name = path.strip_prefix(root).unwrap_or(path);
    name.display().to_string()
}
