//! What a caller asks of a project, beside its settings.

use std::path::{Path, PathBuf};

use codespar_agent::{AgentDefinition, ProjectInstructions};
use codespar_change::verify::detect as detect_tests;
use codespar_model::{Effort, ThinkingChoice};
use codespar_policy::Mode;
use codespar_protocol::Usd;

use crate::{Plugin, ProjectDir, RuntimeError, agent_json, settings::SettingSource};

/// Options of a project. They win over its settings, except that nothing lifts a deny rule.
#[derive(Debug, Clone, Default)]
pub struct ProjectOptions {
    /// The model: an alias or a provider's id.
    pub model: Option<String>,
    /// The most model calls of one run.
    pub max_turns: Option<u32>,
    /// The most that all conversations of the project in this process may cost together.
    pub max_budget_usd: Option<Usd>,
    /// Allow rules.
    pub allowed_tools: Vec<String>,
    /// Deny rules; a bare name takes the tool away.
    pub disallowed_tools: Vec<String>,
    pub permission_mode: Option<Mode>,
    /// Added to the system prompt.
    pub append_system_prompt: Option<String>,
    /// Other directories that count as the workspace.
    pub add_dirs: Vec<PathBuf>,
    /// Call no model, whatever keys are set.
    pub simulate: bool,
    /// New sessions only direct workers.
    pub is_coordinator: bool,
    /// MCP servers; naming them here allows them.
    pub mcp_config: Vec<ServerText>,
    /// No other MCP servers than those.
    pub strict_mcp_config: bool,
    /// Directories of plugins; naming one here trusts it.
    pub plugin_dirs: Vec<PathBuf>,
    /// The same, without the MCP servers of the plugins.
    pub plugin_dirs_without_servers: Vec<PathBuf>,
    /// In place of our own words about who the agent of a session is.
    pub system_prompt: Option<String>,
    pub built_in_tools: BuiltInTools,
    /// The agent of a session works as this one.
    pub agent: Option<String>,
    /// Agents of the caller; they win over those of files.
    pub agents: Vec<AgentDefinition>,
    /// What of the options is left out, to be told with what is left out of files.
    pub warnings: Vec<String>,
    /// The skills on offer; all when absent.
    pub skills: Option<Vec<String>>,
    /// Which settings files count in full, and whose instruction files, skills, agents, commands
    /// and output styles are used; all when absent.
    pub setting_sources: Option<Vec<SettingSource>>,
    /// Settings of the caller: a file, or JSON.
    pub settings: Option<String>,
    /// Asked when the model is overloaded.
    pub fallback_model: Option<String>,
    pub effort: Option<Effort>,
    pub thinking: Option<ThinkingChoice>,
}

/// MCP servers as a caller names them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerText {
    /// A file like `.mcp.json`.
    File(PathBuf),
    /// What such a file would hold.
    Json(String),
    /// The same from a program, such as an editor: variables are not replaced in it.
    Passed(String),
    /// Of a plugin: what is wrong in it is told, and the rest is used.
    OfPlugin(PluginServers),
}

/// MCP servers of a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginServers {
    /// Where the plugin is: `${CLAUDE_PLUGIN_ROOT}`.
    pub(crate) root: PathBuf,
    /// The file that they are in.
    pub(crate) file: PathBuf,
    /// The part of the file, if it has more.
    pub(crate) text: Option<String>,
}

impl ServerText {
    /// A text that begins like an object is one; anything else is the name of a file.
    pub fn named(text: impl AsRef<str>) -> Self {
        let text = text.as_ref();
        match text.trim_start().starts_with('{') {
            true => Self::Json(text.to_owned()),
            false => Self::File(text.into()),
        }
    }
}

/// Which of the built-in tools are on offer. MCP tools are not among them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum BuiltInTools {
    #[default]
    All,
    Only(Vec<String>),
}

impl BuiltInTools {
    /// `default`, names with commas or spaces between them, or nothing for none.
    pub fn parse(text: &str) -> Self {
        let names = text.split([',', ' ']).map(str::trim);
        let names: Vec<String> = names
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect();
        match names.iter().any(|name| name == "default") {
            true => Self::All,
            false => Self::Only(names),
        }
    }

    /// The names, if not all.
    pub(crate) fn only(&self) -> Option<&[String]> {
        match self {
            Self::All => None,
            Self::Only(names) => Some(names),
        }
    }
}

impl ProjectOptions {
    /// Adds a paragraph to what is added to the system prompt.
    pub fn append_to_prompt(&mut self, text: &str) {
        let appended = self.append_system_prompt.get_or_insert_default();
        if !appended.is_empty() {
            appended.push_str("\n\n");
        }
        appended.push_str(text);
    }

    /// Adds agents from an object of definitions by name. The error says which field is wrong; a
    /// field without a meaning here becomes a warning of the project.
    pub fn add_agents(&mut self, agents: &serde_json::Value) -> Result<(), String> {
        let (agents, warnings) = agent_json::read(agents)?;
        self.agents.extend(agents);
        self.warnings.extend(warnings);
        Ok(())
    }
}

impl ProjectOptions {
    /// Whether the files of this source count.
    pub(crate) fn wants(&self, source: SettingSource) -> bool {
        let wanted = self.setting_sources.as_ref();
        wanted.is_none_or(|wanted| wanted.contains(&source))
    }

    /// Directories of files that are used, of those that [`ProjectDir::config_dirs`] finds.
    pub(crate) fn wanted_dirs(
        &self,
        dir: &ProjectDir,
        sub: &str,
    ) -> impl Iterator<Item = (PathBuf, &'static str)> {
        let dirs = dir.config_dirs(sub).into_iter();
        dirs.filter(|(_, origin)| match *origin {
            "user" => self.wants(SettingSource::User),
            _ => self.wants(SettingSource::Project),
        })
    }

    /// Directories of the user with instruction files.
    pub fn instruction_dirs(&self, dir: &ProjectDir) -> Vec<PathBuf> {
        if !self.wants(SettingSource::User) {
            return Vec::new();
        }
        let mut dirs = vec![dir.state().to_path_buf()];
        dirs.extend(dir.home().map(|home| home.join(".claude")));
        dirs
    }

    /// Which instruction files of the project are used.
    pub fn project_instructions(&self) -> ProjectInstructions {
        ProjectInstructions {
            shared: self.wants(SettingSource::Project),
            local: self.wants(SettingSource::Local),
        }
    }

    /// The plugins that were named.
    pub fn plugins(&self) -> Result<Vec<Plugin>, RuntimeError> {
        let dirs = self.plugin_dirs.iter();
        let whole = dirs.map(|dir| Plugin::read(dir));
        let dirs = self.plugin_dirs_without_servers.iter();
        let others = dirs.map(|dir| Plugin::read(dir).map(Plugin::without_servers));
        whole.chain(others).collect()
    }
}

impl ProjectOptions {
    /// For runs of the dev agent in a project. They edit in a throw-away tree, where edits need no
    /// question, and may run the tests that they are to make pass: those of `verify`, else those
    /// that the project has.
    pub fn for_dev_runs(root: &Path, verify: Option<&str>) -> Self {
        let tests = verify.map(str::to_owned).or_else(|| detect_tests(root));
        let tests = tests.filter(|command| !command.trim().is_empty());
        Self {
            permission_mode: Some(Mode::AcceptEdits),
            allowed_tools: tests
                .map(|command| format!("Bash({command})"))
                .into_iter()
                .collect(),
            ..Self::default()
        }
    }
}
