//! Edit: one text of a file for another.
//!
//! An edit is safe against three mistakes. The file must not have changed since it was read; one
//! that was not read is edited only where the old text is in it exactly once, or in lines that were
//! shown ([`crate::FileLedger`]). The old text must be found in exactly one place, or everywhere on request
//! (`matching`). And where the file was shown with its secrets redacted, marks in the edit are
//! turned back into the secrets they stand for, or the edit is refused.
//!
//! The new content replaces the file by a rename, with its mode and owner kept. An empty
//! `old_string` creates a file, or fills an empty one.
//!
//! The tool understands three inputs, told apart by their fields: one replacement, which is the one
//! that is offered; several (`edits`, as `MultiEdit` has them); and a cell of a notebook
//! (`notebook_path`, as `NotebookEdit` has it). All of them are one write to one path, so rules,
//! protected paths and the checks above are the same for all.

mod multi;
mod notebook;

use std::{ops::Range, path::Path, sync::Arc};

use async_trait::async_trait;
use codespar_policy::{Access, Redactor};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, value::RawValue};
use tokio_util::sync::CancellationToken;

use crate::{
    Call, Context, Effect, FileLedger, Intent, LedgerProblem, Proposal, Tool, ToolError,
    ToolOutput, blocking, input,
    ledger::HASHED_BYTES,
    matching::{MatchFailure, Replaced, Rung},
    paths,
    tool::path_of,
    write::{FileRecords, Target, write_approved},
};
use multi::MultiInput;
use notebook::NotebookInput;

/// Lines shown above and below the change, so that the model can see whether it is where it was
/// meant.
const AROUND: usize = 3;
/// Lines of a long change that are shown.
const SHOWN: usize = 20;
/// Characters of a shown line.
const SHOWN_CHARS: usize = 300;

const NOT_READ: &str = "it has not been read yet, and the text to replace is not in it exactly \
                        once; read it first";

pub(crate) struct Edit;

/// One replacement, as `Input` has it, without the file.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Replacement {
    old_string: String,
    new_string: String,
    replace_all: Option<bool>,
}

/// A new text and what is said about it.
struct Change {
    text: String,
    report: String,
    grounds: Grounds,
}

/// What shows that the author of an edit knew the text, without having read the file.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Grounds {
    /// Every old text was there once, to the letter.
    Exact,
    /// Whoever saw these lines, from 1, knew it.
    Lines(Range<usize>),
    None,
}

impl Grounds {
    fn of(replaced: &Replaced) -> Self {
        match (replaced.count, replaced.rung) {
            (1, Rung::Exact) => Self::Exact,
            (1, _) => Self::Lines(replaced.first_line..replaced.first_line + replaced.old_lines),
            _ => Self::None,
        }
    }
}

/// What a call asks for.
enum Request {
    One(Replacement),
    Many(Vec<Replacement>),
    Cell(NotebookInput),
}

impl Request {
    /// By the fields that only one of the forms has. The first part is the path.
    fn read(raw: &RawValue) -> Result<(String, Self), ToolError> {
        let fields: Map<String, Value> = serde_json::from_str(raw.get()).unwrap_or_default();
        if fields.contains_key("notebook_path") {
            let input: NotebookInput = input::parse(raw)?;
            return Ok((input.notebook_path.clone(), Self::Cell(input)));
        }
        if fields.contains_key("edits") {
            let MultiInput { file_path, edits } = input::parse(raw)?;
            if edits.is_empty() {
                return Err(ToolError("invalid input: `edits` is empty".to_owned()));
            }
            return Ok((file_path, Self::Many(edits)));
        }
        let input: Input = input::parse(raw)?;
        let edit = Replacement {
            old_string: input.old_string,
            new_string: input.new_string,
            replace_all: input.replace_all,
        };
        Ok((input.file_path, Self::One(edit)))
    }

    /// Whether it makes a file that is not there: the first replacement is for nothing.
    fn creates(&self) -> bool {
        match self {
            Self::One(edit) => edit.old_string.is_empty(),
            Self::Many(edits) => edits.first().is_some_and(|edit| edit.old_string.is_empty()),
            Self::Cell(_) => false,
        }
    }

