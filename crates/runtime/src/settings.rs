//! Settings files: read, checked and merged, with errors that name file and line.

mod channels;
mod foreign;
mod hooks;
mod project;
#[cfg(test)]
mod random_tests;
mod remember;
mod rules;
mod sandbox;
mod server;
mod signed_in;
mod source;
mod terminal;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use codespar_files::OpenError;
use codespar_model::{Effort, ThinkingChoice};
use codespar_policy::{
    Mode, RuleKind, RuleSet, RuleSource,
    hooks::{HookOrigin, HookSource},
};
use codespar_tasks::QUESTION_TIME_LIMIT;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    dev::{DevSettings, ForgeName, VerifySettings},
    error::RuntimeError,
    options::ProjectOptions,
    project_dir::ProjectDir,
    trust::{MAX_SETTINGS_BYTES, ProjectFile, ProjectFileKind},
};

pub use self::channels::{ChannelAccess, ChannelSettings};
pub use self::hooks::{HookSettings, ProjectHookPlace};
pub use self::remember::{RememberedRules, local_file, remember_rules};
pub use self::server::{ServerSettings, SignInKind, SignInSettings};
pub use self::signed_in::SignedIn;
pub use self::source::SettingSource;
pub use self::terminal::TerminalSettings;
use self::{rules::Source, sandbox::SandboxSettings};

/// What all settings files together say. The fields are the keys of docs/settings.md.
#[derive(Debug, Default)]
#[allow(missing_docs)]
pub struct Settings {
    pub rules: RuleSet,
    pub mode: Option<Mode>,
    pub extra_dirs: Vec<PathBuf>,
    pub model: Option<String>,
    pub provider: Option<ProviderName>,
    pub max_output_tokens: Option<u32>,
    pub effort: Option<Effort>,
    /// Not a key: the command line alone has it.
    pub thinking: Option<ThinkingChoice>,
    pub compact_at: Option<u64>,
    pub env: BTreeMap<String, String>,
    pub sandbox: SandboxSettings,
    pub cleanup_period_days: Option<u32>,
    pub max_agents: Option<u32>,
    pub max_shells: Option<u32>,
    pub max_tokens: Option<u64>,
    pub max_wall_seconds: Option<u64>,
    /// How long a question of a background agent waits for an answer.
    pub question_timeout_seconds: Option<u64>,
    pub disable_background_tasks: Option<bool>,
    pub mcp: McpSettings,
    pub dev: DevSettings,
    pub verify: VerifySettings,
    pub forge: Option<ForgeName>,
    pub terminal: TerminalSettings,
    pub channels: ChannelSettings,
    pub server: ServerSettings,
    pub hooks: HookSettings,
    pub output_style: Option<String>,
    /// Plugins of another tool by `NAME@MARKETPLACE`, and whether they are used.
    pub enabled_plugins: BTreeMap<String, bool>,
    /// The files that were there.
    pub files: Vec<PathBuf>,
    /// Rules that were left out, and why.
    pub warnings: Vec<String>,
}

/// MCP servers of the user, which servers of projects may start, and how long they may take.
#[derive(Debug, Default)]
pub struct McpSettings {
    pub servers: BTreeMap<String, Box<RawValue>>,
    pub enabled: Vec<String>,
    pub enable_all: bool,
    pub timeout_ms: Option<u64>,
    pub connect_timeout_ms: Option<u64>,
}

/// Which provider, when several could answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProviderName {
    Anthropic,
    Openai,
    Simulated,
}

/// How hard the model should think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EffortName {
    Low,
    Medium,
    High,
    Xhigh,
    Max,
}

