//! `codespar apply`.
//!
//! The apply step of the dev agent on a working tree, without a model, git or database. The rules
//! are the same: all blocks or none, no path out of the root, protected files only with a flag.

use std::{
    io::{IsTerminal, Read},
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Args;
use codespar_change::{
    answer::{self, AnswerContext, ParsedAnswer},
    apply::{self, BlockOutcome, BlockReport, ProtectedFiles, Refusal, Rules, WorkTree},
};
use codespar_protocol::{ChangeSet, FileChange};
use serde_json::{Value, json};

use crate::{
    environment,
    error::{CommandError, EXIT_USAGE},
    style,
};
use codespar_runtime::Settings;

/// Apply the edit blocks of a model's answer to a working tree: all of them, or none.
///
/// The answer comes from FILE or from standard input. Exit code 0: applied; 2: refused, with the
/// reason for every block, and nothing is written; 1: it could not be written, and everything is
/// as it was.
///
/// Example: codespar apply --root ~/project --check < answer.txt
#[derive(Args)]
#[command(after_help = "An answer:
  Text outside the blocks is the summary.

  ===FILE: src/new.rs===
  the whole content of a new file
  ===END===

  ===FILE: src/old.rs===
  <<<SEARCH
  whole lines as they are, found in one place only
  >>>REPLACE
  the lines as they should be
  ===END===

  ===DELETE: src/gone.rs===
  ===MOVE: src/a.rs -> src/b.rs===

Markers start in the first column. A line of content that looks like one gets a backslash before
it. A file that is changed keeps its line ends, its final newline or the lack of it, and its mode.")]
pub(crate) struct ApplyArgs {
    /// The answer; standard input if left out or `-`.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// The working tree; paths in the answer start here.
    #[arg(long, value_name = "DIR", default_value = ".")]
    root: PathBuf,
    /// Show what would change; write nothing.
    #[arg(long)]
    check: bool,
    /// Let protected files change: CI configuration, CODEOWNERS, lock files, or what `dev.protected`
    /// of the settings names. Settings, agent definitions, editor, hook and shell start-up files are
    /// never changed.
    #[arg(long)]
    allow_protected: bool,
    /// Print JSON: `applied`, `blocks` (what became of each), and `files` with `path`, `change` and
    /// `from` for a moved one.
    #[arg(long)]
    json: bool,
}

/// The most that an answer may have.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The settings of the tree say which files are protected; an untrusted project can only add to
/// them. With `--check` everything is done but the writing.
pub(crate) fn run(args: &ApplyArgs) -> Result<ExitCode, CommandError> {
    if !args.root.is_dir() {
        return Err(CommandError::Usage(format!(
            "{} is no directory; --root names the working tree",
            args.root.display()
        )));
    }
    let text = read(args.file.as_deref())?;
    let answer = match answer::parse(&text, &AnswerContext::default()) {
        Ok(answer) => answer,
        Err(error) => return refused(args, &error.into()),
    };
    if answer.ops.is_empty() {
        return no_changes(args, &answer);
    }
    let protected = if args.allow_protected {
        ProtectedFiles::Allowed
    } else {
        ProtectedFiles::Refused
    };
    let settings = Settings::load(&environment::project_dir(Some(&args.root))?)?;
    let patterns = settings.dev.protected;
    let rules = Rules::new(patterns.unwrap_or_else(Rules::default_patterns), protected)
        .map_err(|error| CommandError::Usage(error.to_string()))?;
    let applied = match apply::apply(&answer, &WorkTree::new(&args.root), &rules) {
        Ok(applied) => applied,
        Err(refusal) => return refused(args, &refusal),
    };
    if !args.check {
        apply::write(&args.root, &applied.changes)
            .map_err(|error| CommandError::Failed(error.to_string()))?;
    }
    report(args, &applied.changes, &applied.blocks)
}

/// At most one byte more than allowed is read from a pipe, so a stream without end is refused.
fn read(file: Option<&Path>) -> Result<String, CommandError> {
    let file = file.filter(|file| *file != Path::new("-"));
    let (bytes, name) = match file {
        Some(file) => {
            let name = file.display().to_string();
            let bytes = codespar_files::read_real(file, MAX_BYTES)
                .map_err(|error| CommandError::Usage(format!("cannot read {name}: {error}")))?;
            (bytes, name)
        }
        None if std::io::stdin().is_terminal() => {
            return Err(CommandError::Usage(
                "no answer to apply; name a file, or pipe the answer in".to_owned(),
            ));
        }
        None => {
            let mut bytes = Vec::new();
            let mut stdin = std::io::stdin().lock().take(MAX_BYTES + 1);
            stdin.read_to_end(&mut bytes)?;
            if stdin.limit() == 0 {
                let message = format!("standard input has more than {MAX_BYTES} bytes");
                return Err(CommandError::Usage(message));
            }
            (bytes, "standard input".to_owned())
        }
    };
    String::from_utf8(bytes)
        .map_err(|error| CommandError::Usage(format!("{name} is not UTF-8 text: {error}")))
}

/// An answer without a block is refused like one that does not fit: a script must not take it for
/// success.
fn no_changes(args: &ApplyArgs, answer: &ParsedAnswer) -> Result<ExitCode, CommandError> {
    if args.json {
        super::print_json(&outcome(false, &[], &ChangeSet::default()))?;
    } else {
        crate::printer::err(format_args!("no changes found: the answer has no block"));
        if !answer.summary.is_empty() {
            super::print(format_args!("{}\n", answer.summary))?;
        }
    }
    Ok(ExitCode::from(EXIT_USAGE))
}

/// All blocks are reported, also those that would have fitted.
fn refused(args: &ApplyArgs, refusal: &Refusal) -> Result<ExitCode, CommandError> {
    if args.json {
        super::print_json(&outcome(false, &refusal.blocks, &ChangeSet::default()))?;
    } else {
        crate::printer::err(format_args!(
            "{} nothing was changed; {} of {} blocks cannot be applied:",
            style::error("refused:"),
            refusal.refused().count(),
            refusal.blocks.len()
        ));
        for block in refusal.refused() {
            crate::printer::err(format_args!("- {block}"));
        }
    }
    Ok(ExitCode::from(EXIT_USAGE))
}

/// Blocks that change nothing are named on standard error; standard output has the changed files
/// alone.
fn report(
    args: &ApplyArgs,
    changes: &ChangeSet,
    blocks: &[BlockReport],
) -> Result<ExitCode, CommandError> {
    if args.json {
        super::print_json(&outcome(!args.check, blocks, changes))?;
        return Ok(ExitCode::SUCCESS);
    }
    let unchanged = |block: &&BlockReport| block.outcome == BlockOutcome::Unchanged;
    for block in blocks.iter().filter(unchanged) {
        crate::printer::err(format_args!("{block}"));
    }
    for change in &changes.0 {
        let from = match change {
            FileChange::Moved { from, .. } => format!("{from} -> "),
            _ => String::new(),
        };
        let word = if args.check {
            format!("would be {}", change.word())
        } else {
            change.word().to_owned()
        };
        super::print(format_args!("{word}: {from}{}\n", change.path()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The same shape whether it was applied, checked or refused.
fn outcome(applied: bool, blocks: &[BlockReport], changes: &ChangeSet) -> Value {
    let file = |change: &FileChange| {
        let mut file = json!({ "path": change.path(), "change": change.word() });
        if let FileChange::Moved { from, .. } = change {
            file["from"] = json!(from);
        }
        file
    };
    let files: Vec<Value> = changes.0.iter().map(file).collect();
    json!({ "applied": applied, "blocks": blocks, "files": files })
}
