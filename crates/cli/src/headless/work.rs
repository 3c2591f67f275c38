//! What one headless run does: answer a prompt, carry out a command, or go on where it stopped.

use codespar_agent::{Agent, ModelChoice, NamedBy};
use codespar_protocol::{Event, Message, NoticeLevel, Outcome};
use codespar_runtime::{Project, ProjectCommand, ProjectCommands, mcp};
use tokio_util::sync::CancellationToken;

use super::{
    commands::{self, PromptKind, TurnRules},
    output::Printer,
    structured::StructuredEnd,
};
use crate::error::CommandError;

/// What a prompt turned out to ask for, before anything of it is done.
pub(super) enum RunWork {
    /// Go on with the session as it is.
    Resume,
    Prompt(String),
    /// Messages of an MCP server.
    ServerPrompt(Message),
    Command {
        name: String,
        command: ProjectCommand,
        arguments: String,
    },
    Compact,
}

/// What is left to do for the agent.
pub(super) enum Prepared {
    /// A turn with this message, while these rules are in force.
    Turn {
        message: Option<Message>,
        rules: Option<TurnRules>,
    },
    /// Nothing.
    Over(StructuredEnd),
}

impl Prepared {
    fn turn(message: Option<Message>) -> Self {
        Self::Turn {
            message,
            rules: None,
        }
    }
}

/// What a run has besides its agent.
pub(super) struct WorkParts<'a> {
    pub(super) project: &'a Project,
    pub(super) printer: &'a Printer,
    pub(super) cancel: &'a CancellationToken,
}

impl RunWork {
    /// A command that there is not is a mistake of the caller. Servers are waited for if one of them
    /// has the prompt.
    pub(super) async fn of(
        prompt: Option<String>,
        project: &Project,
        commands: &ProjectCommands,
        cancel: &CancellationToken,
    ) -> Result<Self, CommandError> {
        let Some(text) = prompt else {
            return Ok(Self::Resume);
        };
        let asked = commands::read(&text, commands).map_err(CommandError::Usage)?;
        match asked {
            PromptKind::Text => Ok(Self::Prompt(text)),
            PromptKind::Compact => Ok(Self::Compact),
            PromptKind::Clear => Err(CommandError::Usage(
                "/clear begins a new session, which a run does anyway without --resume and \
                 --continue"
                    .to_owned(),
            )),
            PromptKind::ServerPrompt { name, arguments } => {
                settled(project, cancel).await;
                let prompts = project.mcp.prompts();
                let message = commands::server_message(&prompts, &name, &arguments, cancel);
                message.await.map(Self::ServerPrompt)
            }
            PromptKind::File { name, arguments } => match commands.find(&name) {
                Some(command) => Ok(Self::Command {
                    command: command.clone(),
                    name,
                    arguments,
                }),
                None => Ok(Self::Prompt(text)),
            },
        }
    }

    /// The model that it wants instead of that of the session.
    pub(super) fn choice(&self, project: &Project) -> Option<ModelChoice> {
        let Self::Command { command, .. } = self else {
            return None;
        };
        let model = command.model.as_deref()?;
        Some(project.provider.choice_for(Some(model), &project.settings))
    }

    /// Everything but the turn of the agent.
    pub(super) async fn prepare(self, agent: &mut Agent, parts: &WorkParts<'_>) -> Prepared {
        match self {
            Self::Resume => Prepared::turn(None),
            Self::ServerPrompt(message) => Prepared::turn(Some(message)),
            Self::Prompt(text) => {
                let message = parts.attached(agent, text, NamedBy::User).await;
                Prepared::turn(Some(message))
            }
            Self::Command {
                name,
                command,
                arguments,
            } => {
                let (rules, warning) = TurnRules::add(parts.project, &name, &command);
                if let Some(warning) = warning {
                    parts.warn(warning);
                }
                let text = commands::text_of(agent, &command, &arguments, parts.cancel).await;
                match text {
                    Ok(text) => {
                        let message = parts.attached(agent, text, NamedBy::File).await;
                        Prepared::Turn {
                            message: Some(message),
                            rules: Some(rules),
                        }
                    }
                    Err(why) => {
                        Prepared::Over(parts.end(agent, why, Outcome::ErrorDuringExecution))
                    }
                }
            }
            Self::Compact => {
                let (text, outcome) = commands::compact(agent, parts.cancel).await;
                Prepared::Over(parts.end(agent, text, outcome))
            }
        }
    }
}

impl WorkParts<'_> {
    fn end(&self, agent: &Agent, text: String, outcome: Outcome) -> StructuredEnd {
        let is_interrupted = outcome != Outcome::Success && self.cancel.is_cancelled();
        let mut result = commands::without_answer(agent.session(), text, outcome);
        result.interrupted = is_interrupted;
        StructuredEnd {
            result,
            output: None,
        }
    }

    fn warn(&self, text: String) {
        self.printer.event(&Event::Notice {
            level: NoticeLevel::Warning,
            text,
        });
    }

    /// The message with the resources of MCP servers that it mentions.
    async fn attached(&self, agent: &mut Agent, text: String, named_by: NamedBy) -> Message {
        let resources = mcp::mentioned_resources(&text, &self.project.mcp);
        let mut message = Message::user(text);
        for (reader, uri) in resources {
            let read = agent.read_resource_for_user(&reader, &uri, named_by, self.cancel);
            match read.await {
                Ok(blocks) => message.content.extend(blocks),
                Err(error) => self.warn(format!("{uri} was not attached: {error}")),
            }
        }
        message
    }
}

/// Returns when each server is connected or has failed. With none there is nothing to wait for.
pub(super) async fn settled(project: &Project, cancel: &CancellationToken) {
    tokio::select! {
        () = project.mcp.settled() => {}
        () = cancel.cancelled() => {}
    }
}
