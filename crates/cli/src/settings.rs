//! Settings files: read, checked and merged, with errors that name file and line.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use codespar_files::OpenError;
use codespar_policy::{Mode, Rule, RuleKind, RuleSet, RuleSource};
use codespar_tools::{
    egress::AllowedDomain,
    sandbox::{Limits, SandboxChoice, is_placeholder},
};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    dev::{DevSettings, ForgeName, VerifySettings},
    error::CommandError,
    place::Place,
};

/// A settings file is small; anything larger is something else.
const MAX_BYTES: u64 = 1 << 20;

/// What all files together say.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    pub(crate) rules: RuleSet,
    pub(crate) mode: Option<Mode>,
    pub(crate) extra_dirs: Vec<PathBuf>,
    pub(crate) model: Option<String>,
    pub(crate) provider: Option<ProviderName>,
    pub(crate) max_output_tokens: Option<u32>,
    pub(crate) effort: Option<EffortName>,
    pub(crate) compact_at: Option<u64>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) sandbox: SandboxSettings,
    pub(crate) cleanup_period_days: Option<u32>,
    pub(crate) max_agents: Option<u32>,
    pub(crate) max_shells: Option<u32>,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) max_wall_seconds: Option<u64>,
    pub(crate) disable_background_tasks: Option<bool>,
    pub(crate) mcp: McpSettings,
    pub(crate) dev: DevSettings,
    pub(crate) verify: VerifySettings,
    pub(crate) forge: Option<ForgeName>,
    /// The files that were there.
    pub(crate) files: Vec<PathBuf>,
}

/// MCP servers of the person, which servers of projects may start, and how long they may take.
#[derive(Debug, Default)]
pub(crate) struct McpSettings {
    pub(crate) servers: BTreeMap<String, Box<RawValue>>,
    pub(crate) enabled: Vec<String>,
    pub(crate) enable_all: bool,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) connect_timeout_ms: Option<u64>,
}

/// Which provider, when several could answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ProviderName {
    Anthropic,
    Openai,
    Simulated,
}

/// How hard the model should think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum EffortName {
    Low,
    Medium,
    High,
}

/// How commands are confined.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct SandboxSettings {
    /// Which sandbox; the best that works by default.
    pub(crate) mode: Option<SandboxMode>,
    /// Let commands use the network.
    pub(crate) network: Option<bool>,
    /// Hosts that commands may reach although the network is closed to them.
    pub(crate) allowed_domains: Vec<AllowedDomain>,
    /// Let commands reach the hosts that package managers are configured to use.
    pub(crate) allow_package_hosts: Option<bool>,
    /// More directories that commands may write to.
    pub(crate) allow_write: Vec<PathBuf>,
    /// More of the home directory that commands may read.
    pub(crate) allow_read: Vec<PathBuf>,
    /// Variables that reach commands although they look like secrets.
    pub(crate) pass_env: Vec<String>,
    /// What commands may use.
    pub(crate) limits: LimitSettings,
}

/// Limits on what commands may use; 0 is no limit.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct LimitSettings {
    /// Processes and threads.
    pub(crate) processes: Option<u64>,
    /// Megabytes of memory.
    pub(crate) memory_mb: Option<u64>,
    /// Megabytes of one file.
    pub(crate) file_mb: Option<u64>,
    /// Open files of one process.
    pub(crate) open_files: Option<u64>,
    /// Megabytes of `/tmp` and the like.
    pub(crate) scratch_mb: Option<u64>,
}

impl LimitSettings {
    /// What another file says wins.
    fn add(&mut self, other: &Self) {
        self.processes = other.processes.or(self.processes);
        self.memory_mb = other.memory_mb.or(self.memory_mb);
        self.file_mb = other.file_mb.or(self.file_mb);
        self.open_files = other.open_files.or(self.open_files);
        self.scratch_mb = other.scratch_mb.or(self.scratch_mb);
    }

    fn is_empty(&self) -> bool {
        let Self {
            processes,
            memory_mb,
            file_mb,
            open_files,
            scratch_mb,
        } = self;
        [processes, memory_mb, file_mb, open_files, scratch_mb]
            .iter()
            .all(|value| value.is_none())
    }
}

