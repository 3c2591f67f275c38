//! `codespar session rewind`.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::Args;
use codespar_agent::{
    CheckpointStore, FileEffect, FilePreview, OnConflict, RewindConflict, RewindError,
    RewindPreview, RewindReport, RewindRequest, RewindScope, Rewinder, Transcript, TurnPoint,
};
use codespar_protocol::counted;
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
    let texts = RewindTexts(rewinder.root.clone());
    match args.request() {
        None => {
            let turns = rewinder.turns(&transcript).await.map_err(failed)?;
            match args.json {
                true => super::print_json(&json!({ "turns": turns }))?,
                false => say(&texts.turns(&turns))?,
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
                false => say(&texts.preview(&preview))?,
            }
        }
        Some(request) => {
            let report = rewinder.rewind(&mut transcript, request, on_conflict).await;
            let report = report.map_err(failed)?;
            match args.json {
                true => super::print_json(&json!({ "report": report }))?,
                false => say(&texts.report(&report))?,
            }
        }
    }
    Ok(())
}

fn say(text: &str) -> Result<(), CommandError> {
    match text.is_empty() {
        true => super::print(format_args!("nothing changes\n")),
        false => super::print(format_args!("{text}\n")),
    }
}

pub(crate) fn failed(error: RewindError) -> CommandError {
    match error {
        RewindError::Store(error) => CommandError::Store(error),
        RewindError::NoSuchTurn { .. } | RewindError::NothingToUndo => {
            CommandError::Usage(error.to_string())
        }
        other => CommandError::Failed(other.to_string()),
    }
}

/// What is said of a rewind. Files are named from the directory of the session.
pub(crate) struct RewindTexts(pub(crate) PathBuf);

impl RewindTexts {
    fn of(&self, path: &Path) -> String {
        let name = path.strip_prefix(&self.0).unwrap_or(path);
        plain(&name.display().to_string()).to_string()
    }

    fn turns(&self, turns: &[TurnPoint]) -> String {
        if turns.is_empty() {
            return "nothing was said in this session".to_owned();
        }
        let lines = turns.iter().map(|turn| {
            format!(
                "{}  {}  {}  {}",
                style::strong(format_args!("{:>4}", turn.number)),
                turn.at.strftime("%Y-%m-%d %H:%M"),
                plain(&turn.prompt),
                style::faint(self.files(turn))
            )
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// The files that a turn changed.
    pub(crate) fn files(&self, turn: &TurnPoint) -> String {
        let files = turn.files.iter().map(|path| self.of(path));
        files.collect::<Vec<_>>().join(", ")
    }

    /// One line of what would become of a file.
    pub(crate) fn file(&self, file: &FilePreview) -> String {
        let word = match file.effect {
            FileEffect::Changed => "would change",
            FileEffect::Created => "would create",
            FileEffect::Removed => "would remove",
        };
        let name = self.of(&file.path);
        format!("{word} {name} (+{} -{})", file.added, file.removed)
    }

    /// Everything but the files that would change.
    pub(crate) fn rest(&self, preview: &RewindPreview) -> Vec<String> {
        let mut lines = self.conflicts(&preview.conflicts);
        let commands = preview.not_covered.iter();
        lines.extend(commands.map(|command| format!("not covered: {}", plain(command))));
        let (dropped, back) = (preview.messages_dropped, preview.messages_back);
        lines.extend(messages("would be", dropped, back));
        lines
    }

    fn preview(&self, preview: &RewindPreview) -> String {
        let mut lines = Vec::new();
        for file in &preview.files {
            lines.push(self.file(file));
            lines.extend(file.diff.iter().map(|diff| plain(diff).into_owned()));
        }
        lines.extend(self.rest(preview));
        lines.join("\n")
    }

    pub(crate) fn report(&self, report: &RewindReport) -> String {
        let restored = report.restored.iter();
        let mut lines: Vec<String> = restored
            .map(|path| format!("restored {}", self.of(path)))
            .collect();
        lines.extend(self.conflicts(&report.conflicts));
        lines.extend(messages(
            "are",
            report.messages_dropped,
            report.messages_back,
        ));
        lines.join("\n")
    }

    fn conflicts(&self, conflicts: &[RewindConflict]) -> Vec<String> {
        let told = conflicts.iter().map(|conflict| {
            let hint = match conflict.can_be_overwritten {
                true => "; it can be overwritten",
                false => "",
            };
            let name = self.of(&conflict.path);
            format!("left alone {name}: {}{hint}", plain(&conflict.reason))
        });
        told.collect()
    }
}

fn messages(are: &str, dropped: usize, back: usize) -> Vec<String> {
    let counts = [(dropped, "no longer"), (back, "again")];
    let told = counts.into_iter().filter(|(count, _)| *count > 0);
    told.map(|(count, what)| {
        format!(
            "{} {are} {what} part of the conversation",
            counted(count, "message")
        )
    })
    .collect()
}
