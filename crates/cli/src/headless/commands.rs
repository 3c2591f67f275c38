//! Commands in prompts that no person types at a terminal: those of files, skills, and prompts of MCP
//! servers, as `/name arguments`.
//!
//! A word that has the form of a command and is none is refused: it would be sent to a model as it
//! stands, which costs money and answers something else. A path is text.

use std::{path::Path, sync::Arc};

use codespar_agent::Agent;
use codespar_mcp::McpPrompt;
use codespar_policy::{RuleKind, RuleSet, RuleSource};
use codespar_protocol::{Cost, Message, Outcome, Role, RunResult, SessionId, Usage};
use codespar_runtime::{Project, ProjectCommand, ProjectCommands, PromptPart};
use parking_lot::RwLock;
use tokio_util::sync::CancellationToken;

use crate::{error::CommandError, slash};

/// What a prompt asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PromptKind {
    /// An answer of the model to the text as it is.
    Text,
    /// A command of a file, or a skill.
    File { name: String, arguments: String },
    /// A prompt of an MCP server.
    ServerPrompt { name: String, arguments: String },
    /// A summary in place of older turns.
    Compact,
    /// A new session.
    Clear,
}

/// Understands a prompt. The error says what is wrong with a command that cannot be carried out.
pub(crate) fn read(text: &str, commands: &ProjectCommands) -> Result<PromptKind, String> {
    let Some(line) = text.trim().strip_prefix('/') else {
        return Ok(PromptKind::Text);
    };
    let (word, arguments) = line
        .split_once(char::is_whitespace)
        .map_or((line, ""), |(word, rest)| (word, rest.trim()));
    let named = |arguments: &str| (word.to_owned(), arguments.to_owned());
    match (word, arguments) {
        ("compact", "") => return Ok(PromptKind::Compact),
        ("clear", "") => return Ok(PromptKind::Clear),
        _ => {}
    }
    if commands.find(word).is_some() {
        let (name, arguments) = named(arguments);
        return Ok(PromptKind::File { name, arguments });
    }
    if word.starts_with("mcp__") {
        let (name, arguments) = named(arguments);
        return Ok(PromptKind::ServerPrompt { name, arguments });
    }
    if !has_form(word) || Path::new("/").join(word).exists() {
        return Ok(PromptKind::Text);
    }
    Err(refusal(word, commands))
}

/// Whether the name of a command could be written like this.
fn has_form(word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    word.starts_with(char::is_alphabetic) && word.chars().all(is_part)
}

fn refusal(word: &str, commands: &ProjectCommands) -> String {
    let as_text = "to send it as text, begin with another word";
    if matches!(word, "compact" | "clear") {
        return format!("/{word} takes no arguments; {as_text}");
    }
    if slash::COMMANDS.iter().any(|one| one.name == word) {
        return format!("/{word} works in a session at a terminal; {as_text}");
    }
    let nearest = slash::nearest(word, commands);
    match nearest.filter(|name| commands.find(name).is_some()) {
        Some(nearest) => format!("there is no /{word}; did you mean /{nearest}? {as_text}"),
        None => format!("there is no command /{word}; {as_text}"),
    }
}

/// The names of commands of files, of skills, and of the prompts of servers.
pub(crate) fn names<'a>(
    commands: &'a ProjectCommands,
    prompts: &'a [McpPrompt],
) -> impl Iterator<Item = String> + 'a {
    let prompts = prompts.iter().map(|prompt| prompt.name.clone());
    commands.names().map(str::to_owned).chain(prompts)
}

/// The rules of a command's `allowed-tools`, in force until this is dropped.
pub(crate) struct TurnRules {
    in_force: Arc<RwLock<RuleSet>>,
    source: RuleSource,
}

impl TurnRules {
    /// The text says why they count for nothing, if so.
    pub(crate) fn add(
        project: &Project,
        name: &str,
        command: &ProjectCommand,
    ) -> (Self, Option<String>) {
        let rules = Self {
            in_force: project.rules(),
            source: RuleSource::named(format!("allowed-tools of /{name}")),
        };
        let warning = match command.rules() {
            Ok(allowed) => {
                let mut in_force = rules.in_force.write();
                for rule in allowed {
                    in_force.add(RuleKind::Allow, rule, &rules.source);
                }
                None
            }
            Err(error) => Some(format!(
                "allowed-tools of /{name} count for nothing: {error}"
            )),
        };
        (rules, warning)
    }
}

