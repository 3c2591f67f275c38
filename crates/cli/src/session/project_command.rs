//! A command of the project or the user: its prompt, with its model and its rules for one turn.
//!
//! Its text may contain the output of commands and the content of files, which are collected before
//! anything is sent: the model gets one prompt, whole, or none.

use codespar_agent::NamedBy;
use codespar_policy::{RuleKind, RuleSource};
use codespar_protocol::NoticeLevel;
use codespar_runtime::{ProjectCommand, PromptPart};

use super::SessionDriver;
use crate::error::CommandError;

impl SessionDriver {
    /// The rules of `allowed-tools` hold until the turn is over, whatever becomes of it.
    pub(super) async fn project_command(
        &mut self,
        name: &str,
        arguments: &str,
    ) -> Result<(), CommandError> {
        let commands = self.project_commands.clone();
        let Some(command) = commands.find(name) else {
            return Ok(());
        };
        let source = RuleSource::named(format!("allowed-tools of /{name}"));
        match command.rules() {
            Ok(rules) => {
                let in_force = self.project.rules();
                let mut in_force = in_force.write();
                for rule in rules {
                    in_force.add(RuleKind::Allow, rule, &source);
                }
            }
            Err(error) => {
                let text = format!("allowed-tools of /{name} count for nothing: {error}");
                self.view.notice(NoticeLevel::Warning, text);
            }
        }
        let done = self.prompt_of(command, arguments).await;
        self.project.rules().write().remove(&source);
        done
    }

    async fn prompt_of(
        &mut self,
        command: &ProjectCommand,
        arguments: &str,
    ) -> Result<(), CommandError> {
        self.open().await?;
        let prompt = self.text_of(command.parts(arguments)).await?;
        let usual = self.choice.clone();
        if command.model.is_some() {
            self.choose_model(command.model.as_deref());
        }
        let done = self.prompt(prompt, NamedBy::File).await;
        if command.model.is_some() {
            self.choose_model(usual.as_deref());
        }
        done
    }

    /// A command that is refused or interrupted ends it: a prompt with a hole in it is not sent.
    async fn text_of(&mut self, parts: Vec<PromptPart>) -> Result<String, CommandError> {
        let mut prompt = String::new();
        for part in parts {
            match part {
                PromptPart::Text(text) => prompt.push_str(&text),
                PromptPart::Command(command) => prompt.push_str(&self.output_of(command).await?),
            }
        }
        Ok(prompt)
    }

    async fn output_of(&mut self, command: String) -> Result<String, CommandError> {
        let Some(mut agent) = self.agent.take() else {
            return Ok(String::new());
        };
        let cancel = self.signals.token().child_token();
        self.view.turn_started();
        let stop = cancel.clone();
        let run = async move {
            let done = agent.run_by_rules(&command, &stop).await;
            (agent, done)
        };
        let (agent, done) = self.attend(run, &cancel).await;
        self.agent = Some(agent);
        self.view.turn_ended(None);
        done.map_err(|error| CommandError::Failed(error.to_string()))
    }

    /// The one of the settings without a name.
    fn choose_model(&mut self, name: Option<&str>) {
        let project = &self.project;
        let choice = project.provider.choice_for(name, &project.settings);
        if let Some(agent) = &mut self.agent {
            agent.set_choice(choice);
        }
    }
}
