//! A message of the client: a prompt, or a command of the project or of ours.
//!
//! Of the commands of a session only those work here that are a prompt (those of the project and
//! the user), `/compact` and `/clear`. Any other text that begins with a slash goes to the model as
//! it is: paths begin with one too.

use codespar_policy::{RuleKind, RuleSource};
use codespar_protocol::{Cost, EntryId, Message, Outcome, RunResult, Usage};
use codespar_runtime::{ProjectCommand, PromptPart};

use super::{driver::Driver, input::ClientPrompt};
use crate::{
    error::CommandError,
    slash::{self, Typed},
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
        let typed = match prompt.is_verbatim || !text.trim_start().starts_with('/') {
            true => Typed::Nothing,
            false => slash::read(&text, &self.parts.commands),
        };
        match typed {
            Typed::Project(name, arguments) => self.command(&name, &arguments).await,
            Typed::Compact => self.compact().await,
            Typed::Clear => {
                self.leave().await;
                self.open().await?;
                self.end("", Outcome::Success)
            }
            _ => self.turn(Some(prompt.message)).await,
        }
    }

    /// The rules of `allowed-tools` hold until the turn is over, whatever becomes of it.
    async fn command(&mut self, name: &str, arguments: &str) -> Result<(), CommandError> {
        let commands = self.parts.commands.clone();
        let Some(command) = commands.find(name) else {
            return Ok(());
        };
        let source = RuleSource::named(format!("allowed-tools of /{name}"));
        match command.rules() {
            Ok(rules) => {
                let in_force = self.parts.project.rules();
                let mut in_force = in_force.write();
                for rule in rules {
                    in_force.add(RuleKind::Allow, rule, &source);
                }
            }
            Err(error) => {
                let text = format!("allowed-tools of /{name} count for nothing: {error}");
                self.parts.client.warn(&text);
            }
        }
        let done = match self.text_of(command, arguments).await {
            Ok(text) => {
                let usual = self.choice.clone();
                if command.model.is_some() {
                    let project = &self.parts.project;
                    let wanted = command.model.as_deref();
                    self.choice = Some(project.provider.choice_for(wanted, &project.settings));
                }
                let done = self.turn(Some(Message::user(text))).await;
                if command.model.is_some() {
                    let project = &self.parts.project;
                    self.choice = Some(usual.unwrap_or_else(|| project.provider.choice.clone()));
                }
                done
            }
            Err(why) => self.end(&why, Outcome::ErrorDuringExecution),
        };
        self.parts.project.rules().write().remove(&source);
        done
    }

    /// A command in it that is refused ends it: a prompt with a hole in it is not sent.
    async fn text_of(
        &mut self,
        command: &ProjectCommand,
        arguments: &str,
    ) -> Result<String, String> {
        let cancel = self.signals.token().child_token();
        self.parts.turn.begin(cancel.clone());
        let mut text = String::new();
        for part in command.parts(arguments) {
            match (part, &mut self.agent) {
                (PromptPart::Text(part), _) => text.push_str(&part),
                (PromptPart::Command(command), Some(agent)) => {
                    let output = agent.run_by_rules(&command, &cancel).await;
                    text.push_str(&output.map_err(|error| error.to_string())?);
                }
                (PromptPart::Command(_), None) => {}
            }
        }
        self.parts.turn.end();
        Ok(text)
    }

    /// As a turn of its own: clients wait for a result after each message that they send.
    async fn compact(&mut self) -> Result<(), CommandError> {
        let Some(agent) = &mut self.agent else {
            return Ok(());
        };
        let cancel = self.signals.token().child_token();
        self.parts.turn.begin(cancel.clone());
        let done = agent.compact_now(&cancel).await;
        self.parts.turn.end();
        self.usage = Some(agent.context_usage());
        match done {
            Ok(true) => self.end("the conversation was summarised", Outcome::Success),
            Ok(false) => self.end(
                "the conversation is too short to summarise",
                Outcome::Success,
            ),
            Err(error) => self.end(&error.to_string(), Outcome::ErrorDuringExecution),
        }
    }

    /// The end of a turn that was none of the model.
    fn end(&mut self, text: &str, outcome: Outcome) -> Result<(), CommandError> {
        let Some(session_id) = self.session else {
            return Ok(());
        };
        self.result_line(RunResult {
            session_id,
            outcome,
            result: text.to_owned(),
            interrupted: false,
            limit: None,
            stop_reason: None,
            num_turns: 0,
            tool_uses: 0,
            duration_ms: 0,
            duration_api_ms: 0,
            usage: Usage::default(),
            cost: Cost::default(),
            by_model: Vec::new(),
            permission_denials: Vec::new(),
        });
        Ok(())
    }
}
