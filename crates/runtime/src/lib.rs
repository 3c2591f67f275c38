//! Puts a process together. An [`Environment`] is handed in; a [`Runtime`] is one process with its
//! database and scheduler, a [`Project`] one repository with its settings, rules, servers and
//! agents, a [`Session`] one conversation. Every surface is built on these.
//!
//! The order is always the same, and each step can fail before the next has an effect:
//!
//! ```text
//! Environment            values that the binary read: home, state directory, variables, own path
//! ProjectDir::find       the repository around a directory, and whether its files are trusted
//! ProjectConfig::load    settings, rules, provider, agents, servers: read, nothing opened
//! Runtime::with_project  opens the database; the scheduler starts with the first task
//! Project::open_session  a conversation, locked for this process
//! Project::main_agent    the agent of that conversation
//! ```
//!
//! No other crate puts these parts together, so a rule about trust or permissions has one place.
//! Nothing here reads the environment or prints.

mod agent_json;
mod agent_setup;
mod agents;
mod answer_watcher;
mod authority;
mod budgets;
mod chat_agent;
mod command_files;
mod configuration;
mod crash;
mod dev;
mod engine;
mod environment;
mod error;
mod fingerprint;
mod fork;
mod hook_events;
mod hooks;
mod installed_plugins;
mod main_agent;
pub mod mcp;
mod network;
mod operations;
mod options;
mod output_style;
mod place;
mod plugin;
mod project;
mod project_dir;
mod provider;
mod repositories;
mod runners;
mod runtime;
mod session;
mod session_dirs;
mod settings;
mod tools;
pub mod trust;

pub use agent_setup::Surface;
pub use answer_watcher::{AnswerPiece, AnswerWatcher};
pub use chat_agent::{ChatCommands, ChatReply, ChatTurn, FileAccess};
pub use codespar_agent::EventBus;
pub use codespar_forge::{AppFacts, Forge, GitHubAccess, GitHubApp, HookDelivery, TokenRenewal};
pub use codespar_policy::printable;
pub use codespar_pulls::OWN_BRANCHES;
pub use command_files::{ProjectCommand, ProjectCommands, PromptPart};
pub use configuration::{
    definitions, definitions_in, definitions_with_plugins, extra_dirs, plugins, project_skills,
    rules, sandbox,
};
pub use crash::crash_point;
pub use dev::{
    CheckedOut, DevSettings, ForgeName, OneCall, RepositoryLinker, VerifySettings, github_access,
    github_api, github_origin, github_proxy, github_server, one_call, requester, simulated_call,
    which,
};
pub use engine::{UnusableEngine, engine_page, engine_workers, unusable_engine};
pub use environment::Environment;
pub use error::RuntimeError;
pub use hook_events::{HookEnd, HookObserver, HookOutcome, RunningHook};
pub use network::{NetworkReport, report as network_report};
pub use operations::{
    AskOnce, DevRequest, DevResumption, FeaturePlan, PlanRequest, PlanStep, Pulls, ReviewRequest,
    ask_once, check_simulation, has_branch, locate_files, plan_feature,
};
pub use options::{BuiltInTools, ProjectOptions, ServerText};
pub use output_style::OutputStyle;
pub use plugin::Plugin;
pub use project::{ClientSide, Project, ProjectConfig};
pub use project_dir::ProjectDir;
pub use provider::{
    Provider, choose as choose_provider, choose_with_retry, is_model, key_variable, provider_in_use,
};
pub use repositories::shared_repository;
pub use runtime::{ProcessRole, Runtime, tasks_disabled};
pub use session::{Session, WhichSession};
pub use session_dirs::{SessionDirs, find_session};
pub use settings::{
    ChannelAccess, ChannelSettings, HookSettings, ProjectHookPlace, RememberedRules,
    ServerSettings, SettingSource, Settings, SignInKind, SignInSettings, SignedIn,
    TerminalSettings, local_file, remember_rules,
};
