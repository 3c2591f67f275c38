//! Edit: one text of a file for another.
//!
//! An edit is safe against three mistakes. The file must have been read and not have changed since
//! ([`FileLedger`]). The old text must be found in exactly one place, or everywhere on request
//! (`matching`). And where the file was shown with its secrets redacted, marks in the edit are
//! turned back into the secrets they stand for, or the edit is refused.
//!
//! The new content replaces the file by a rename, with its mode and owner kept. An empty
//! `old_string` creates a file, or fills an empty one.

use std::{path::Path, sync::Arc};

use async_trait::async_trait;
use codespar_policy::{Access, Redactor};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    Call, Context, Effect, FileLedger, Intent, Tool, ToolError, ToolOutput, blocking, input,
    ledger::HASHED_BYTES,
    matching::{MatchFailure, Occurrence, Replaced, Rung, replace_string},
    paths,
    write::Target,
};

/// Lines shown above and below the change, so that the model can see whether it is where it was
/// meant.
const AROUND: usize = 3;
/// Lines of a long change that are shown.
const SHOWN: usize = 20;
/// Characters of a shown line.
const SHOWN_CHARS: usize = 300;

pub(crate) struct Edit;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    file_path: String,
    /// Exact text of the file, unique unless replace_all; empty only for a new file
    old_string: String,
    new_string: String,
    /// Replace every occurrence
    replace_all: Option<bool>,
}

#[async_trait]
impl Tool for Edit {
    fn name(&self) -> &str {
        "Edit"
    }

    fn description(&self) -> &str {
        "Replaces old_string by new_string in a file that was read before. Copy old_string from \
         Read without the line numbers, with as much around it as makes it unique."
    }

    fn input_schema(&self) -> Arc<RawValue> {
        input::schema::<Input>()
    }

    fn effect(&self) -> Effect {
        Effect::Changes
    }

    fn inspect(&self, input: &RawValue, context: &Context) -> Result<Intent, ToolError> {
        let input: Input = input::parse(input)?;
        let path = paths::resolve(context, &input.file_path)?;
        let summary = paths::shown(&path, &context.cwd());
        if input.old_string == input.new_string {
            return Err(not_edited(&summary, &MatchFailure::NoChange));
        }
        Ok(Intent {
            summary,
            access: vec![Access::Write(path)],
        })
    }

    async fn run(&self, call: Call, context: &Context) -> ToolOutput {
        let edit = async {
            let input: Input = input::parse(&call.input)?;
            let path = call.path()?;
            let (cwd, ledger) = (context.cwd(), context.ledger().clone());
            let redactor = context.redactor().clone();
            let edit = move || edit(&path, &cwd, &input, &ledger, &redactor);
            blocking::change(call.cancel, edit).await
        };
        edit.await.map_or_else(ToolOutput::from, ToolOutput::text)
    }
}

/// Everything happens on one held place: what is read, checked and replaced is the same directory
/// entry. A file that another process changes between the check and the rename is overwritten; that
/// window cannot be closed without locks that other programs respect.
fn edit(
    path: &Path,
    cwd: &Path,
    input: &Input,
    ledger: &FileLedger,
    redactor: &Redactor,
) -> Result<String, ToolError> {
    let name = paths::shown(path, cwd);
    let target = Target::find(path, &name)?;
    let Some(before) = &target.before else {
        if !input.old_string.is_empty() {
            return Err(paths::missing(path, cwd));
        }
        target.save(path, input.new_string.as_bytes(), ledger)?;
        return Ok(format!(
            "Created {name} ({} lines)",
            input.new_string.lines().count()
        ));
    };
    if before.metadata.len() > HASHED_BYTES {
        return Err(not_edited(&name, &"it is too long for Edit; use a command"));
    }
    if !before.content.is_empty() {
        let seen = ledger.check(path, &before.metadata, &before.content);
        seen.map_err(|problem| not_edited(&name, &problem))?;
    }
    let original = std::str::from_utf8(&before.content)
        .map_err(|_| not_edited(&name, &"it is not UTF-8 text; use a command"))?;
    let occurrence = match input.replace_all {
        Some(true) => Occurrence::All,
        _ => Occurrence::One,
    };
    // The file was shown without its secrets.
    let meant = redactor.restore(original, &input.old_string, &input.new_string);
    let meant = meant.map_err(|error| not_edited(&name, &error))?;
    let (old, new) = match &meant {
        Some((old, new)) => (old, new),
        None => (&input.old_string, &input.new_string),
    };
    let replaced = replace_string(original, old, new, occurrence)
        .map_err(|failure| not_edited(&name, &failure))?;
    target.save(path, replaced.text.as_bytes(), ledger)?;
    Ok(report(&name, &replaced))
}

/// The form of every refusal: the file is as it was.
fn not_edited(name: &str, reason: &dyn std::fmt::Display) -> ToolError {
    ToolError(format!("{name} is not edited: {reason}"))
}

/// What was done, and the lines as they are now.
fn report(name: &str, replaced: &Replaced) -> String {
    let mut text = format!("Edited {name}");
    if replaced.count > 1 {
        text.push_str(&format!(" in {} places, the first", replaced.count));
    }
    if replaced.rung != Rung::Exact {
        text.push_str(&format!(" (found with {})", replaced.rung));
    }
    text.push_str(":\n");
    let first = replaced.first_line.saturating_sub(AROUND).max(1);
    let change = replaced.new_lines.clamp(1, SHOWN);
    let last = replaced.first_line + change - 1 + AROUND;
    let width = last.to_string().len();
    let lines = replaced.text.lines().enumerate();
    for (index, line) in lines.skip(first - 1).take(last + 1 - first) {
        let cut: String = line.chars().take(SHOWN_CHARS).collect();
        text.push_str(&format!("{:>width$}\t{cut}\n", index + 1));
    }
    text.pop();
    text
}

#[cfg(test)]
mod tests;
