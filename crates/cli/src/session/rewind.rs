//! `/rewind`: back to before an earlier message, with a preview first.
//!
//! Three questions at most: where to, what goes back, and whether the preview is right. Tasks that
//! were started since then are stopped before the preview is made, so that no file changes between
//! the preview and the rewind by their hand. Each step can be left without a change.

use codespar_agent::{OnConflict, RewindPreview, RewindRequest, RewindScope, TurnPoint};
use codespar_protocol::{TaskRecord, counted};
use codespar_store::TaskFilter;
use codespar_tui::Choice;

use super::SessionDriver;
use crate::{
    commands::{RewindTexts, rewind_failed, task_text},
    error::CommandError,
    printer::plain,
    slash::RewindWish,
};

/// What can go back, in the words of the list.
const SCOPES: [(&str, &str); 4] = [
    ("files and conversation", "everything since"),
    ("conversation", "files stay as they are"),
    ("files", "the conversation stays as it is"),
    ("files of this turn alone", "later turns stay"),
];

const LEAVE: &str = "leave everything as it is";

impl SessionDriver {
    /// The prompt of the turn that is taken back is put before the user, who mostly wants to change
    /// it.
    pub(super) async fn rewind(&mut self, wish: RewindWish) -> Result<(), CommandError> {
        let request = match wish {
            RewindWish::Undo => Some(RewindRequest::Undo),
            RewindWish::Choose => self.choose_rewind().await?,
        };
        let Some(request) = request else {
            return Ok(());
        };
        let tasks = self.running_since(request).await?;
        if !tasks.is_empty() && !self.stop_for_rewind(request, &tasks).await? {
            self.notice("nothing was changed");
            return Ok(());
        }
        let Some(on_conflict) = self.confirm_rewind(request).await? else {
            self.notice("nothing was changed");
            return Ok(());
        };
        let Some(agent) = &mut self.agent else {
            return Ok(());
        };
        let report = agent.rewind(request, on_conflict).await;
        let report = report.map_err(rewind_failed)?;
        self.status.context(&agent.context_usage());
        let texts = RewindTexts(self.project.dir.root.clone());
        self.say(&texts.report(&report));
        self.notice("/rewind undo takes it back");
        if let Some(prompt) = report.prompt {
            self.view.suggest(&prompt);
        }
        Ok(())
    }

    /// The newest turn comes first: it is the one that is meant most often.
    async fn choose_rewind(&mut self) -> Result<Option<RewindRequest>, CommandError> {
        let turns = match &self.agent {
            Some(agent) => agent.turns().await.map_err(rewind_failed)?,
            None => Vec::new(),
        };
        if turns.is_empty() {
            self.notice("nothing was said yet");
            return Ok(None);
        }
        let texts = RewindTexts(self.project.dir.root.clone());
        let choice = |turn: &TurnPoint| Choice {
            label: format!("{}  {}", turn.number, plain(&turn.prompt)),
            detail: format!("{} {}", turn.at.strftime("%H:%M"), texts.files(turn)),
        };
        let choices = turns.iter().rev().map(choice).collect();
        let Some(place) = self.choose("Go back to before", choices).await else {
            return Ok(None);
        };
        let turn = turns[turns.len() - 1 - place].number;
        let scopes = SCOPES.iter().map(|(label, detail)| Choice {
            label: (*label).to_owned(),
            detail: (*detail).to_owned(),
        });
        let before = |scope| RewindRequest::Before { turn, scope };
        let chosen = self.choose("What goes back", scopes.collect()).await;
        Ok(chosen.map(|place| match place {
            0 => before(RewindScope::Both),
            1 => before(RewindScope::Conversation),
            2 => before(RewindScope::Code),
            _ => RewindRequest::OneTurn { turn },
        }))
    }

