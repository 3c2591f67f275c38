//! `codespar session rewind`.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use codespar_agent::{
    CheckpointStore, FileEffect, OnConflict, RewindConflict, RewindError, RewindPreview,
    RewindReport, RewindRequest, RewindScope, Rewinder, Transcript, TurnPoint,
};
use codespar_runtime::{ProjectDir, find_session};
use codespar_store::{Database, Store};
use serde_json::json;

use crate::{error::CommandError, printer::plain, style};

/// Go back to before an earlier turn, or list the turns.
///
/// A turn is a message that you typed and what the agent did about it. Files are restored to what
/// they were before the agent's tools changed them. A file that was changed since by a command or by
/// hand is left alone and named, and so are commands that may have changed files. The record of the
/// conversation is kept: --undo goes back to before the last rewind.
///
/// Example: codespar session rewind 0190a5c2 --to 3 --dry-run
#[derive(Args)]
pub(super) struct RewindArgs {
    /// The id of the session, or a unique prefix of it.
    id: String,
    /// Go back to before this turn.
    #[arg(long, value_name = "TURN", conflicts_with_all = ["only", "undo"])]
    to: Option<usize>,
    /// Take back what this turn alone did to files.
    #[arg(long, value_name = "TURN", conflicts_with = "undo")]
    only: Option<usize>,
    /// Undo the last rewind that was not undone.
    #[arg(long)]
    undo: bool,
    /// Restore files, and keep the conversation.
    #[arg(long, requires = "to", conflicts_with_all = ["conversation", "both"])]
    code: bool,
    /// Shorten the conversation, and keep files.
    #[arg(long, requires = "to", conflicts_with = "both")]
    conversation: bool,
    /// Both, which is the default.
    #[arg(long, requires = "to")]
    both: bool,
    /// Also restore files that were changed since by a command or by hand.
    #[arg(long)]
    overwrite: bool,
    /// Show what would be done, with the changes to files.
    #[arg(long)]
    dry_run: bool,
    /// Print JSON: `turns`, each with `number`, `prompt`, `at` and `files`; with --dry-run
    /// `preview`, otherwise `report`.
    #[arg(long)]
    json: bool,
}

impl RewindArgs {
    /// `None` to list the turns.
    fn request(&self) -> Option<RewindRequest> {
        let scope = match (self.code, self.conversation) {
            (true, _) => RewindScope::Code,
            (_, true) => RewindScope::Conversation,
            _ => RewindScope::Both,
        };
        match (self.to, self.only, self.undo) {
            (Some(turn), _, _) => Some(RewindRequest::Before { turn, scope }),
            (_, Some(turn), _) => Some(RewindRequest::OneTurn { turn }),
            (_, _, true) => Some(RewindRequest::Undo),
            _ => None,
        }
    }
}

/// Takes the session for the time being; refused while another process has it.
pub(super) async fn rewind(
    args: &RewindArgs,
    store: &Arc<dyn Database>,
    project_dir: &ProjectDir,
) -> Result<(), CommandError> {
    let id = find_session(&**store, &args.id).await?;
    let rewinder = Rewinder {
        checkpoints: Some(CheckpointStore::new(project_dir.state(), id)),
        root: store.session(id).await?.cwd,
    };
    let sessions: Arc<dyn Store> = store.clone();
    let (mut transcript, _) = Transcript::open(sessions, id).await?;
    let on_conflict = match args.overwrite {
        true => OnConflict::Overwrite,
        false => OnConflict::LeaveAlone,
    };
    let names = Names(rewinder.root.clone());
    match args.request() {
        None => {
            let turns = rewinder.turns(&transcript).await.map_err(failed)?;
            match args.json {
                true => super::print_json(&json!({ "turns": turns }))?,
                false => names.list(&turns)?,
            }
        }
        Some(request) if args.dry_run => {
            let preview = rewinder.preview(&transcript, request, on_conflict).await;
            let mut preview = preview.map_err(failed)?;
            let redactor = project_dir.environment.redactor();
            for diff in preview
                .files
                .iter_mut()
                .filter_map(|file| file.diff.as_mut())
            {
                *diff = redactor.redact(diff).into_owned();
            }
            match args.json {
                true => super::print_json(&json!({ "preview": preview }))?,
                false => names.preview(&preview)?,
            }
        }
        Some(request) => {
            let report = rewinder.rewind(&mut transcript, request, on_conflict).await;
            let report = report.map_err(failed)?;
            match args.json {
                true => super::print_json(&json!({ "report": report }))?,
                false => names.report(&report)?,
            }
        }
    }
    Ok(())
}

fn failed(error: RewindError) -> CommandError {
    match error {
        RewindError::Store(error) => CommandError::Store(error),
        RewindError::NoSuchTurn { .. } | RewindError::NothingToUndo => {
            CommandError::Usage(error.to_string())
        }
        other => CommandError::Failed(other.to_string()),
    }
}

/// Files are named from the directory of the session.
struct Names(PathBuf);

impl Names {
    fn of(&self, path: &Path) -> String {
        let name = path.strip_prefix(&self.0).unwrap_or(path);
        plain(&name.display().to_string()).to_string()
    }

    fn list(&self, turns: &[TurnPoint]) -> Result<(), CommandError> {
        if turns.is_empty() {
            return super::print(format_args!("nothing was said in this session\n"));
        }
        for turn in turns {
            let files: Vec<String> = turn.files.iter().map(|path| self.of(path)).collect();
            super::print(format_args!(
                "{}  {}  {}  {}\n",
                style::strong(format_args!("{:>4}", turn.number)),
                turn.at.strftime("%Y-%m-%d %H:%M"),
                plain(&turn.prompt),
                style::faint(files.join(", "))
            ))?;
        }
        Ok(())
    }

    fn preview(&self, preview: &RewindPreview) -> Result<(), CommandError> {
        for file in &preview.files {
            let word = match file.effect {
                FileEffect::Changed => "would change",
                FileEffect::Created => "would create",
                FileEffect::Removed => "would remove",
            };
            super::print(format_args!(
                "{word} {} (+{} -{})\n",
                self.of(&file.path),
                file.added,
                file.removed
            ))?;
            if let Some(diff) = &file.diff {
                super::print(format_args!("{}\n", plain(diff)))?;
            }
        }
        self.conflicts(&preview.conflicts)?;
        for command in &preview.not_covered {
            super::print(format_args!("not covered: {}\n", plain(command)))?;
        }
        self.messages("would be", preview.messages_dropped, preview.messages_back)
    }

    fn report(&self, report: &RewindReport) -> Result<(), CommandError> {
        for path in &report.restored {
            super::print(format_args!("restored {}\n", self.of(path)))?;
        }
        self.conflicts(&report.conflicts)?;
        self.messages("are", report.messages_dropped, report.messages_back)
    }

    fn conflicts(&self, conflicts: &[RewindConflict]) -> Result<(), CommandError> {
        for conflict in conflicts {
            let hint = match conflict.can_be_overwritten {
                true => "; --overwrite restores it",
                false => "",
            };
            super::print(format_args!(
                "left alone {}: {}{hint}\n",
                self.of(&conflict.path),
                plain(&conflict.reason)
            ))?;
        }
        Ok(())
    }

    fn messages(&self, are: &str, dropped: usize, back: usize) -> Result<(), CommandError> {
        for (count, what) in [(dropped, "no longer"), (back, "again")] {
            if count > 0 {
                super::print(format_args!(
                    "{count} messages {are} {what} part of the conversation\n"
                ))?;
            }
        }
        Ok(())
    }
}