    /// The text afterwards; the error is the reason why there is none.
    fn applied(&self, name: &str, original: &str, redactor: &Redactor) -> Result<Change, String> {
        match self {
            Self::One(edit) => {
                let replaced = multi::one(original, edit, redactor)?;
                let report = report(name, &replaced);
                Ok(Change {
                    grounds: Grounds::of(&replaced),
                    text: replaced.text,
                    report,
                })
            }
            Self::Many(edits) => {
                let mut change = multi::replaced(original, edits, redactor)?;
                change.report.insert_str(0, &format!("Edited {name}:"));
                Ok(change)
            }
            Self::Cell(input) => {
                let mut change = notebook::edited(original, input, redactor)?;
                change.report.insert_str(0, &format!("Edited {name}:"));
                Ok(change)
            }
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    file_path: String,
    /// Exact text of the file, unique unless replace_all; empty only for a new file
    old_string: String,
    new_string: String,
    replace_all: Option<bool>,
}

#[async_trait]
impl Tool for Edit {
    fn name(&self) -> &str {
        "Edit"
    }

    fn description(&self) -> &str {
        "Replaces old_string by new_string in a file. Copy old_string from the file, without line \
         numbers, with as much around it as makes it unique."
    }

    fn input_schema(&self) -> Arc<RawValue> {
        input::schema::<Input>()
    }

    fn effect(&self) -> Effect {
        Effect::Changes
    }

    fn inspect(&self, input: &RawValue, context: &Context) -> Result<Intent, ToolError> {
        let (path, request) = Request::read(input)?;
        let path = paths::resolve(context, &path)?;
        let summary = paths::shown(&path, &context.cwd());
        let idle = match &request {
            Request::One(edit) => multi::idle(std::slice::from_ref(edit)),
            Request::Many(edits) => multi::idle(edits),
            Request::Cell(_) => None,
        };
        match (idle, &request) {
            (Some(number), Request::Many(_)) => {
                let reason = format!("edit {number}: {}", MatchFailure::NoChange);
                return Err(not_edited(&summary, &reason));
            }
            (Some(_), _) => return Err(not_edited(&summary, &MatchFailure::NoChange)),
            (None, _) => {}
        }
        Ok(Intent {
            summary,
            access: vec![Access::Write(path)],
        })
    }

    async fn propose(
        &self,
        input: &RawValue,
        access: &[Access],
        context: &Context,
    ) -> Option<Proposal> {
        let (_, request) = Request::read(input).ok()?;
        let path = path_of(access).ok()?;
        let (cwd, ledger) = (context.cwd(), context.ledger().clone());
        let redactor = context.redactor().clone();
        let propose = move |_: &CancellationToken| {
            let planned = Planned::new(&path, &cwd, &request, &ledger, &redactor)?;
            Ok(planned.target.proposal(planned.change.text))
        };
        let proposal = blocking::look(CancellationToken::new(), propose).await;
        proposal.ok().flatten()
    }

    async fn run(&self, call: Call, context: &Context) -> ToolOutput {
        let edit = async {
            let (_, request) = Request::read(&call.input)?;
            let path = call.path()?;
            let (cwd, records) = (context.cwd(), context.file_records());
            let redactor = context.redactor().clone();
            let edit = move || match &call.text {
                Some(text) => write_approved(&path, &cwd, text, &records),
                None => edit(&path, &cwd, &request, &records, &redactor),
            };
            blocking::change(call.cancel, edit).await
        };
        edit.await.map_or_else(ToolOutput::from, ToolOutput::text)
    }
}

/// An edit that can be made.
struct Planned {
    target: Target,
    change: Change,
    /// Whether its author has read the file.
    reading: Reading,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    Read,
    /// The old text showed that its author knew it.
    Unread,
}

impl Planned {
    /// Everything happens on one held place: what is read, checked and replaced is the same
    /// directory entry. A file that another process changes between the check and the rename is
    /// overwritten; that window cannot be closed without locks that other programs respect.
    fn new(
        path: &Path,
        cwd: &Path,
        request: &Request,
        ledger: &FileLedger,
        redactor: &Redactor,
    ) -> Result<Self, ToolError> {
        let name = paths::shown(path, cwd);
        let target = Target::find(path, &name)?;
        let Some(before) = &target.before else {
            if !request.creates() {
                return Err(paths::missing(path, cwd));
            }
            let change = request.applied(&name, "", redactor);
            let mut change = change.map_err(|reason| not_edited(&name, &reason))?;
            change.report = format!("Created {name} ({} lines)", change.text.lines().count());
            return Ok(Self {
                target,
                change,
                reading: Reading::Read,
            });
        };
        if before.metadata.len() > HASHED_BYTES {
            return Err(not_edited(&name, &"it is too long for Edit; use a command"));
        }
        let reading = match before.content.is_empty() {
            true => Reading::Read,
            false => match ledger.check(path, &before.metadata, &before.content) {
                Ok(()) => Reading::Read,
                Err(LedgerProblem::NotRead) => Reading::Unread,
                Err(problem) => return Err(not_edited(&name, &problem)),
            },
        };
        let original = std::str::from_utf8(&before.content)
            .map_err(|_| not_edited(&name, &"it is not UTF-8 text; use a command"))?;
        let change = request.applied(&name, original, redactor);
        if reading == Reading::Unread {
            let is_known = change.as_ref().is_ok_and(|change| match &change.grounds {
                Grounds::Exact => true,
                Grounds::Lines(lines) => ledger.has_shown(path, original, lines.clone()),
                Grounds::None => false,
            });
            if !is_known {
                // Why it does not fit would show what nobody has read.
                return Err(not_edited(&name, &NOT_READ));
            }
        }
        let change = change.map_err(|reason| not_edited(&name, &reason))?;
        if change.text == original {
            return Err(not_edited(&name, &MatchFailure::NoChange));
        }
        Ok(Self {
            target,
            change,
            reading,
        })
    }
}

fn edit(
    path: &Path,
    cwd: &Path,
    request: &Request,
    records: &FileRecords,
    redactor: &Redactor,
) -> Result<String, ToolError> {
    let Planned {
        target,
        change,
        reading,
    } = Planned::new(path, cwd, request, &records.ledger, redactor)?;
    target.save(path, change.text.as_bytes(), records)?;
    if reading == Reading::Unread {
        // It has seen its own change and nothing else, which is too little to write it whole.
        records.ledger.forget(path);
    }
    Ok(change.report)
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
