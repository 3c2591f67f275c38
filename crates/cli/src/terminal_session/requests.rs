//! `@codespar …` in a session, and waiting for work that the user may stop.

use codespar_protocol::TaskStatus;
use codespar_tasks::Waited;
use codespar_tui::{Choice, UserAction};
use tokio_util::sync::CancellationToken;

use super::TerminalSession;
use crate::{
    args::{Command, OutputFormat},
    commands::{ask, dev, pr, review, task},
    error::CommandError,
    plain_session::server_question,
    progress::Progress,
    requests::{Understood, cost_line, understand, whoami},
    style,
};
use codespar_protocol::{Answer, QuestionRequest};
use codespar_runtime::{mcp::remember, trust::ProjectFileKind};
use codespar_tui::QuestionReply;

impl TerminalSession {
    /// Text that is not a command goes to the agent, without the mention.
    pub(super) async fn carry_out(&mut self, text: &str) -> Result<(), CommandError> {
        let project_dir = self.project.dir.clone();
        match understand(text, &project_dir, OutputFormat::Text)? {
            Understood::Command(command) => {
                self.tui.turn_started();
                let done = self.run_command(*command).await;
                self.tui.turn_ended();
                done
            }
            Understood::Message(text) => {
                self.say(&text);
                Ok(())
            }
            Understood::Whoami => {
                self.say(&whoami(&project_dir).await?);
                Ok(())
            }
            Understood::SessionCost => {
                self.show_cost();
                Ok(())
            }
            Understood::Cost { id } => {
                let store = &*self.project.store;
                let record = store.task(&task::find(store, &id).await?).await?;
                self.say(&cost_line(&record));
                Ok(())
            }
            Understood::Prompt(text) => {
                let message = codespar_protocol::Message::user(text);
                self.turn(Some(message)).await
            }
        }
    }

    async fn run_command(&mut self, command: Command) -> Result<(), CommandError> {
        let project_dir = self.project.dir.clone();
        let cancel = self.signals.token().child_token();
        let stop = cancel.clone();
        match command {
            Command::Dev(args) => return self.develop(&args).await,
            Command::Review(args) => {
                let work = async move { review::review(&args, &project_dir, &stop).await };
                let reviewed = self.attend(work, &cancel).await?;
                review::show(&reviewed)?;
            }
            Command::Ask(args) => {
                let work = async move { ask::answer(&args, &project_dir, &stop).await };
                let reply = self.attend(work, &cancel).await?;
                self.tui
                    .output(codespar_tui::markdown(reply.text.trim_end()));
                self.usage += reply.usage;
                self.cost += reply.cost;
            }
            Command::Merge(args) => {
                pr::merge_one(&args, &project_dir).await?;
            }
            Command::Pr(args) => {
                pr::run(args, &project_dir).await?;
            }
            Command::Task(args) => {
                task::run(args, project_dir).await?;
            }
            _ => {
                return Err(CommandError::Usage(
                    "this command does not work in a session".to_owned(),
                ));
            }
        }
        Ok(())
    }

    /// Waits for work that `cancel` stops; Esc and Ctrl-C cancel it.
    pub(super) async fn attend<T>(
        &mut self,
        work: impl Future<Output = T>,
        cancel: &CancellationToken,
    ) -> T {
        self.turns.begin(cancel.clone());
        let mut work = std::pin::pin!(work);
        let done = loop {
            tokio::select! {
                done = &mut work => break done,
                action = self.actions.recv() => match action {
                    Some(UserAction::Interrupt) => cancel.cancel(),
                    Some(UserAction::Leave) | None => self.signals.token().cancel(),
                    Some(UserAction::Submit(text) | UserAction::Steer(text)) => {
                        self.steering.push(text);
                    }
                    Some(action) => self.small_action(&action),
                },
                _ = self.resized.recv() => self.tui.resized(),
                _ = self.continued.recv() => self.tui.continued(),
            }
        };
        self.turns.end();
        done
    }

    /// A list to choose from, while the terminal may change its size.
    pub(super) async fn choose(&mut self, title: &str, choices: Vec<Choice>) -> Option<usize> {
        let tui = self.tui.clone();
        let cancel = self.signals.token().clone();
        let work = async move {
            tokio::select! {
                chosen = tui.pick(title.to_owned(), choices) => chosen,
                () = cancel.cancelled() => None,
            }
        };
        let nothing = CancellationToken::new();
        self.attend(work, &nothing).await
    }

    /// A run of the dev agent, followed to its end. Esc stops it; it can be resumed.
    async fn develop(&mut self, args: &dev::DevArgs) -> Result<(), CommandError> {
        let progress = Progress::for_people();
        let project = self.project.clone();
        let started = dev::start(args, &project, &progress).await?;
        let cancel = self.signals.token().child_token();
        let (hub, id, stop) = (project.hub.clone(), started.id, cancel.clone());
        let failed = |error: codespar_tasks::HubError| CommandError::Failed(error.to_string());
        let work = async move {
            match hub.wait(&id, &stop).await.map_err(failed)? {
                Waited::Ended(record) => Ok(*record),
                Waited::GaveUp => hub.stop(&id, "stopped by user").await.map_err(failed),
            }
        };
        let record = self.attend(work, &cancel).await;
        progress.rest();
        let record = record?;
        self.usage += record.usage;
        self.cost += record.cost_usd;
        self.status.cost(&self.cost);
        if record.status != TaskStatus::Completed {
            let why = record.error.unwrap_or_else(|| record.status.to_string());
            let resume = format!("@codespar retry {}", record.task_id);
            let hint = style::faint(format!("Resume with: {resume}"));
            self.say(&format!("{}\n{hint}", style::error(why)));
        }
        Ok(())
    }

    /// Each MCP server that comes with the repository, once; a no holds for this session. `always`
    /// is kept by definition: a server that is changed later is asked about again.
    pub(super) async fn ask_about_servers(&mut self) {
        // What an untrusted project brings is not even offered; the user was told.
        if !self.project.dir.trust.trusts_kind(ProjectFileKind::Servers) {
            return;
        }
        let mcp = self.project.mcp.clone();
        for server in mcp.unapproved() {
            let request = QuestionRequest::Permission(server_question(server.config()));
            let tui = self.tui.clone();
            let nothing = CancellationToken::new();
            let ending = self.signals.token().clone();
            let asked = async move {
                tokio::select! {
                    reply = tui.ask(request, None) => reply,
                    () = ending.cancelled() => QuestionReply::Interrupted,
                }
            };
            let reply = self.attend(asked, &nothing).await;
            if !matches!(
                reply,
                QuestionReply::ForSession | QuestionReply::Answer(Answer::Once | Answer::Always)
            ) {
                continue;
            }
            server.approve();
            server.begin();
            let dir = &self.project.dir;
            if reply == QuestionReply::Answer(Answer::Always)
                && let Err(error) = remember(dir.state(), &dir.root, server.config())
            {
                let message = format!("allowed for this session only: {error}");
                self.say(&style::warning(message));
            }
        }
    }
}
