//! `/rewind`: back to before an earlier message, with a preview first.

use codespar_agent::{OnConflict, RewindPreview, RewindRequest, RewindScope, TurnPoint};
use codespar_tui::Choice;

use super::SessionDriver;
use crate::{
    commands::{RewindTexts, rewind_failed},
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

impl SessionDriver {
    pub(super) async fn rewind(&mut self, wish: RewindWish) -> Result<(), CommandError> {
        let request = match wish {
            RewindWish::Undo => Some(RewindRequest::Undo),
            RewindWish::Choose => self.choose_rewind().await?,
        };
        let Some(request) = request else {
            return Ok(());
        };
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

    /// Shows what would be done. `None` if it is not to be done.
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
            ("leave everything as it is", "", None),
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