impl From<EffortName> for Effort {
    fn from(name: EffortName) -> Self {
        match name {
            EffortName::Low => Self::Low,
            EffortName::Medium => Self::Medium,
            EffortName::High => Self::High,
            EffortName::Xhigh => Self::ExtraHigh,
            EffortName::Max => Self::Max,
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct File<'a> {
    #[serde(rename = "$schema")]
    _schema: Option<serde::de::IgnoredAny>,
    #[serde(borrow)]
    permissions: Permissions<'a>,
    model: Option<String>,
    provider: Option<ProviderName>,
    max_output_tokens: Option<u32>,
    effort: Option<EffortName>,
    compact_at: Option<u64>,
    env: BTreeMap<String, String>,
    sandbox: SandboxSettings,
    cleanup_period_days: Option<u32>,
    max_agents: Option<u32>,
    max_shells: Option<u32>,
    max_tokens: Option<u64>,
    max_wall_seconds: Option<u64>,
    question_timeout_seconds: Option<u64>,
    #[serde(alias = "DISABLE_BACKGROUND_TASKS")]
    disable_background_tasks: Option<bool>,
    mcp_servers: BTreeMap<String, Box<RawValue>>,
    enabled_mcp_servers: Vec<String>,
    enable_all_project_mcp_servers: Option<bool>,
    mcp_timeout_ms: Option<u64>,
    mcp_connect_timeout_ms: Option<u64>,
    dev: DevSettings,
    verify: VerifySettings,
    forge: Option<ForgeName>,
    terminal: TerminalSettings,
    channels: ChannelSettings,
    server: ServerSettings,
    #[serde(borrow)]
    hooks: Option<&'a RawValue>,
    output_style: Option<String>,
    disable_all_hooks: Option<bool>,
    project_hooks: Option<ProjectHookPlace>,
}

/// Rules are kept as they are written until their place in the file is known.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Permissions<'a> {
    #[serde(borrow)]
    allow: Vec<&'a RawValue>,
    #[serde(borrow)]
    ask: Vec<&'a RawValue>,
    #[serde(borrow)]
    deny: Vec<&'a RawValue>,
    default_mode: Option<Mode>,
    additional_directories: Vec<PathBuf>,
}

/// Who wrote a file decides what it may grant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Author {
    /// The user, outside of any repository.
    UserDirs,
    /// The user or a project, for another tool.
    Foreign,
    /// Whoever wrote the repository, and the user trusts it.
    TrustedProject,
    /// Whoever wrote the repository.
    Project,
}

impl Settings {
    /// How long one run of an agent may take.
    pub fn max_wall(&self) -> Option<std::time::Duration> {
        self.max_wall_seconds.map(std::time::Duration::from_secs)
    }

    /// How long a question waits for an answer before it counts as answered with no.
    pub fn question_time_limit(&self) -> std::time::Duration {
        self.question_timeout_seconds
            .map_or(QUESTION_TIME_LIMIT, std::time::Duration::from_secs)
    }

    /// Reads `~/.codespar`, `.claude` and `.codespar` settings, the later ones winning. Files of
    /// the project grant something only if they are trusted.
    pub fn load(project_dir: &ProjectDir) -> Result<Self, RuntimeError> {
        Self::load_for(project_dir, &ProjectOptions::default())
    }

    fn add_project_file(
        &mut self,
        file: &ProjectFile,
        is_wanted: bool,
        project_dir: &ProjectDir,
    ) -> Result<(), RuntimeError> {
        if !matches!(
            file.kind,
            ProjectFileKind::Settings | ProjectFileKind::Foreign
        ) {
            return Ok(());
        }
        let text = file
            .text
            .as_ref()
            .map_err(|error| RuntimeError::Usage(format!("{}: {error}", file.path.display())))?;
        match (file.kind, is_wanted && project_dir.trust.trusts(file)) {
            (ProjectFileKind::Foreign, true) => {
                self.add_foreign(&file.path, text, Grants::TakenButDirectories, project_dir)
            }
            (ProjectFileKind::Foreign, false) => {
                self.add_foreign(&file.path, text, Grants::Ignored, project_dir)
            }
            (_, true) => self.add(&file.path, text, Author::TrustedProject, project_dir),
            (_, false) => self.add(&file.path, text, Author::Project, project_dir),
        }
    }

