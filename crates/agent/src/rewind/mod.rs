//! Going back to an earlier message: files, conversation or both.
//!
//! The two are undone in their own ways. The conversation is a tree that is recorded as a list: a
//! rewind appends an entry that says where it goes on from (`EntryBody::Rewound`), in one
//! transaction. Files are restored one by one from the checkpoints that the tools keep, in the
//! order of time, whatever the conversation did. Files come first: if the process is killed before
//! the entry is written, the same rewind can be made again and does what is left.
//!
//! A rewind is undone by another one: the files that it changed have checkpoints like any other,
//! and the conversation goes on from where it was. Undoing again takes back the rewind before that.
//!
//! What commands and MCP servers did to files is not covered; their names are part of the preview.

mod history;
mod preview;
mod uncovered;

use std::path::PathBuf;

use codespar_protocol::{Entry, EntryBody, Event, Message, SeenFile, Todo, conversation};
use codespar_store::StoreError;
use codespar_tools::{CheckpointError, CheckpointStore, OnConflict, Restore, RestoreOutcome};
use history::{History, Plan};
use serde::Serialize;

use crate::{
    Agent, Transcript,
    transcript::{last_todos, seen_files},
};
pub use history::TurnPoint;
pub use preview::{FileEffect, FilePreview, RewindConflict, RewindPreview};

/// Files that the note to the model names.
const NAMED: usize = 20;

/// What goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RewindScope {
    Code,
    Conversation,
    Both,
}

/// Where to go. Turns are counted from 1, as `turns` lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RewindRequest {
    Before {
        turn: usize,
        scope: RewindScope,
    },
    /// Takes back what one turn did to files. Later turns and the conversation stay.
    OneTurn {
        turn: usize,
    },
    /// To before the last rewind that was not undone.
    Undo,
}

/// What a rewind did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RewindReport {
    /// Files that are what they were then.
    pub restored: Vec<PathBuf>,
    /// Files that were left alone.
    pub conflicts: Vec<RewindConflict>,
    /// Messages that are no longer part of the conversation.
    pub messages_dropped: usize,
    /// Messages that are part of it again.
    pub messages_back: usize,
    /// What the user had typed, where the conversation went back to before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum RewindError {
    #[error("there is no turn {turn}: the conversation has {turns} of them")]
    NoSuchTurn { turn: usize, turns: usize },
    #[error("there is no rewind to undo")]
    NothingToUndo,
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the rewind broke down: {0}")]
    Broken(#[from] tokio::task::JoinError),
}

/// Rewinds a session, with or without an agent on it.
#[derive(Debug, Clone)]
pub struct Rewinder {
    /// `None` where no files were kept.
    pub checkpoints: Option<CheckpointStore>,
    /// Files are named from here.
    pub root: PathBuf,
}

impl Rewinder {
    /// The turns of the conversation, oldest first.
    pub async fn turns(&self, transcript: &Transcript) -> Result<Vec<TurnPoint>, RewindError> {
        Ok(self.history(transcript).await?.turns())
    }

    /// What a rewind would do; nothing is changed.
    pub async fn preview(
        &self,
        transcript: &Transcript,
        request: RewindRequest,
        on_conflict: OnConflict,
    ) -> Result<RewindPreview, RewindError> {
        let history = self.history(transcript).await?;
        let plan = history.plan(request)?;
        let (dropped, back) = history.messages_changed(&plan);
        let mut preview = RewindPreview {
            not_covered: history.uncovered(&plan),
            messages_dropped: dropped,
            messages_back: back,
            ..RewindPreview::default()
        };
        if let Some(store) = self.checkpoints.clone() {
            let root = self.root.clone();
            let look = move || {
                let restore = Restore {
                    store,
                    cause: plan.cause,
                };
                preview.look(&restore, &plan.steps, on_conflict, &root);
                preview
            };
            preview = tokio::task::spawn_blocking(look).await?;
        }
        Ok(preview)
    }

    /// Goes back. The caller must not have a run under way. A future that is dropped half-way is
    /// like a kill: the rewind can be made again or undone.
    pub async fn rewind(
        &self,
        transcript: &mut Transcript,
        request: RewindRequest,
        on_conflict: OnConflict,
    ) -> Result<RewindReport, RewindError> {
        let history = self.history(transcript).await?;
        let plan = history.plan(request)?;
        let (messages_dropped, messages_back) = history.messages_changed(&plan);
        let mut report = self.restore(&plan, on_conflict).await?;
        report.messages_dropped = messages_dropped;
        report.messages_back = messages_back;
        report.prompt = plan.prompt.clone();
        let has_files = !report.restored.is_empty();
        // An undoing that finds nothing left to do is over; one that was refused can be repeated.
        let is_over = plan.undoes.is_some() && report.conflicts.is_empty();
        if plan.to.is_none() && !has_files && !is_over {
            return Ok(report);
        }
        let tells_model = has_files && plan.to.is_none() && transcript.unanswered().is_empty();
        let note = tells_model.then(|| self.note(&report.restored));
        let body = EntryBody::Rewound {
            to: plan.to.unwrap_or(transcript.last_seq()),
            undoes: plan.undoes,
        };
        transcript.append_with(body, note).await?;
        Ok(report)
    }

