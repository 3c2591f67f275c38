//! How many lines a change adds and removes.

use codespar_protocol::{ChangeSet, FileChange};
use codespar_tools::changed_lines;

use crate::risk::Touched;

/// Counts lines, given the files as they were.
pub fn touched(changes: &ChangeSet, before: impl Fn(&str) -> Option<Vec<u8>>) -> Vec<Touched> {
    changes
        .0
        .iter()
        .map(|change| {
            let old_path = match change {
                FileChange::Added { .. } => None,
                FileChange::Modified { path, .. } | FileChange::Deleted { path } => Some(path),
                FileChange::Moved { from, .. } => Some(from),
            };
            let old = old_path
                .and_then(|path| before(path.as_str()))
                .unwrap_or_default();
            let new = change.after().map_or(&[][..], |(_, content, _)| &content.0);
            let (added, removed) = lines(&old, new);
            Touched {
                path: change.path().to_string(),
                added,
                removed,
                is_deleted: matches!(change, FileChange::Deleted { .. }),
            }
        })
        .collect()
}

fn lines(old: &[u8], new: &[u8]) -> (usize, usize) {
    let (old, new) = (String::from_utf8_lossy(old), String::from_utf8_lossy(new));
    changed_lines(&old, &new)
}

/// The same from a unified diff.
pub(crate) fn touched_by_diff(diff: &str) -> Vec<Touched> {
    crate::diff::parse(diff)
        .into_iter()
        .map(|file| Touched {
            added: file.added,
            removed: file.removed,
            is_deleted: file.is_deleted,
            path: file.path,
        })
        .collect()
}
