//! Options that programs pass: those of the Agent SDKs, and scripts written for Claude Code.
//!
//! Whoever runs the command gives them, so they need no trust. What has no meaning here is accepted
//! and named in `--verbose`; what is not declared at all is an error.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use codespar_model::{Effort, ThinkingChoice};
use codespar_runtime::{BuiltInTools, ProjectOptions, SettingSource};

use super::{InputFormat, managed::ManagedSettings};
use crate::{error::CommandError, headless::hook_lines::HookEvents};

const HEADING: &str = "For programs and scripts";

/// What a client of the session protocol, or a script, may ask for.
#[derive(Args, Clone, Default)]
#[command(next_help_heading = HEADING)]
pub(crate) struct ClientArgs {
    /// Where prompts come from: `text`, or `stream-json` for messages and control requests, line by
    /// line, with many turns in one process.
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) input_format: Option<InputFormat>,

    /// Replace the system prompt by this text.
    #[arg(long, value_name = "TEXT", conflicts_with = "system_prompt_file")]
    pub(crate) system_prompt: Option<String>,

    /// The same from a file.
    #[arg(long, value_name = "FILE")]
    pub(crate) system_prompt_file: Option<PathBuf>,

    /// Add the text of this file to the system prompt.
    #[arg(long, value_name = "FILE", conflicts_with = "append_system_prompt")]
    pub(crate) append_system_prompt_file: Option<PathBuf>,

    /// The built-in tools to offer: `default`, a list of names, or nothing at all (`""`).
    #[arg(long, value_name = "NAMES", num_args = 1..)]
    pub(crate) tools: Option<Vec<String>>,

    /// Work as this agent: its prompt, its tools and its model.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// Agents as JSON: `{"reviewer": {"description": "…", "prompt": "…", "tools": ["Read"]}}`.
    #[arg(long, value_name = "JSON")]
    pub(crate) agents: Option<String>,

    /// Who answers what would be asked: `stdio`, the client on standard input.
    #[arg(long, value_name = "NAME", value_parser = ["stdio"])]
    pub(crate) permission_prompt_tool: Option<String>,

    /// Who answers what would be asked: `host`, as --permission-prompt-tool says, or `none`: it is
    /// denied.
    #[arg(long, value_enum, value_name = "WHO")]
    pub(crate) permission_prompts: Option<PermissionPrompts>,

    /// Let a client switch to bypassPermissions later.
    #[arg(long)]
    pub(crate) allow_dangerously_skip_permissions: bool,

    /// Which settings count: a list of user, project and local. Deny and ask rules count always.
    #[arg(long, value_name = "SOURCES")]
    pub(crate) setting_sources: Option<String>,

    /// More settings: a file, or JSON. They win over those of files.
    #[arg(long, value_name = "FILE|JSON")]
    pub(crate) settings: Option<String>,

    /// JSON with further deny rules (`permissions.deny`); other settings in it have no meaning here.
    #[arg(long, value_name = "JSON")]
    pub(crate) managed_settings: Option<String>,

    /// Like --plugin-dir, without the MCP servers of the plugin. May be repeated.
    #[arg(long, value_name = "DIR")]
    pub(crate) plugin_dir_no_mcp: Vec<PathBuf>,

    /// Use only the MCP servers of --mcp-config.
    #[arg(long)]
    pub(crate) strict_mcp_config: bool,

    /// The id of the new session: a UUID that is not in use.
    #[arg(long, value_name = "UUID", conflicts_with = "continue_last")]
    pub(crate) session_id: Option<String>,

    /// Go on in a copy of the resumed session; the original stays as it is.
    #[arg(long)]
    pub(crate) fork_session: bool,

    /// Resume as the session was after this message: the `uuid` of its line.
    #[arg(long, value_name = "UUID", requires = "resume")]
    pub(crate) resume_session_at: Option<String>,

    /// Remove the session when the process ends.
    #[arg(long)]
    pub(crate) no_session_persistence: bool,

    /// Print pieces of answers as they come (`stream_event`, with stream-json output).
    #[arg(long)]
    pub(crate) include_partial_messages: bool,

    /// Print when hooks run, and what they answered (with stream-json output).
    #[arg(long)]
    pub(crate) include_hook_events: bool,

    /// Print each message of standard input when its turn begins (with stream-json on both sides).
    #[arg(long)]
    pub(crate) replay_user_messages: bool,

    /// The model to ask when the first is overloaded.
    #[arg(long, value_name = "MODEL")]
    pub(crate) fallback_model: Option<String>,

    /// How hard the model thinks.
    #[arg(long, value_enum, value_name = "LEVEL")]
    pub(crate) effort: Option<EffortLevel>,

    /// Whether the model thinks before it answers: adaptive, enabled or disabled.
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) thinking: Option<ThinkingMode>,

    /// How many tokens the model may think for; 0 switches thinking off.
    #[arg(long, value_name = "N")]
    pub(crate) max_thinking_tokens: Option<u32>,

    /// Answer with JSON of this schema: `structured_output` of the result.
    #[arg(long, value_name = "SCHEMA")]
    pub(crate) json_schema: Option<String>,

    /// Write a log to standard error; a filter such as `codespar_model=trace` may follow `=`.
    #[arg(long, value_name = "FILTER", num_args = 0..=1, require_equals = true, default_missing_value = "debug")]
    pub(crate) debug: Option<String>,

    /// Write the log to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) debug_file: Option<PathBuf>,

    /// No meaning here; accepted.
    #[arg(long, hide = true, value_name = "NAMES")]
    pub(crate) betas: Option<String>,

    /// No meaning here; accepted.
    #[arg(long, hide = true, value_name = "N")]
    pub(crate) task_budget: Option<String>,

    /// No meaning here; accepted.
    #[arg(long, hide = true, value_name = "MODE")]
    pub(crate) thinking_display: Option<String>,

    /// No meaning here; accepted.
    #[arg(long, hide = true)]
    pub(crate) session_mirror: bool,

    /// No meaning here; accepted.
    #[arg(long, hide = true, value_name = "UUID")]
    pub(crate) resume_drops_turn: Option<String>,

    /// No meaning here; accepted.
    #[arg(long, hide = true, value_name = "DIR")]
    pub(crate) project_config_root: Option<String>,

    /// No meaning here; accepted.
    #[arg(long, hide = true, value_name = "NAME")]
    pub(crate) channels: Vec<String>,

    /// Nothing is done before the client's first line, with this or without it.
    #[arg(long, hide = true)]
    pub(crate) await_initialize: bool,

    /// `initialize` is read for managed settings, with this or without it.
    #[arg(long, hide = true)]
    pub(crate) managed_settings_in_initialize: bool,
}