    async fn history(&self, transcript: &Transcript) -> Result<History, RewindError> {
        let records = match self.checkpoints.clone() {
            Some(store) => tokio::task::spawn_blocking(move || store.records()).await??,
            None => Vec::new(),
        };
        Ok(History {
            entries: transcript.entries().await?,
            records,
        })
    }

    async fn restore(
        &self,
        plan: &Plan,
        on_conflict: OnConflict,
    ) -> Result<RewindReport, RewindError> {
        let mut report = RewindReport::default();
        let Some(store) = self.checkpoints.clone() else {
            return Ok(report);
        };
        let (steps, cause) = (plan.steps.clone(), plan.cause);
        let run = move || -> Result<RewindReport, CheckpointError> {
            let restore = Restore { store, cause };
            for step in &steps {
                match restore.run(step, on_conflict)? {
                    RestoreOutcome::Unneeded => {}
                    RestoreOutcome::Restored => report.restored.push(step.path.clone()),
                    RestoreOutcome::LeftAlone(conflict) => {
                        report
                            .conflicts
                            .push(RewindConflict::new(&step.path, &conflict));
                    }
                }
            }
            Ok(report)
        };
        Ok(tokio::task::spawn_blocking(run).await??)
    }

    /// The conversation stays and the files do not: the model has to know.
    fn note(&self, restored: &[PathBuf]) -> EntryBody {
        let mut names: Vec<String> = restored
            .iter()
            .take(NAMED)
            .map(|path| preview::name_of(path, &self.root))
            .collect();
        if restored.len() > NAMED {
            names.push(format!("{} more", restored.len() - NAMED));
        }
        let text = format!(
            "[The user put files back to an earlier state: {}. Read them again before you rely on \
             them.]",
            names.join(", ")
        );
        EntryBody::User {
            message: Message::user(text),
            synthetic: true,
        }
    }
}

impl Agent {
    /// The turns of the conversation that the user can go back to, oldest first.
    pub async fn turns(&self) -> Result<Vec<TurnPoint>, RewindError> {
        self.rewinder().turns(&self.transcript).await
    }

    /// What a rewind would do; nothing is changed.
    pub async fn preview_rewind(
        &self,
        request: RewindRequest,
        on_conflict: OnConflict,
    ) -> Result<RewindPreview, RewindError> {
        let rewinder = self.rewinder();
        rewinder
            .preview(&self.transcript, request, on_conflict)
            .await
    }

    /// Puts what waits for the agent into the conversation, so that a rewind drops it too.
    pub async fn take_news(&mut self) -> Result<(), RewindError> {
        self.parts.inbox.deliver(&mut self.transcript).await?;
        Ok(())
    }

    /// Goes back. What the agent knows of files and steps is then what the conversation says.
    pub async fn rewind(
        &mut self,
        request: RewindRequest,
        on_conflict: OnConflict,
    ) -> Result<RewindReport, RewindError> {
        let rewinder = self.rewinder();
        let report = rewinder
            .rewind(&mut self.transcript, request, on_conflict)
            .await?;
        let (todos, files) = known(&self.transcript.entries().await?);
        self.parts.context.ledger().replace(&files);
        if todos != self.parts.context.todos() {
            self.parts.context.set_todos(todos.clone());
            self.emit(Event::Todos { todos });
        }
        self.meter.reset();
        self.context_tokens = self.estimate_context();
        Ok(report)
    }

    /// Undoes the last rewind that was not undone.
    pub async fn undo_rewind(
        &mut self,
        on_conflict: OnConflict,
    ) -> Result<RewindReport, RewindError> {
        self.rewind(RewindRequest::Undo, on_conflict).await
    }

    fn rewinder(&self) -> Rewinder {
        let context = &self.parts.context;
        Rewinder {
            checkpoints: context.checkpoints().map(|kept| kept.store().clone()),
            root: context.root().to_path_buf(),
        }
    }
}

fn known(entries: &[Entry]) -> (Vec<Todo>, Vec<SeenFile>) {
    let live = conversation(entries);
    (last_todos(&live), seen_files(&live))
}
