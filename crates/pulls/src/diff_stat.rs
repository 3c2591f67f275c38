//! How many lines a change adds and removes.
//!
//! The same numbers are shown in the pull request and in the report, and the risk is computed from
//! them.

use codespar_outline::{Definitions, name_of};
use codespar_protocol::{ChangeSet, FileChange};
use codespar_tools::{changed_lines, unified_diff};

use crate::{diff::LineKind, risk::Touched};

/// Larger files are data.
const MOST_BYTES: usize = 1 << 20;

/// Counts lines, given the files as they were. The result has one item for each change, in the same
/// order; `PullText` and the report rely on that. `before` is asked by the old path of a file. One
/// that it does not have counts as empty, so all of its lines are new. Bytes that are not UTF-8 are
/// compared with replacement characters.
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
            let (old, new) = (String::from_utf8_lossy(&old), String::from_utf8_lossy(new));
            let (added, removed) = changed_lines(&old, &new);
            let parts = match change {
                FileChange::Modified { .. } | FileChange::Moved { .. } => {
                    parts(change.path().as_str(), &old, &new)
                }
                FileChange::Added { .. } | FileChange::Deleted { .. } => Vec::new(),
            };
            Touched {
                parts,
                path: change.path().to_string(),
                added,
                removed,
                is_deleted: matches!(change, FileChange::Deleted { .. }),
            }
        })
        .collect()
}

/// Names of the functions and classes that the changed lines are in, in the order of the file. Each
/// name once. A removed line is looked up at the place where it was, in the new file. Nothing for
/// new files, which would list all they have, for deleted and for large ones.
fn parts(path: &str, old: &str, new: &str) -> Vec<String> {
    if old.is_empty() || new.len().max(old.len()) > MOST_BYTES {
        return Vec::new();
    }
    // With the header that `parse` begins a file at.
    let diff = format!("diff --git a/x b/x\n{}", unified_diff("x", old, new));
    let lines: Vec<&str> = new.lines().collect();
    let definitions = Definitions::of(path, &lines);
    let mut found: Vec<String> = Vec::new();
    let files = crate::diff::parse(&diff);
    let changed = files.iter().flat_map(|file| &file.hunks);
    for line in changed.flat_map(|hunk| &hunk.lines) {
        if line.kind == LineKind::Same || line.text.trim().is_empty() {
            continue;
        }
        let name = definitions.enclosing(line.at).and_then(|block| {
            let first = usize::try_from(*block.start()).ok()?;
            name_of(lines.get(first - 1)?)
        });
        if let Some(name) = name.filter(|name| !found.contains(name)) {
            found.push(name);
        }
    }
    found
}

/// The same from a unified diff.
pub(crate) fn touched_by_diff(diff: &str) -> Vec<Touched> {
    crate::diff::parse(diff)
        .into_iter()
        .map(|file| Touched {
            added: file.added,
            removed: file.removed,
            is_deleted: file.is_deleted,
            parts: Vec::new(),
            path: file.path,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_functions_are_named_once_in_order() {
        let old = "class A:\n    def one(self):\n        return 1\n\n    def two(self):\n        return 2\n\nX = 1\n";
        let new = old
            .replace("return 1", "x = 1\n        return x")
            .replace("return 2", "return 3")
            .replace("X = 1", "X = 2");
        assert_eq!(parts("a.py", old, &new), ["one", "two"]);
        assert_eq!(parts("a.py", old, old), [""; 0]);
        let rust =
            "fn a() {\n    1\n}\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn it() {}\n}\n";
        let more = rust.replace("fn it() {}", "fn it() {}\n\n    use super::*;");
        assert_eq!(parts("a.rs", rust, &more), ["mod tests"]);
    }
}