/// Who answers permission prompts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PermissionPrompts {
    Host,
    #[value(name = "none")]
    Nobody,
}

/// What kind of run options are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunKind {
    /// A client on standard input.
    Client,
    /// One run that prints JSON lines.
    Lines,
    /// One run.
    Headless,
    /// A session with a person.
    Person,
}

/// The words of `--effort`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EffortLevel {
    Low,
    Medium,
    High,
    Xhigh,
    Max,
}

impl From<EffortLevel> for Effort {
    fn from(level: EffortLevel) -> Self {
        match level {
            EffortLevel::Low => Self::Low,
            EffortLevel::Medium => Self::Medium,
            EffortLevel::High => Self::High,
            EffortLevel::Xhigh => Self::ExtraHigh,
            EffortLevel::Max => Self::Max,
        }
    }
}

/// The words of `--thinking`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ThinkingMode {
    Adaptive,
    Enabled,
    Disabled,
}

impl ClientArgs {
    /// What was given and has no meaning here, in words.
    pub(crate) fn without_meaning(&self) -> Vec<String> {
        let given = [
            ("--betas", self.betas.is_some()),
            ("--task-budget", self.task_budget.is_some()),
            ("--thinking-display", self.thinking_display.is_some()),
            ("--session-mirror", self.session_mirror),
            ("--resume-drops-turn", self.resume_drops_turn.is_some()),
            ("--project-config-root", self.project_config_root.is_some()),
            ("--channels", !self.channels.is_empty()),
        ];
        let given = given.into_iter().filter(|(_, is_given)| *is_given);
        given
            .map(|(flag, _)| format!("{flag} has no meaning here and is left out"))
            .collect()
    }

    /// Of which hooks there are lines.
    pub(crate) fn hook_events(&self) -> HookEvents {
        match self.include_hook_events {
            true => HookEvents::All,
            false => HookEvents::SessionStart,
        }
    }

