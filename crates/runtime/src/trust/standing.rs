//! How a file stands: what was decided about it, here or in the repository it is a worktree of.
//!
//! A worktree shares the decisions of its main repository: the same text that was trusted there is
//! trusted here. A decision that declines counts only where no record trusts the text.

use std::path::Path;

use super::{
    ProjectFile,
    files::Found,
    grants,
    record::{Decided, TrustRecord},
    worktree,
};

/// What was decided about a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// It grants nothing, so nothing has to be decided.
    NeedsNone,
    /// This text was trusted.
    Trusted,
    /// This text was seen and not trusted.
    Declined,
    /// Another text was decided about; this is it. Shown as a difference to the new one.
    Changed(String),
    /// Nothing was decided yet.
    New,
}

/// The project's own record, and that of the repository it is a worktree of.
pub(super) fn decisions(state: &Path, root: &Path) -> Vec<TrustRecord> {
    let main = worktree::main_repository(root).filter(|main| main != root);
    std::iter::once(root)
        .chain(main.as_deref())
        .map(|root| TrustRecord::load(state, root))
        .collect()
}

/// A file that grants nothing needs no decision, even if there is one on record.
pub(super) fn decided(found: Found, records: &[TrustRecord]) -> ProjectFile {
    let Found {
        name,
        path,
        kind,
        text,
    } = found;
    let grants = text
        .as_ref()
        .map(|text| grants::of(kind, text))
        .unwrap_or_default();
    let standing = match &text {
        Ok(text) if !grants.is_empty() => standing(&name, text, records),
        // What cannot be read is reported by whoever wants to use it.
        _ => Standing::NeedsNone,
    };
    ProjectFile {
        name,
        path,
        kind,
        text,
        grants,
        standing,
        for_this_run: false,
    }
}

fn standing(name: &str, text: &str, records: &[TrustRecord]) -> Standing {
    let known: Vec<&Decided> = records
        .iter()
        .filter_map(|record| record.files.get(name))
        .collect();
    let about: Vec<&&Decided> = known.iter().filter(|known| known.is_about(text)).collect();
    if about.iter().any(|known| known.trusted) {
        Standing::Trusted
    } else if !about.is_empty() {
        Standing::Declined
    } else {
        match known.first() {
            Some(other) => Standing::Changed(other.text.clone()),
            None => Standing::New,
        }
    }
}
