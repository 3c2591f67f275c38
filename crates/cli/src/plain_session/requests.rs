//! `@codespar …` in a session: commands, not prompts.
//!
//! Runs of the dev agent belong to this session's project, so that their questions come to its
//! prompt. The other commands are those of the command line.

use codespar_protocol::{Message, TaskStatus};
use codespar_tasks::Waited;
use tokio_util::sync::CancellationToken;

use super::Conversation;
use crate::{
    args::{Command, OutputFormat},
    commands::{ask, dev, pr, review, task},
    error::CommandError,
    progress::Progress,
    requests::{Understood, cost_line, understand, whoami},
    style,
};

impl Conversation {
    /// Text that is not a command goes to the agent, without the mention.
    pub(super) async fn carry_out(&mut self, text: &str) -> Result<(), CommandError> {
        let project_dir = self.project.dir.clone();
        match understand(text, &project_dir, OutputFormat::Text)? {
            Understood::Command(command) => {
                self.screen.go_on();
                self.run_command(*command).await
            }
            Understood::Message(text) => {
                self.screen.say(&text);
                Ok(())
            }
            Understood::Whoami => {
                self.screen.say(&whoami(&project_dir).await?);
                Ok(())
            }
            Understood::SessionCost => {
                self.show_cost();
                Ok(())
            }
            Understood::Cost { id } => {
                let store = &*self.project.store;
                let record = store.task(&task::find(store, &id).await?).await?;
                self.screen.say(&cost_line(&record));
                Ok(())
            }
            Understood::Prompt(text) => self.turn(Some(Message::user(text))).await,
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
                self.screen.say(reply.text.trim_end());
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

    /// Waits for work that `cancel` stops; Ctrl-C cancels it.
    pub(super) async fn attend<T>(
        &mut self,
        work: impl Future<Output = Result<T, CommandError>>,
        cancel: &CancellationToken,
    ) -> Result<T, CommandError> {
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                Some(asked) = self.questions.recv() => self.put(asked, cancel).await,
                _ = self.interrupt.recv() => cancel.cancel(),
            }
        }
    }

    /// A run of the dev agent, followed to its end. Ctrl-C stops it; it can be resumed.
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
        match record.status {
            TaskStatus::Completed => Ok(()),
            _ => {
                let why = record.error.unwrap_or_else(|| record.status.to_string());
                let resume = format!("@codespar retry {}", record.task_id);
                let hint = style::faint(format!("Resume with: {resume}"));
                self.screen.say(&format!("{}\n{hint}", style::error(why)));
                Ok(())
            }
        }
    }
}