impl Drop for TurnRules {
    fn drop(&mut self) {
        self.in_force.write().remove(&self.source);
    }
}

/// The text of a command. One in it that is refused ends it: a prompt with a hole in it is not sent.
pub(crate) async fn text_of(
    agent: &mut Agent,
    command: &ProjectCommand,
    arguments: &str,
    cancel: &CancellationToken,
) -> Result<String, String> {
    let mut text = String::new();
    for part in command.parts(arguments) {
        match part {
            PromptPart::Text(part) => text.push_str(&part),
            PromptPart::Command(command) => {
                let output = agent.run_by_rules(&command, cancel).await;
                text.push_str(&output.map_err(|error| error.to_string())?);
            }
        }
    }
    Ok(text)
}

/// The message that a prompt of a server stands for.
pub(crate) async fn server_message(
    prompts: &[McpPrompt],
    name: &str,
    arguments: &str,
    cancel: &CancellationToken,
) -> Result<Message, CommandError> {
    let Some(prompt) = prompts.iter().find(|prompt| prompt.name == name) else {
        let known: Vec<&str> = prompts.iter().map(|one| one.name.as_str()).collect();
        return Err(CommandError::Usage(match known.is_empty() {
            true => format!("there is no /{name}; no connected MCP server has prompts"),
            false => format!("there is no /{name}; there are: /{}", known.join(", /")),
        }));
    };
    let content = prompt.get(arguments, cancel).await;
    Ok(Message {
        role: Role::User,
        content: content.map_err(CommandError::Failed)?,
    })
}

/// Summarises older turns now; what came of it, in words.
pub(crate) async fn compact(agent: &mut Agent, cancel: &CancellationToken) -> (String, Outcome) {
    match agent.compact_now(cancel).await {
        Ok(true) => (
            "the conversation was summarised".to_owned(),
            Outcome::Success,
        ),
        Ok(false) => (
            "the conversation is too short to summarise".to_owned(),
            Outcome::Success,
        ),
        Err(error) => (error.to_string(), Outcome::ErrorDuringExecution),
    }
}

/// The end of a turn that was none of the model.
pub(crate) fn without_answer(session_id: SessionId, text: String, outcome: Outcome) -> RunResult {
    RunResult {
        session_id,
        outcome,
        result: text,
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<PromptKind, String> {
        super::read(text, &ProjectCommands::default())
    }

    #[test]
    fn what_cannot_be_a_command_is_text() {
        for text in [
            "hello /greet",
            "/tmp is full",
            "/etc/hosts has a typo",
            "/",
            "// a comment",
            "/* another */",
            "/2 of the tests fail",
            "/[a-z]+/ matches nothing",
        ] {
            assert_eq!(read(text), Ok(PromptKind::Text), "{text}");
        }
    }

    #[test]
    fn what_looks_like_a_command_and_is_none_is_refused() {
        for (text, expected) in [
            ("/greet Ada", "there is no command /greet"),
            ("/plugin:greet", "there is no command /plugin:greet"),
            ("/help", "at a terminal"),
            ("/clear all", "takes no arguments"),
        ] {
            let refused = read(text).unwrap_err();
            assert!(refused.contains(expected), "{text}: {refused}");
        }
    }

    #[test]
    fn prompts_of_servers_and_our_own_commands_are_understood() {
        assert_eq!(read(" /compact\n"), Ok(PromptKind::Compact));
        assert_eq!(read("/clear"), Ok(PromptKind::Clear));
        let prompt = PromptKind::ServerPrompt {
            name: "mcp__kit__greet".to_owned(),
            arguments: "Ann in Bonn".to_owned(),
        };
        assert_eq!(read("/mcp__kit__greet Ann in Bonn"), Ok(prompt));
    }
}
