//! The command line. Doc comments here are the help texts.

mod client;
mod managed;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use codespar_policy::Mode;
use codespar_protocol::Usd;
use codespar_runtime::{ProjectOptions, ServerText, WhichSession};

use self::client::RunKind;
pub(crate) use self::{
    client::{ClientArgs, PermissionPrompts},
    managed::ManagedSettings,
};
use crate::{acp, commands, error::CommandError};

/// A coding agent that people can hand work to and trust.
///
/// Without a command: an interactive session on a terminal, or one headless run with -p.
#[derive(Parser)]
#[command(
    name = "codespar",
    version,
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  codespar                                   start a session in this directory
  codespar -p \"why does test_login fail?\"    one answer, for scripts
  git diff | codespar -p \"review this\" --output-format json
  codespar -p \"fix the lint errors\" --allowedTools \"Edit,Bash(cargo clippy *)\" --max-turns 30
  codespar -p \"go on\" --continue             resume the last session of this directory

Environment: ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN, ANTHROPIC_BASE_URL; OPENAI_API_KEY,
OPENAI_BASE_URL; CODESPAR_HOME (state directory, default ~/.codespar). `codespar doctor` shows
the configuration."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    /// Answer once and exit (headless). The prompt comes from here, from the
    /// arguments after the options, or from standard input; if there is a prompt, standard input is
    /// appended to it.
    #[arg(short, long, value_name = "PROMPT", num_args = 0..=1, default_missing_value = "")]
    pub(crate) print: Option<String>,

    /// The prompt (with -p), or what an interactive session starts with.
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Vec<String>,

    /// What a headless run prints: the final text, one JSON object, or JSON lines
    /// during the run. Naming a format makes the run headless.
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) output_format: Option<OutputFormat>,

    /// A line-based session: for screen readers, simple terminals and recordings. Also used where
    /// TERM is `dumb`.
    #[arg(long, conflicts_with = "print")]
    pub(crate) plain: bool,

    /// Show what happens (tools, retries, notices) on standard error in text output.
    #[arg(long)]
    pub(crate) verbose: bool,

    /// Trust the files of this project (settings, MCP servers, agents, workflows) as they are
    /// now, for this run; `codespar trust add` trusts them permanently.
    #[arg(long, global = true)]
    pub(crate) trust: bool,

    #[command(flatten)]
    pub(crate) session: SessionArgs,
}

impl Cli {
    /// Whether nobody is at a terminal: one run, or a client on standard input.
    pub(crate) fn is_headless(&self) -> bool {
        let client = &self.session.client;
        self.print.is_some() || self.output_format.is_some() || client.input_format.is_some()
    }

    /// Refuses options that this kind of run could not heed.
    pub(crate) fn refuse_unheeded(&self) -> Result<(), CommandError> {
        let kind = match self.output_format {
            _ if self.has_client() => RunKind::Client,
            Some(OutputFormat::StreamJson) => RunKind::Lines,
            _ if self.is_headless() => RunKind::Headless,
            _ => RunKind::Person,
        };
        self.session.client.refuse_unheeded(kind)
    }

    /// Whether a client sends messages and control requests on standard input.
    pub(crate) fn has_client(&self) -> bool {
        self.session.client.input_format == Some(InputFormat::StreamJson)
    }
}

/// Options of a session, headless or interactive.
#[derive(Args, Clone)]
pub(crate) struct SessionArgs {
    /// The model: an alias (haiku, sonnet, opus) or a provider's id.
    #[arg(long, value_name = "MODEL", env = "CODESPAR_MODEL")]
    pub(crate) model: Option<String>,

    /// Call no model, whatever keys are set: the answer says what would have been asked.
    #[arg(long)]
    pub(crate) simulate: bool,

    /// Stop after this many model calls.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_turns: Option<u32>,

    /// Stop before spending more than this many US dollars.
    #[arg(long, value_name = "USD", value_parser = dollars)]
    pub(crate) max_budget_usd: Option<Usd>,

