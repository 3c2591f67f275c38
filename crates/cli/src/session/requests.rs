//! `@codespar …` in a session, and waiting for work that the user may stop.
//!
//! The same grammar and the same commands as on the command line and in channels; they run in this
//! process and print through the printer, which hands the text to the surface. What takes long is
//! waited for by `attend`, so that the user can stop it and go on typing.

use codespar_protocol::TaskStatus;
use codespar_tasks::Waited;
use codespar_tui::{Choice, UserAction};
use tokio_util::sync::CancellationToken;

use super::SessionDriver;
use crate::{
    args::{Command, OutputFormat},
    commands::{ask, dev, pr, review, task},
    error::CommandError,
    progress::Progress,
    requests::{Understood, cost_line, understand, whoami},
    style,
};

impl SessionDriver {
    /// Text that is not a command goes to the agent, without the mention. Commands count as a turn
    /// for the surface, so it shows that something is under way.
    pub(super) async fn carry_out(&mut self, text: &str) -> Result<(), CommandError> {
        let project_dir = self.project.dir.clone();
        match understand(text, &project_dir, OutputFormat::Text)? {
            Understood::Command(command) => {
                self.view.turn_started();
                let done = self.run_command(*command).await;
                self.view.turn_ended(None);
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

    /// Commands that a request cannot name are refused.
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
                self.view.markdown(reply.text.trim_end());
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

    /// Waits for work that `cancel` stops; Esc and Ctrl-C cancel it. Cancelling does not end the
    /// wait: the work ends by itself and says how it went. Text that is sent meanwhile is kept and
    /// becomes the next prompt.
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
                    Some(action) => self.small_action_beside(&action).await,
                },
            }
        };
        self.turns.end();
        done
    }

    /// A list to choose from; a signal that ends the session is not waited for. `None` also if the
    /// session ends meanwhile.
    pub(super) async fn choose(&mut self, title: &str, choices: Vec<Choice>) -> Option<usize> {
        let view = self.view.clone();
        let cancel = self.signals.token().clone();
        let work = async move {
            tokio::select! {
                chosen = view.pick(title.to_owned(), choices) => chosen,
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
}
