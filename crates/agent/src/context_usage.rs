//! What fills the context of an agent, for showing it.
//!
//! The provider counts the whole; what its parts come to is guessed from their sizes. Before the
//! first call the whole is the sum of these guesses. Where the provider counted less than the
//! guesses, they are made smaller alike, so that the parts never exceed the whole.

use std::path::PathBuf;

use crate::{Agent, briefing::files_in};

/// A rule of thumb, where nobody has counted.
const BYTES_PER_TOKEN: u64 = 4;
/// What the names of tools of MCP servers begin with.
const SERVER_TOOL: &str = "mcp__";

/// What the context of an agent is made of, in tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextUsage {
    /// As the provider counted the last call, or a guess before the first.
    pub total: u64,
    /// A guess from its size, instruction files and skills included.
    pub system: u64,
    /// A guess from the size of their descriptions, tools of MCP servers included.
    pub tools: u64,
    /// Instruction files and notes of the system prompt.
    pub files: Vec<FilePart>,
    /// The list of skills in the system prompt.
    pub skills: u64,
    /// Tools of MCP servers.
    pub server_tools: Vec<ToolPart>,
    /// How many messages the conversation has.
    pub messages: usize,
    /// How many tokens fit.
    pub window: u64,
    /// Older turns are summarised from here on.
    pub compact_at: u64,
}

/// A file in the system prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilePart {
    pub path: PathBuf,
    pub tokens: u64,
}

/// The description of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolPart {
    pub name: String,
    pub tokens: u64,
}

impl ContextUsage {
    /// What is left for the conversation.
    pub fn conversation(&self) -> u64 {
        self.total.saturating_sub(self.system + self.tools)
    }
}

impl Agent {
    /// What the context is made of.
    pub fn context_usage(&self) -> ContextUsage {
        let size = |bytes: usize| bytes as u64 / BYTES_PER_TOKEN;
        let specs: Vec<(&str, usize)> = self
            .specs
            .iter()
            .map(|spec| {
                let schema = spec.input_schema.get().len();
                let bytes = spec.name.len() + spec.description.len() + schema;
                (spec.name.as_str(), bytes)
            })
            .collect();
        let estimate = self.estimate_context();
        let system = size(self.system.len());
        let tools = size(specs.iter().map(|(_, bytes)| bytes).sum());
        // An estimate leaves the tools out.
        let total = match self.context_tokens == estimate {
            true => estimate + tools,
            false => self.context_tokens,
        };
        let guessed = estimate + tools;
        let share = |tokens: u64| match guessed > total {
            true => tokens * total / guessed,
            false => tokens,
        };
        let of_servers = specs
            .iter()
            .filter(|(name, _)| name.starts_with(SERVER_TOOL));
        let files = files_in(&self.system).into_iter();
        ContextUsage {
            total,
            system: share(system),
            tools: share(tools),
            files: files
                .map(|(path, bytes)| FilePart {
                    path,
                    tokens: share(size(bytes)),
                })
                .collect(),
            skills: match self.parts.briefing.lists_skills() {
                true => share(size(self.parts.briefing.skills.len())),
                false => 0,
            },
            server_tools: of_servers
                .map(|(name, bytes)| ToolPart {
                    name: (*name).to_owned(),
                    tokens: share(size(*bytes)),
                })
                .collect(),
            messages: self.transcript.messages().len(),
            window: self.parts.choice.context_window,
            compact_at: self.parts.choice.compact_at,
        }
    }
}