    fn add(
        &mut self,
        path: &Path,
        text: &str,
        author: Author,
        project_dir: &ProjectDir,
    ) -> Result<(), RuntimeError> {
        let text = text.trim_start_matches('\u{feff}');
        let Some(file) = parse::<File<'_>>(path, text)? else {
            return Ok(());
        };
        let file = match author {
            Author::Project => file.without_grants(),
            Author::TrustedProject => {
                file.refuse_widening(path)?;
                file
            }
            Author::UserDirs | Author::Foreign => file,
        };
        let source = Source { path, text, author };
        self.add_permissions(&file.permissions, &source, project_dir)?;
        self.mode = file.permissions.default_mode.or(self.mode);
        self.model = file.model.or(self.model.take());
        self.provider = file.provider.or(self.provider);
        self.max_output_tokens = file.max_output_tokens.or(self.max_output_tokens);
        self.effort = file.effort.map(Effort::from).or(self.effort);
        self.compact_at = file.compact_at.or(self.compact_at);
        self.env.extend(file.env);
        let placed = |path: &PathBuf| expand(path, project_dir.home(), &project_dir.root);
        self.sandbox.add(file.sandbox, placed);
        if let Some(raw) = file.hooks {
            let source = hook_source(path, author, project_dir);
            self.hooks.add(raw, &source, &mut self.warnings)?;
        }
        // The state directory, the terminal, the channels and the server are the user's.
        if author == Author::UserDirs {
            self.hooks
                .choose(file.project_hooks, file.disable_all_hooks);
            self.channels.add(file.channels);
            self.server.add(file.server);
            self.terminal.add(file.terminal);
            self.cleanup_period_days = file.cleanup_period_days.or(self.cleanup_period_days);
        }
        self.output_style = file.output_style.or(self.output_style.take());
        self.max_agents = file.max_agents.or(self.max_agents);
        self.max_shells = file.max_shells.or(self.max_shells);
        self.max_tokens = limit(self.max_tokens, file.max_tokens, author);
        self.max_wall_seconds = limit(self.max_wall_seconds, file.max_wall_seconds, author);
        self.question_timeout_seconds = limit(
            self.question_timeout_seconds,
            file.question_timeout_seconds,
            author,
        );
        self.disable_background_tasks = file
            .disable_background_tasks
            .or(self.disable_background_tasks);
        self.dev.add(file.dev, author != Author::UserDirs);
        self.verify.add(file.verify);
        self.forge = file.forge.or(self.forge);
        self.mcp.servers.extend(file.mcp_servers);
        self.mcp.enabled.extend(file.enabled_mcp_servers);
        self.mcp.enable_all |= file.enable_all_project_mcp_servers == Some(true);
        self.mcp.timeout_ms = file.mcp_timeout_ms.or(self.mcp.timeout_ms);
        self.mcp.connect_timeout_ms = file.mcp_connect_timeout_ms.or(self.mcp.connect_timeout_ms);
        self.files.push(path.to_path_buf());
        Ok(())
    }

    fn add_foreign(
        &mut self,
        path: &Path,
        text: &str,
        grants: Grants,
        project_dir: &ProjectDir,
    ) -> Result<(), RuntimeError> {
        let source = Source {
            path,
            text: text.trim_start_matches('\u{feff}'),
            author: Author::Foreign,
        };
        let Some(file) = foreign::read(&source, &mut self.warnings)? else {
            return Ok(());
        };
        let author = match grants {
            Grants::Taken => Author::UserDirs,
            Grants::TakenButDirectories | Grants::Ignored => Author::TrustedProject,
        };
        if let Some(raw) = file.hooks.filter(|_| grants != Grants::Ignored) {
            let source = hook_source(path, author, project_dir);
            self.hooks.add(raw, &source, &mut self.warnings)?;
        }
        if grants == Grants::Taken {
            self.hooks.choose(None, file.disable_all_hooks);
        }
        if grants != Grants::Ignored {
            self.take_foreign(&file, author, path);
        }
        let theirs = file.permissions;
        let permissions = match grants {
            Grants::Taken => theirs,
            // Directories outside the project are the user's to add.
            Grants::TakenButDirectories => Permissions {
                additional_directories: Vec::new(),
                ..theirs
            },
            Grants::Ignored => Permissions {
                ask: theirs.ask,
                deny: theirs.deny,
                default_mode: theirs.default_mode.filter(|mode| *mode == Mode::Plan),
                ..Permissions::default()
            },
        };
        self.mode = permissions.default_mode.or(self.mode);
        self.add_permissions(&permissions, &source, project_dir)?;
        self.files.push(path.to_path_buf());
        Ok(())
    }

    /// What our own files leave open. A repository sets no variables that load code, and enables no
    /// servers.
    fn take_foreign(&mut self, file: &foreign::ForeignFile<'_>, author: Author, path: &Path) {
        self.model = self.model.take().or_else(|| file.model.clone());
        let style = || file.output_style.clone();
        self.output_style = self.output_style.take().or_else(style);
        for (name, value) in &file.env {
            match author != Author::UserDirs && project::is_loader(name) {
                true => self.warnings.push(format!(
                    "{}: env.{name} is ignored: a project cannot set it",
                    path.display()
                )),
                false => {
                    let known = self.env.entry(name.clone());
                    known.or_insert_with(|| value.clone());
                }
            }
        }
        for (name, is_enabled) in &file.enabled_plugins {
            match author {
                Author::UserDirs => {
                    self.enabled_plugins.insert(name.clone(), *is_enabled);
                }
                // It can add one of the user's plugins, and not take away one that refuses things.
                _ if *is_enabled => {
                    self.enabled_plugins.entry(name.clone()).or_insert(true);
                }
                _ => {}
            }
        }
        if author == Author::UserDirs {
            self.mcp
                .enabled
                .extend(file.enabled_servers.iter().cloned());
            self.mcp.enable_all |= file.enable_all_servers == Some(true);
        }
    }

    fn add_permissions(
        &mut self,
        permissions: &Permissions<'_>,
        source: &Source<'_>,
        project_dir: &ProjectDir,
    ) -> Result<(), RuntimeError> {
        let named = RuleSource {
            name: project_dir.shown(source.path),
            base: Some(project_dir.root.clone()),
        };
        let lists = [
            (RuleKind::Allow, &permissions.allow),
            (RuleKind::Ask, &permissions.ask),
            (RuleKind::Deny, &permissions.deny),
        ];
        for (kind, entries) in lists {
            for rule in source.rules(kind, entries, &mut self.warnings)? {
                self.rules.add(kind, rule, &named);
            }
        }
        let home = project_dir.home();
        let dirs = permissions.additional_directories.iter();
        self.extra_dirs
            .extend(dirs.map(|dir| expand(dir, home, &project_dir.root)));
        Ok(())
    }
}

