//! Several replacements in one file, all of them or none: the `MultiEdit` of other agents.

use codespar_policy::Redactor;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Change, Grounds, Replacement};
use crate::matching::{Occurrence, Replaced, replace_string};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MultiInput {
    pub(super) file_path: String,
    /// Made in order, each on what the one before left
    pub(super) edits: Vec<Replacement>,
}

/// The first replacement that changes nothing by itself, counted from 1.
pub(super) fn idle(edits: &[Replacement]) -> Option<usize> {
    let idle = |edit: &Replacement| edit.old_string == edit.new_string;
    edits.iter().position(idle).map(|index| index + 1)
}

/// Makes the replacements in order. The error says which one does not fit.
pub(super) fn replaced(
    original: &str,
    edits: &[Replacement],
    redactor: &Redactor,
) -> Result<Change, String> {
    let mut text = original.to_owned();
    let mut report = String::new();
    let mut grounds = Grounds::Exact;
    for (index, edit) in edits.iter().enumerate() {
        let number = index + 1;
        let done = one(&text, edit, redactor).map_err(|reason| match edits.len() {
            1 => reason,
            count => format!("edit {number} of {count}: {reason}; none of them was made"),
        })?;
        report.push_str(&format!("\nedit {number}: line {}", done.first_line));
        if done.count > 1 {
            report.push_str(&format!(" and {} more places", done.count - 1));
        }
        if Grounds::of(&done) != Grounds::Exact {
            grounds = Grounds::None;
        }
        text = done.text;
    }
    Ok(Change {
        text,
        report,
        grounds,
    })
}

/// The file was shown without its secrets, so marks in the edit are turned back into them.
pub(super) fn one(
    original: &str,
    edit: &Replacement,
    redactor: &Redactor,
) -> Result<Replaced, String> {
    let occurrence = match edit.replace_all {
        Some(true) => Occurrence::All,
        _ => Occurrence::One,
    };
    let meant = redactor.restore(original, &edit.old_string, &edit.new_string);
    let meant = meant.map_err(|error| error.to_string())?;
    let (old, new) = match &meant {
        Some((old, new)) => (old, new),
        None => (&edit.old_string, &edit.new_string),
    };
    replace_string(original, old, new, occurrence).map_err(|failure| failure.to_string())
}
