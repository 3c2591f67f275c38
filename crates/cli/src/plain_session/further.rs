//! Commands of the plain session besides those of every day.

use codespar_agent::Agent;
use codespar_protocol::Message;

use super::Conversation;
use crate::{
    error::CommandError,
    slash::{self, Typed},
};

impl Conversation {
    pub(super) async fn further_command(&mut self, typed: Typed) -> Result<(), CommandError> {
        self.screen.go_on();
        let project = self.project.clone();
        let text = match typed {
            Typed::Init => return self.turn(Some(Message::user(slash::INIT_PROMPT))).await,
            Typed::Review(None) => {
                return self.turn(Some(Message::user(slash::REVIEW_PROMPT))).await;
            }
            Typed::Review(Some(which)) => {
                return self.carry_out(&format!("review {which}")).await;
            }
            Typed::Project(name, arguments) => {
                let prompt = self.project_commands.find(&name);
                let Some(prompt) = prompt.map(|one| one.prompt(&arguments)) else {
                    return Ok(());
                };
                return self.turn(Some(Message::user(prompt))).await;
            }
            Typed::Shell(command) => return self.shell(&command).await,
            Typed::Agents => return slash::run_line(&project, &["agents", "list"]).await,
            Typed::Sessions => {
                return slash::run_line(&project, &["session", "list", "--here"]).await;
            }
            Typed::Mcp => return slash::run_line(&project, &["mcp", "list"]).await,
            Typed::Doctor => return slash::run_line(&project, &["doctor"]).await,
            Typed::Mode(name) => slash::mode(&project, name.as_deref())?,
            Typed::Model(name) => self.model(name)?,
            Typed::Permissions => slash::permissions(&project),
            Typed::Memory => slash::memory(&project),
            Typed::Note(note) => slash::memory_note(&project.dir.root, &note)?,
            Typed::Diff => slash::diff(&project).await?,
            Typed::Context => match &self.agent {
                Some(agent) => slash::context(&agent.context_usage()),
                None => "nothing was said yet".to_owned(),
            },
            Typed::Export(file) => match self.agent.as_ref().map(Agent::session) {
                Some(id) => slash::export(&project, id, file.as_deref()).await?,
                None => "there is no conversation to export".to_owned(),
            },
            Typed::Copy(_) => "/copy needs the session without --plain".to_owned(),
            _ => return Ok(()),
        };
        self.screen.say(&text);
        Ok(())
    }

    fn model(&mut self, name: Option<String>) -> Result<String, CommandError> {
        let provider = &self.project.provider;
        let Some(name) = name else {
            return Ok(provider.choice.id.clone());
        };
        (provider.model_gate())(&name).map_err(CommandError::Usage)?;
        let choice = provider.choice_for(Some(&name), &self.project.settings);
        let Some(agent) = &mut self.agent else {
            return Ok("send a prompt first, or start with --model".to_owned());
        };
        let text = format!("{} answers from now on", choice.id);
        agent.set_choice(choice);
        Ok(text)
    }

    /// Ctrl-C stops it.
    async fn shell(&mut self, command: &str) -> Result<(), CommandError> {
        self.open().await?;
        let Some(mut agent) = self.agent.take() else {
            return Ok(());
        };
        let cancel = self.signals.token().child_token();
        let (command, stop) = (command.to_owned(), cancel.clone());
        let work = async move {
            let done = agent.run_for_user(&command, &stop).await;
            Ok((agent, done))
        };
        let (agent, done) = self.attend(work, &cancel).await?;
        self.agent = Some(agent);
        done.map(|_| ())
            .map_err(|error| CommandError::Failed(error.to_string()))
    }
}