impl From<&LimitSettings> for Limits {
    fn from(settings: &LimitSettings) -> Self {
        let chosen = |setting: Option<u64>, unit: u64, usual: Option<u64>| match setting {
            None => usual,
            Some(0) => None,
            Some(value) => Some(value.saturating_mul(unit)),
        };
        let usual = Self::default();
        Self {
            processes: chosen(settings.processes, 1, usual.processes),
            memory: chosen(settings.memory_mb, 1 << 20, usual.memory),
            file_size: chosen(settings.file_mb, 1 << 20, usual.file_size),
            open_files: chosen(settings.open_files, 1, usual.open_files),
            scratch: chosen(settings.scratch_mb, 1 << 20, usual.scratch),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SandboxMode {
    Auto,
    Bubblewrap,
    Landlock,
    Off,
}

impl From<SandboxMode> for SandboxChoice {
    fn from(mode: SandboxMode) -> Self {
        match mode {
            SandboxMode::Auto => Self::Auto,
            SandboxMode::Bubblewrap => Self::Bubblewrap,
            SandboxMode::Landlock => Self::Landlock,
            SandboxMode::Off => Self::Off,
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct File {
    #[serde(rename = "$schema")]
    _schema: Option<serde::de::IgnoredAny>,
    permissions: Permissions,
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
    disable_background_tasks: Option<bool>,
    mcp_servers: BTreeMap<String, Box<RawValue>>,
    enabled_mcp_servers: Vec<String>,
    enable_all_project_mcp_servers: Option<bool>,
    mcp_timeout_ms: Option<u64>,
    mcp_connect_timeout_ms: Option<u64>,
    dev: DevSettings,
    verify: VerifySettings,
    forge: Option<ForgeName>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Permissions {
    allow: Vec<Rule>,
    ask: Vec<Rule>,
    deny: Vec<Rule>,
    default_mode: Option<Mode>,
    additional_directories: Vec<PathBuf>,
}

/// Another tool's settings: its permissions are read, the rest is not ours to judge.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ForeignFile {
    permissions: ForeignPermissions,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ForeignPermissions {
    allow: Vec<Rule>,
    ask: Vec<Rule>,
    deny: Vec<Rule>,
    default_mode: Option<serde_json::Value>,
    additional_directories: Vec<PathBuf>,
}

/// Who wrote a file decides what it may widen.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Author {
    /// The person, outside of any repository.
    Person,
    /// Whoever wrote the repository.
    Project,
}

impl Settings {
    /// How long one run of an agent may take.
    pub(crate) fn max_wall(&self) -> Option<std::time::Duration> {
        self.max_wall_seconds.map(std::time::Duration::from_secs)
    }

    /// Reads `~/.codespar`, `.claude` and `.codespar` settings, the later ones winning.
    pub(crate) fn load(place: &Place) -> Result<Self, CommandError> {
        let mut settings = Self::default();
        if let Some(home) = &place.home {
            settings.add_foreign(&home.join(".claude/settings.json"), place)?;
        }
        settings.add(&place.state.join("settings.json"), Author::Person, place)?;
        settings.add_foreign(&place.root.join(".claude/settings.json"), place)?;
        settings.add_foreign(&place.root.join(".claude/settings.local.json"), place)?;
        settings.add(
            &place.root.join(".codespar/settings.json"),
            Author::Project,
            place,
        )?;
        settings.add(&local_file(place), Author::Project, place)?;
        Ok(settings)
    }

    fn add(&mut self, path: &Path, author: Author, place: &Place) -> Result<(), CommandError> {
        let Some(file) = parse::<File>(path)? else {
            return Ok(());
        };
        if author == Author::Project {
            refuse_widening(&file, path)?;
        }
        self.add_permissions(&file.permissions, path, place);
        self.mode = file.permissions.default_mode.or(self.mode);
        self.model = file.model.or(self.model.take());
        self.provider = file.provider.or(self.provider);
        self.max_output_tokens = file.max_output_tokens.or(self.max_output_tokens);
        self.effort = file.effort.or(self.effort);
        self.compact_at = file.compact_at.or(self.compact_at);
        self.env.extend(file.env);
        self.sandbox.mode = file.sandbox.mode.or(self.sandbox.mode);
        self.sandbox.network = file.sandbox.network.or(self.sandbox.network);
        let domains = &mut self.sandbox.allowed_domains;
        domains.extend(file.sandbox.allowed_domains);
        self.sandbox.allow_package_hosts = file
            .sandbox
            .allow_package_hosts
            .or(self.sandbox.allow_package_hosts);
        let home = place.home.as_deref();
        let writable = file
            .sandbox
            .allow_write
            .iter()
            .map(|dir| expand(dir, home, &place.root));
        self.sandbox.allow_write.extend(writable);
        let readable = file
            .sandbox
            .allow_read
            .iter()
            .map(|path| expand(path, home, &place.root));
        self.sandbox.allow_read.extend(readable);
        self.sandbox.limits.add(&file.sandbox.limits);
        self.sandbox.pass_env.extend(file.sandbox.pass_env);
        // The state directory is the person's: no project says what is removed from it.
        if author == Author::Person {
            self.cleanup_period_days = file.cleanup_period_days.or(self.cleanup_period_days);
        }
        self.max_agents = file.max_agents.or(self.max_agents);
        self.max_shells = file.max_shells.or(self.max_shells);
        self.max_tokens = limit(self.max_tokens, file.max_tokens, author);
        self.max_wall_seconds = limit(self.max_wall_seconds, file.max_wall_seconds, author);
        self.disable_background_tasks = file
            .disable_background_tasks
            .or(self.disable_background_tasks);
        self.dev.add(file.dev, author == Author::Project);
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

    fn add_foreign(&mut self, path: &Path, place: &Place) -> Result<(), CommandError> {
        let Some(file) = parse::<ForeignFile>(path)? else {
            return Ok(());
        };
        let theirs = file.permissions;
        let mode = theirs
            .default_mode
            .and_then(|mode| serde_json::from_value(mode).ok());
        // A repository may make us stricter, never looser.
        if mode == Some(Mode::Plan) || mode == Some(Mode::DontAsk) {
            self.mode = mode;
        }
        let permissions = Permissions {
            allow: theirs.allow,
            ask: theirs.ask,
            deny: theirs.deny,
            default_mode: None,
            additional_directories: Vec::new(),
        };
        self.add_permissions(&permissions, path, place);
        self.files.push(path.to_path_buf());
        // Directories outside the project are the person's to add.
        if place
            .home
            .as_ref()
            .is_some_and(|home| path.starts_with(home.join(".claude")))
        {
            self.extra_dirs.extend(theirs.additional_directories);
        }
        Ok(())
    }

    fn add_permissions(&mut self, permissions: &Permissions, path: &Path, place: &Place) {
        let source = RuleSource {
            name: place.shown(path),
            base: Some(place.root.clone()),
        };
        let lists = [
            (RuleKind::Allow, &permissions.allow),
            (RuleKind::Ask, &permissions.ask),
            (RuleKind::Deny, &permissions.deny),
        ];
        for (kind, rules) in lists {
            for rule in rules {
                self.rules.add(kind, rule.clone(), &source);
            }
        }
        let home = place.home.as_deref();
        let dirs = permissions.additional_directories.iter();
        self.extra_dirs
            .extend(dirs.map(|dir| expand(dir, home, &place.root)));
    }
}

/// The person's own settings for this project, where «always» is kept.
pub(crate) fn local_file(place: &Place) -> PathBuf {
    place.root.join(".codespar/settings.local.json")
}

/// Adds allow rules to the local settings file, keeping what is there; gives its new text.
pub(crate) fn remember_rules(path: &Path, rules: &[String]) -> Result<String, CommandError> {
    let bad = |error: String| CommandError::Failed(format!("{}: {error}", path.display()));
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => "{}".to_owned(),
        Err(error) => return Err(bad(error.to_string())),
    };
    let mut json: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| bad(error.to_string()))?;
    let allow = json
        .as_object_mut()
        .map(|top| {
            top.entry("permissions")
                .or_insert_with(|| serde_json::json!({}))
        })
        .and_then(serde_json::Value::as_object_mut)
        .map(|permissions| {
            permissions
                .entry("allow")
                .or_insert_with(|| serde_json::json!([]))
        })
        .and_then(serde_json::Value::as_array_mut)
        .ok_or_else(|| bad("`permissions.allow` is not a list".to_owned()))?;
    for rule in rules {
        if !allow.iter().any(|known| known == rule) {
            allow.push(rule.clone().into());
        }
    }
    let text = serde_json::to_string_pretty(&json).map_err(|error| bad(error.to_string()))?;
    let text = format!("{text}\n");
    let dir = path.parent().unwrap_or(Path::new("."));
    let written = std::fs::create_dir_all(dir).and_then(|()| {
        let mut file = tempfile::NamedTempFile::new_in(dir)?;
        std::io::Write::write_all(&mut file, text.as_bytes())?;
        file.persist(path).map_err(|error| error.error)
    });
    written.map_err(|error| bad(error.to_string()))?;
    Ok(text)
}

fn parse<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<Option<T>, CommandError> {
    let unreadable =
        |error: &dyn std::fmt::Display| CommandError::Usage(format!("{}: {error}", path.display()));
    let text = match codespar_files::read_text(path, MAX_BYTES) {
        Ok(text) => text,
        Err(OpenError::Missing) => return Ok(None),
        Err(OpenError::NotRegular) if is_placeholder(path) => return Ok(None),
        Err(OpenError::Io(error)) if error.kind() == std::io::ErrorKind::NotADirectory => {
            return Ok(None);
        }
        Err(OpenError::NotRegular | OpenError::Directory) => {
            return Err(unreadable(&"is not a regular file"));
        }
        Err(OpenError::TooLarge { limit }) => {
            return Err(unreadable(&format!("is larger than {limit} bytes")));
        }
        Err(error) => return Err(unreadable(&error)),
    };
    let text = text.trim_start_matches('\u{feff}');
    if text.trim().is_empty() {
        return Ok(None);
    }
    if !text.trim_start().starts_with('{') {
        return Err(CommandError::Usage(format!(
            "{}:1:1: expected a JSON object",
            path.display()
        )));
    }
    serde_json::from_str(text).map(Some).map_err(|error| {
        let words = error.to_string();
        let what = words.split(" at line ").next().unwrap_or(&words);
        CommandError::Usage(format!(
            "{}:{}:{}: {what}",
            path.display(),
            error.line(),
            error.column()
        ))
    })
}

/// A limit after another file had its say: a project can only make the person's stricter.
fn limit(before: Option<u64>, named: Option<u64>, author: Author) -> Option<u64> {
    match (before, named) {
        (Some(before), Some(named)) if author != Author::Person => Some(before.min(named)),
        (before, named) => named.or(before),
    }
}

/// Files that come with a repository are other people's words: they may add rules, but not take
/// the walls down.
fn refuse_widening(file: &File, path: &Path) -> Result<(), CommandError> {
    let refused = if file.permissions.default_mode == Some(Mode::BypassPermissions) {
        Some("permissions.defaultMode = bypassPermissions")
    } else if file.sandbox.mode.is_some() {
        Some("sandbox.mode")
    } else if file.sandbox.network == Some(true) {
        Some("sandbox.network = true")
    } else if !file.sandbox.allowed_domains.is_empty() {
        Some("sandbox.allowedDomains")
    } else if file.sandbox.allow_package_hosts == Some(true) {
        Some("sandbox.allowPackageHosts = true")
    } else if !file.sandbox.allow_write.is_empty() {
        Some("sandbox.allowWrite")
    } else if !file.sandbox.allow_read.is_empty() {
        Some("sandbox.allowRead")
    } else if !file.sandbox.limits.is_empty() {
        Some("sandbox.limits")
    } else if !file.sandbox.pass_env.is_empty() {
        Some("sandbox.passEnv")
    } else if file.verify.network == Some(true) {
        Some("verify.network = true")
    } else if file.forge == Some(ForgeName::Github) {
        Some("forge = github")
    } else if !file.permissions.additional_directories.is_empty() {
        Some("permissions.additionalDirectories")
    } else if !file.mcp_servers.is_empty() {
        // A project's servers stand in .mcp.json, where somebody has to allow them.
        Some("mcpServers")
    } else if !file.enabled_mcp_servers.is_empty() {
        Some("enabledMcpServers")
    } else if file.enable_all_project_mcp_servers == Some(true) {
        Some("enableAllProjectMcpServers")
    } else if file.cleanup_period_days.is_some() {
        Some("cleanupPeriodDays")
    } else {
        None
    };
    match refused {
        None => Ok(()),
        Some(what) => Err(CommandError::Usage(format!(
            "{}: {what} cannot be set by a project; set it in settings.json of the state directory \
             (~/.codespar) or by a flag",
            path.display()
        ))),
    }
}

fn expand(dir: &Path, home: Option<&Path>, root: &Path) -> PathBuf {
    match (dir.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => root.join(dir),
    }
}