/// What is taken of another tool's settings besides what makes us stricter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Grants {
    Taken,
    TakenButDirectories,
    Ignored,
}

/// Where hooks of a file come from. Everything but the user's own files is a repository's.
fn hook_source(path: &Path, author: Author, project_dir: &ProjectDir) -> HookSource {
    HookSource {
        file: project_dir.shown(path),
        origin: match author {
            Author::UserDirs => HookOrigin::User,
            _ => HookOrigin::Project,
        },
        plugin: None,
    }
}

/// The text of a file of the user; nothing where there is none.
fn read(path: &Path) -> Result<Option<String>, RuntimeError> {
    match codespar_files::read_text(path, MAX_SETTINGS_BYTES) {
        Ok(text) => Ok(Some(text)),
        Err(OpenError::Missing) => Ok(None),
        Err(OpenError::Io(error)) if error.kind() == std::io::ErrorKind::NotADirectory => Ok(None),
        Err(error) => Err(RuntimeError::Usage(format!("{}: {error}", path.display()))),
    }
}

/// Reads the text of a settings file; nothing where it is empty.
fn parse<'a, T: Deserialize<'a>>(path: &Path, text: &'a str) -> Result<Option<T>, RuntimeError> {
    if text.trim().is_empty() {
        return Ok(None);
    }
    if !text.trim_start().starts_with('{') {
        return Err(RuntimeError::Usage(format!(
            "{}:1:1: expected a JSON object",
            path.display()
        )));
    }
    serde_json::from_str(text).map(Some).map_err(|error| {
        let message = error.to_string();
        let what = message.split(" at line ").next().unwrap_or(&message);
        RuntimeError::Usage(format!(
            "{}:{}:{}: {what}",
            path.display(),
            error.line(),
            error.column()
        ))
    })
}

/// A limit after another file had its say: a project can only make the user's stricter.
fn limit(before: Option<u64>, named: Option<u64>, author: Author) -> Option<u64> {
    match (before, named) {
        (Some(before), Some(named)) if author != Author::UserDirs => Some(before.min(named)),
        (before, named) => named.or(before),
    }
}

fn expand(dir: &Path, home: Option<&Path>, root: &Path) -> PathBuf {
    match (dir.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => root.join(dir),
    }
}