    /// Tasks that were started by what goes back and are not over: they would go on changing files,
    /// and tell a conversation of their end that does not know of them.
    async fn running_since(&self, request: RewindRequest) -> Result<Vec<TaskRecord>, CommandError> {
        let Some(agent) = &self.agent else {
            return Ok(Vec::new());
        };
        let turns = agent.turns().await.map_err(rewind_failed)?;
        let at = |number: usize| {
            let found = turns.iter().find(|turn| turn.number == number);
            found.map(|turn| turn.at)
        };
        let (since, until) = match request {
            RewindRequest::Before { turn, .. } => (at(turn), None),
            RewindRequest::OneTurn { turn } => (at(turn), at(turn + 1)),
            RewindRequest::Undo => (None, None),
        };
        let filter = TaskFilter {
            tree: Some(agent.session()),
            ..TaskFilter::default()
        };
        let mut tasks = self.project.store.tasks(filter).await?;
        tasks.retain(|task| {
            let is_since = since.is_none_or(|since| task.created_at >= since);
            let is_before = until.is_none_or(|until| task.created_at < until);
            is_since && is_before && !task.status.is_final()
        });
        Ok(tasks)
    }

    /// Stops them if the user agrees. Whether all are stopped.
    async fn stop_for_rewind(
        &mut self,
        request: RewindRequest,
        tasks: &[TaskRecord],
    ) -> Result<bool, CommandError> {
        let lines: Vec<String> = tasks.iter().map(task_text::line).collect();
        self.say(&lines.join("\n"));
        let count = counted(tasks.len(), "task");
        let choices = [
            format!("stop {count}, then look at what goes back"),
            LEAVE.to_owned(),
        ];
        let choices = choices.map(|label| Choice {
            label,
            detail: String::new(),
        });
        let title = format!("Going back ends what was started since: {count} not over");
        if self.choose(&title, choices.to_vec()).await != Some(0) {
            return Ok(false);
        }
        for task in tasks {
            let stopped = self
                .project
                .hub
                .stop(&task.task_id, "stopped by /rewind")
                .await;
            let stopped = stopped.map_err(|error| CommandError::Failed(error.to_string()))?;
            if !stopped.status.is_final() {
                let text = format!("{} does not stop; try again", task.task_id);
                return Err(CommandError::Failed(text));
            }
        }
        // Their ends belong to what goes back.
        let drops_conversation = !matches!(
            request,
            RewindRequest::OneTurn { .. }
                | RewindRequest::Before {
                    scope: RewindScope::Code,
                    ..
                }
        );
        if drops_conversation && let Some(agent) = &mut self.agent {
            agent.take_news().await.map_err(rewind_failed)?;
        }
        Ok(true)
    }

    /// Shows what would be done. `None` if it is not to be done. Files that were changed by
    /// something else since are left alone unless the user chooses otherwise; only where there are
    /// such files is that offered.
    async fn confirm_rewind(
        &mut self,
        request: RewindRequest,
    ) -> Result<Option<OnConflict>, CommandError> {
        let Some(agent) = &self.agent else {
            self.notice("nothing was said yet");
            return Ok(None);
        };
        let preview = agent.preview_rewind(request, OnConflict::LeaveAlone).await;
        let preview = preview.map_err(rewind_failed)?;
        self.show_preview(&preview);
        let mut choices = vec![
            ("go back", "", Some(OnConflict::LeaveAlone)),
            (LEAVE, "", None),
        ];
        if preview.conflicts.iter().any(|it| it.can_be_overwritten) {
            let detail = "what was changed by hand or by a command is lost";
            choices.push((
                "go back, and overwrite those files too",
                detail,
                Some(OnConflict::Overwrite),
            ));
        }
        let shown = choices.iter().map(|(label, detail, _)| Choice {
            label: (*label).to_owned(),
            detail: (*detail).to_owned(),
        });
        let chosen = self.choose("Rewind", shown.collect()).await;
        Ok(chosen.and_then(|place| choices[place].2))
    }

    fn show_preview(&self, preview: &RewindPreview) {
        let texts = RewindTexts(self.project.dir.root.clone());
        for file in &preview.files {
            self.say(&texts.file(file));
            if let Some(diff) = &file.diff {
                self.view.diff(&self.project.redactor.redact(diff));
            }
        }
        let rest = texts.rest(preview);
        if !rest.is_empty() {
            self.say(&rest.join("\n"));
        }
    }
}
