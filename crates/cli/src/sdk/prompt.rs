//! A message of the client: a prompt, or a command of the project, of a server or of ours.

use codespar_mcp::McpPrompt;
use codespar_protocol::{EntryId, Message, Outcome};

use super::{driver::Driver, input::ClientPrompt};
use crate::{
    error::CommandError,
    headless::commands::{self, PromptKind, TurnRules},
};

impl Driver {
    /// A prompt that cannot be sent is reported as the end of its turn, and the session goes on.
    pub(super) async fn prompt(&mut self, mut prompt: ClientPrompt) -> Result<(), CommandError> {
        self.open().await?;
        if prompt.uuid.is_none() && self.parts.args.replay_user_messages {
            prompt.uuid = Some(EntryId::new().to_string());
        }
        if let (Some(uuid), Some(agent)) = (&prompt.uuid, &self.agent) {
            let place = agent.transcript().last_seq();
            self.places.insert(uuid.clone(), place);
        }
        self.replay(&prompt);
        self.answering.clone_from(&prompt.uuid);
        let text = prompt.message.text();
        let asked = match prompt.is_verbatim {
            true => Ok(PromptKind::Text),
            false => commands::read(&text, &self.parts.commands),
        };
        match asked {
            Ok(PromptKind::Text) => self.turn(Some(prompt.message)).await,
            Ok(PromptKind::File { name, arguments }) => self.command(&name, &arguments).await,
            Ok(PromptKind::ServerPrompt { name, arguments }) => {
                self.server_prompt(&name, &arguments).await
            }
            Ok(PromptKind::Compact) => self.compact().await,
            Ok(PromptKind::Clear) => {
                self.leave().await;
                self.open().await?;
                self.end(String::new(), Outcome::Success)
            }
            Err(why) => self.end(why, Outcome::ErrorDuringExecution),
        }
    }

    /// The rules of `allowed-tools` hold until the turn is over, whatever becomes of it.
    async fn command(&mut self, name: &str, arguments: &str) -> Result<(), CommandError> {
        let all = self.parts.commands.clone();
        let Some(command) = all.find(name) else {
            return Ok(());
        };
        let (_rules, warning) = TurnRules::add(&self.parts.project, name, command);
        if let Some(warning) = warning {
            self.parts.client.warn(&warning);
        }
        let cancel = self.signals.token().child_token();
        self.parts.turn.begin(cancel.clone());
        let text = match &mut self.agent {
            Some(agent) => commands::text_of(agent, command, arguments, &cancel).await,
            None => Ok(String::new()),
        };
        self.parts.turn.end();
        let text = match text {
            Ok(text) => text,
            Err(why) => return self.end(why, Outcome::ErrorDuringExecution),
        };
        let Some(model) = command.model.as_deref() else {
            return self.turn(Some(Message::user(text))).await;
        };
        let project = self.parts.project.clone();
        let wanted = project.provider.choice_for(Some(model), &project.settings);
        let usual = self.choice.replace(wanted);
        let done = self.turn(Some(Message::user(text))).await;
        self.choice = Some(usual.unwrap_or_else(|| project.provider.choice.clone()));
        done
    }

    /// What the server answers is the message.
    async fn server_prompt(&mut self, name: &str, arguments: &str) -> Result<(), CommandError> {
        let cancel = self.signals.token().child_token();
        self.parts.turn.begin(cancel.clone());
        let prompts = self.server_prompts();
        let message = commands::server_message(&prompts, name, arguments, &cancel).await;
        self.parts.turn.end();
        match message {
            Ok(message) => self.turn(Some(message)).await,
            Err(error) => self.end(error.to_string(), Outcome::ErrorDuringExecution),
        }
    }

    /// Of all servers that are connected.
    pub(super) fn server_prompts(&self) -> Vec<McpPrompt> {
        let mut prompts = self.parts.project.mcp.prompts();
        prompts.extend(self.added.iter().flat_map(|servers| servers.prompts()));
        prompts
    }

    /// As a turn of its own: clients wait for a result after each message that they send.
    async fn compact(&mut self) -> Result<(), CommandError> {
        let Some(agent) = &mut self.agent else {
            return Ok(());
        };
        let cancel = self.signals.token().child_token();
        self.parts.turn.begin(cancel.clone());
        let (text, outcome) = commands::compact(agent, &cancel).await;
        self.parts.turn.end();
        self.usage = Some(agent.context_usage());
        self.end(text, outcome)
    }

    /// The end of a turn that was none of the model.
    fn end(&mut self, text: String, outcome: Outcome) -> Result<(), CommandError> {
        if let Some(session) = self.session {
            self.result_line(commands::without_answer(session, text, outcome));
        }
        Ok(())
    }
}