    /// Refuses what a run could not heed: an option that is taken for nothing misleads.
    pub(crate) fn refuse_unheeded(&self, kind: RunKind) -> Result<(), CommandError> {
        let needs_client = [
            (
                "--permission-prompt-tool",
                self.permission_prompt_tool.is_some(),
            ),
            ("--replay-user-messages", self.replay_user_messages),
        ];
        let needs_lines = [
            ("--include-partial-messages", self.include_partial_messages),
            ("--include-hook-events", self.include_hook_events),
        ];
        let needs_headless = [
            ("--json-schema", self.json_schema.is_some()),
            ("--no-session-persistence", self.no_session_persistence),
        ];
        let (by_client, by_lines) = ("--input-format stream-json", "--output-format stream-json");
        let unheeded = match kind {
            RunKind::Client => Vec::new(),
            RunKind::Lines => vec![(&needs_client[..], by_client)],
            RunKind::Headless => vec![(&needs_client[..], by_client), (&needs_lines, by_lines)],
            RunKind::Person => vec![
                (&needs_client[..], by_client),
                (&needs_lines, by_lines),
                (&needs_headless, "-p"),
            ],
        };
        let mut refused = unheeded.into_iter().flat_map(|(flags, needed)| {
            let given = flags.iter().filter(|(_, is_given)| *is_given);
            given.map(move |(flag, _)| (*flag, needed))
        });
        match refused.next() {
            Some((flag, needed)) => Err(CommandError::Usage(format!("{flag} needs {needed}"))),
            None => Ok(()),
        }
    }

    /// Adds what they ask of the project. Files are read now, so that a mistake ends the command
    /// before anything is opened.
    pub(crate) fn apply(&self, options: &mut ProjectOptions) -> Result<(), CommandError> {
        options.system_prompt = match &self.system_prompt_file {
            Some(file) => Some(text_of("--system-prompt-file", file)?),
            None => self.system_prompt.clone(),
        };
        if let Some(file) = &self.append_system_prompt_file {
            options.append_system_prompt = Some(text_of("--append-system-prompt-file", file)?);
        }
        if let Some(names) = &self.tools {
            options.built_in_tools = BuiltInTools::parse(&names.join(","));
        }
        options.agent.clone_from(&self.agent);
        if let Some(text) = &self.agents {
            let agents: serde_json::Value = serde_json::from_str(text)
                .map_err(|error| CommandError::Usage(format!("--agents: {error}")))?;
            options
                .add_agents(&agents)
                .map_err(|error| CommandError::Usage(format!("--agents: {error}")))?;
        }
        if let Some(text) = &self.setting_sources {
            let sources = SettingSource::parse_list(text)
                .map_err(|error| CommandError::Usage(format!("--setting-sources: {error}")))?;
            options.setting_sources = Some(sources);
        }
        options.settings.clone_from(&self.settings);
        if let Some(text) = &self.managed_settings {
            let managed = ManagedSettings::parse(text);
            let managed = managed
                .map_err(|error| CommandError::Usage(format!("--managed-settings: {error}")))?;
            managed.apply(options);
        }
        options
            .plugin_dirs_without_servers
            .clone_from(&self.plugin_dir_no_mcp);
        options.strict_mcp_config = self.strict_mcp_config;
        options.fallback_model.clone_from(&self.fallback_model);
        options.effort = self.effort.map(Effort::from);
        options.thinking = self.wanted_thinking();
        Ok(())
    }

    /// A number says more than a word.
    fn wanted_thinking(&self) -> Option<ThinkingChoice> {
        match (self.max_thinking_tokens, self.thinking) {
            (Some(tokens), _) => Some(ThinkingChoice::of_tokens(tokens)),
            (None, Some(ThinkingMode::Adaptive | ThinkingMode::Enabled)) => {
                Some(ThinkingChoice::Adaptive)
            }
            (None, Some(ThinkingMode::Disabled)) => Some(ThinkingChoice::Disabled),
            (None, None) => None,
        }
    }

    /// An error names the option.
    pub(crate) fn schema(&self) -> Result<Option<serde_json::Value>, CommandError> {
        let Some(text) = &self.json_schema else {
            return Ok(None);
        };
        let schema: serde_json::Value = serde_json::from_str(text)
            .map_err(|error| CommandError::Usage(format!("--json-schema: {error}")))?;
        match schema.is_object() {
            true => Ok(Some(schema)),
            false => Err(CommandError::Usage(
                "--json-schema: expected a JSON object".to_owned(),
            )),
        }
    }
}

fn text_of(flag: &str, file: &std::path::Path) -> Result<String, CommandError> {
    /// A prompt is a page or two; anything larger is something else.
    const MOST: u64 = 1 << 20;
    codespar_files::read_text(file, MOST)
        .map_err(|error| CommandError::Usage(format!("{flag} {}: {error}", file.display())))
}