    /// Allow these tools without asking: `"Bash(git log *),Read"`. May be repeated.
    #[arg(long = "allowedTools", visible_alias = "allowed-tools", value_name = "RULES", num_args = 1..)]
    pub(crate) allowed_tools: Vec<String>,

    /// Forbid these tools, whatever else allows them. A bare name removes the tool.
    #[arg(long = "disallowedTools", visible_alias = "disallowed-tools", value_name = "RULES", num_args = 1..)]
    pub(crate) disallowed_tools: Vec<String>,

    /// default, acceptEdits, plan (read-only), dontAsk (what would be asked is denied) or
    /// bypassPermissions (only deny rules hold); `manual` is default, `auto` is acceptEdits.
    #[arg(long, value_name = "MODE", value_parser = mode)]
    pub(crate) permission_mode: Option<Mode>,

    /// The same as --permission-mode bypassPermissions.
    #[arg(long, conflicts_with = "permission_mode")]
    pub(crate) dangerously_skip_permissions: bool,

    /// Add this text to the system prompt.
    #[arg(long, value_name = "TEXT")]
    pub(crate) append_system_prompt: Option<String>,

    /// Other directories that the agent may work in. May be repeated.
    #[arg(long, value_name = "DIR", num_args = 1..)]
    pub(crate) add_dir: Vec<PathBuf>,

    /// Resume a session by its id or a unique prefix of it. Without a prompt an interrupted run
    /// continues where it stopped.
    #[arg(long, short, value_name = "ID", conflicts_with = "continue_last")]
    pub(crate) resume: Option<String>,

    /// Resume the last session of this directory.
    #[arg(long = "continue", short = 'c')]
    pub(crate) continue_last: bool,

    /// Coordinator mode: only delegate; workers do the work in the background.
    #[arg(long)]
    pub(crate) coordinator: bool,

    /// MCP servers: a file like .mcp.json, or JSON; naming them here allows them. May be repeated.
    #[arg(long, value_name = "FILE|JSON", num_args = 1..)]
    pub(crate) mcp_config: Vec<String>,

    /// A plugin: a directory with agents, commands, skills, hooks or MCP servers. Naming it here
    /// trusts it. May be repeated.
    #[arg(long, value_name = "DIR")]
    pub(crate) plugin_dir: Vec<PathBuf>,

    /// Work in this directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) client: ClientArgs,
}

impl SessionArgs {
    /// What they ask of the project. A mistake in a file or JSON that they name is an error.
    pub(crate) fn project_options(&self) -> Result<ProjectOptions, CommandError> {
        self.check_lists()?;
        let bypass = self
            .dangerously_skip_permissions
            .then_some(Mode::BypassPermissions);
        let mut options = ProjectOptions {
            model: self.model.clone(),
            max_turns: self.max_turns,
            simulate: self.simulate,
            max_budget_usd: self.max_budget_usd,
            allowed_tools: self.allowed_tools.clone(),
            disallowed_tools: self.disallowed_tools.clone(),
            permission_mode: bypass.or(self.permission_mode),
            append_system_prompt: self.append_system_prompt.clone(),
            add_dirs: self.add_dir.clone(),
            is_coordinator: self.coordinator,
            mcp_config: self.mcp_config.iter().map(ServerText::named).collect(),
            plugin_dirs: self.plugin_dir.clone(),
            ..ProjectOptions::default()
        };
        self.client.apply(&mut options)?;
        Ok(options)
    }

    /// A prompt after an option that takes several values is one of them for the parser.
    fn check_lists(&self) -> Result<(), CommandError> {
        let missing = |option: &str, what: &str, value: &dyn std::fmt::Display| {
            CommandError::Usage(format!(
                "{option} {value}: there is no such {what}; {option} takes every value after it: a \
                 prompt goes before the option, or after `--`"
            ))
        };
        if let Some(dir) = self.add_dir.iter().find(|dir| !dir.is_dir()) {
            return Err(missing("--add-dir", "directory", &dir.display()));
        }
        for text in &self.mcp_config {
            if let ServerText::File(file) = ServerText::named(text)
                && !file.exists()
            {
                return Err(missing("--mcp-config", "file", &file.display()));
            }
        }
        Ok(())
    }

