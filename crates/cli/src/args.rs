//! The command line. Doc comments here are the help texts.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use codespar_policy::Mode;
use codespar_protocol::Usd;
use codespar_runtime::{ProjectOptions, WhichSession};

use crate::{acp, commands};

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
    /// during the run.
    #[arg(long, value_enum, default_value_t = OutputFormat::Text, requires = "print", value_name = "FORMAT")]
    pub(crate) output_format: OutputFormat,

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
    /// bypassPermissions (only deny rules hold).
    #[arg(long, value_name = "MODE", value_parser = mode)]
    pub(crate) permission_mode: Option<Mode>,

    /// The same as --permission-mode bypassPermissions.
    #[arg(long, conflicts_with = "permission_mode")]
    pub(crate) dangerously_skip_permissions: bool,

    /// Add this text to the system prompt.
    #[arg(long, value_name = "TEXT")]
    pub(crate) append_system_prompt: Option<String>,

    /// Another directory that the agent may work in. May be repeated.
    #[arg(long, value_name = "DIR")]
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

    /// A file of MCP servers, like .mcp.json; naming it here allows them. May be repeated.
    #[arg(long, value_name = "FILE")]
    pub(crate) mcp_config: Vec<PathBuf>,

    /// A plugin: a directory with agents, commands, skills, hooks or MCP servers. Naming it here
    /// trusts it. May be repeated.
    #[arg(long, value_name = "DIR")]
    pub(crate) plugin_dir: Vec<PathBuf>,

    /// Work in this directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
}

impl SessionArgs {
    /// What they ask of the project.
    pub(crate) fn project_options(&self) -> ProjectOptions {
        let bypass = self
            .dangerously_skip_permissions
            .then_some(Mode::BypassPermissions);
        ProjectOptions {
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
            mcp_config: self.mcp_config.clone(),
            mcp_servers: None,
            plugin_dirs: self.plugin_dir.clone(),
        }
    }

    /// Which session they name.
    pub(crate) fn which_session(&self) -> WhichSession {
        match &self.resume {
            Some(text) => WhichSession::Id(text.clone()),
            None if self.continue_last => WhichSession::Last,
            None => WhichSession::New,
        }
    }
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
    Serve(commands::serve::ServeArgs),
    Token(commands::token::TokenCommand),
    Agents(commands::agents::AgentsCommand),
    Hooks(commands::hooks::HooksCommand),
    Mcp(commands::mcp::McpCommand),
    Acp(acp::AcpArgs),
    Apply(commands::apply::ApplyArgs),
    Trust(commands::trust::TrustCommand),
    Doctor(commands::doctor::DoctorArgs),
    Gc(commands::gc::GcArgs),
    Demo(commands::demo::DemoArgs),
    Completions(commands::completions::CompletionsArgs),
    Man(commands::man::ManArgs),
}

pub(crate) fn mode(text: &str) -> Result<Mode, String> {
    text.parse().map_err(|error| format!("{error}"))
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