    /// Which session they name.
    pub(crate) fn which_session(&self) -> Result<WhichSession, CommandError> {
        let new = match &self.client.session_id {
            Some(text) => WhichSession::NewWith(parsed("--session-id", text)?),
            None => WhichSession::New,
        };
        let named = match &self.resume {
            Some(text) => WhichSession::Id(text.clone()),
            None if self.continue_last => WhichSession::Last,
            None if self.client.fork_session => {
                return Err(CommandError::Usage(
                    "--fork-session needs --resume or --continue".to_owned(),
                ));
            }
            None => return Ok(new),
        };
        let at = self.client.resume_session_at.as_deref();
        let at = at.map(|text| parsed("--resume-session-at", text));
        let at = at.transpose()?;
        if self.client.fork_session {
            let id = match new {
                WhichSession::NewWith(id) => Some(id),
                _ => None,
            };
            let from = Box::new(named);
            return Ok(WhichSession::Fork { from, at, id });
        }
        if self.client.session_id.is_some() {
            return Err(CommandError::Usage(
                "--session-id names a new session: leave it out, or add --fork-session".to_owned(),
            ));
        }
        Ok(match at {
            Some(at) => WhichSession::At {
                from: Box::new(named),
                at,
            },
            None => named,
        })
    }
}

fn parsed<T: std::str::FromStr>(flag: &str, text: &str) -> Result<T, CommandError>
where
    T::Err: std::fmt::Display,
{
    text.parse()
        .map_err(|error| CommandError::Usage(format!("{flag}: {error}")))
}

/// Where prompts come from.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormat {
    /// The arguments, or all of standard input.
    Text,
    /// Messages and control requests, line by line.
    StreamJson,
}

/// What a headless run prints.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// The final text.
    Text,
    /// One JSON object at the end.
    Json,
    /// One JSON object per line, during the run.
    StreamJson,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    Dev(commands::dev::DevArgs),
    Locate(commands::locate::LocateArgs),
    Pr(commands::pr::PrCommand),
    Review(commands::review::ReviewArgs),
    Merge(commands::pr::MergeArgs),
    Ask(commands::ask::AskArgs),
    Chat(commands::chat::ChatArgs),
    Channels(commands::channels::ChannelsCommand),
    Audit(commands::audit::AuditCommand),
    Session(commands::session::SessionCommand),
    Task(commands::task::TaskCommand),
    Worker(commands::worker::WorkerArgs),
    Fleet(commands::fleet::FleetCommand),
    Serve(commands::serve::ServeArgs),
    Token(commands::token::TokenCommand),
    Agents(commands::agents::AgentsCommand),
    Skills(commands::skills::SkillsCommand),
    Hooks(commands::hooks::HooksCommand),
    Mcp(commands::mcp::McpCommand),
    Acp(acp::AcpArgs),
    Apply(commands::apply::ApplyArgs),
    Trust(commands::trust::TrustCommand),
    Auth(commands::auth::AuthCommand),
    Doctor(commands::doctor::DoctorArgs),
    Gc(commands::gc::GcArgs),
    Migrate(commands::migrate::MigrateArgs),
    Demo(commands::demo::DemoArgs),
    Completions(commands::completions::CompletionsArgs),
    Man(commands::man::ManArgs),
}

/// Also by the names that other programs have: what would be asked one by one, and what is judged
/// without asking. Neither is looser here than there.
pub(crate) fn mode(text: &str) -> Result<Mode, String> {
    match text {
        "manual" => Ok(Mode::Default),
        "auto" => Ok(Mode::AcceptEdits),
        _ => text.parse().map_err(|error| format!("{error}")),
    }
}

/// A leading `$` is accepted. Zero is refused: it would be a run that cannot do anything.
pub(crate) fn dollars(text: &str) -> Result<Usd, String> {
    text.trim_start_matches('$')
        .parse()
        .ok()
        .and_then(Usd::from_dollars)
        .filter(|usd| *usd > Usd::ZERO)
        .ok_or_else(|| "expected an amount of dollars above zero, such as 0.50".to_owned())
}
