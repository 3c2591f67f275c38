//! MCP servers of the user, the project and the command line, and who may start.
//!
//! ```text
//! passed as text           by the caller, such as an editor: may start
//! --mcp-config FILE|JSON   named by the caller: may start
//! plugins                  named or installed by the user: may start
//! settings of the user     may start
//! ~/.claude.json           may start
//! .mcp.json of a project   may start if the user approved this very definition,
//!                          or enabled its name and trusts this file
//! ```
//!
//! In this order; a later server of a name that is taken is left out. Nothing is started here. An
//! unapproved server is listed, so that the user can be asked about it.

mod approvals;
mod mentions;
mod other_tool;
mod source;

use std::{collections::BTreeMap, path::Path, time::Duration};

use codespar_mcp::{
    McpError, McpProblem, McpServers, McpSetup, McpStatus, McpTokenStore, Origin, ServerConfig,
    ServerConfigs, SharedChannel, SharedElicitor, server_word,
};

pub(crate) use self::source::ProjectServers;
pub use self::{approvals::remember, mentions::mentioned_resources, source::unknown};
use crate::{
    error::RuntimeError,
    options::{PluginServers, ServerText},
    project_dir::ProjectDir,
    settings::Settings,
};

/// The project's file.
const PROJECT_FILE: &str = ".mcp.json";
/// Where `mcpConnectTimeoutMs` does not say otherwise.
const CONNECT_MS: u64 = 10_000;
const CALL_MS: u64 = 60_000;

/// Whose servers are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerReach {
    /// Those of the user, the project and the caller.
    All,
    /// Those that the caller names.
    Named,
}

/// All configurations there are, sorted by whether they may be started.
#[derive(Default)]
pub struct ServerList {
    /// Those that may be started.
    pub approved: Vec<ServerConfig>,
    /// Those of the project that nobody has approved.
    pub unapproved: Vec<ServerConfig>,
    /// What is wrong in the files.
    pub problems: Vec<McpProblem>,
}

impl ServerList {
    /// Reads them for a project. What is wrong in a file of the command line is the caller's
    /// mistake; elsewhere it is reported and the rest is used.
    ///
    /// Variables in the definitions are replaced by those of the process.
    pub fn read(
        project_dir: &ProjectDir,
        settings: &Settings,
        named: &[ServerText],
        reach: ServerReach,
    ) -> Result<Self, RuntimeError> {
        let variables = |name: &str| variable(project_dir, name);
        let mut list = Self::default();
        let mut taken = BTreeMap::new();
        for text in named {
            list.add(of_caller(text, project_dir)?, &mut taken, |_| true);
        }
        if reach == ServerReach::Named {
            return Ok(list);
        }
        let own = project_dir.state().join("settings.json");
        let found = ServerConfigs::of_settings(&settings.mcp.servers, &own, variables);
        list.add(found, &mut taken, |_| true);
        list.add(
            other_tool::servers(project_dir, variables),
            &mut taken,
            |_| true,
        );
        let project = &project_dir.trust;
        let Some(file) = project.file(PROJECT_FILE) else {
            return Ok(list);
        };
        let read = match &file.text {
            Ok(text) => ServerConfigs::parse(text, &file.path, Origin::Project, variables),
            Err(error) => Err(McpProblem {
                path: file.path.clone(),
                line: None,
                message: error.clone(),
            }),
        };
        match read {
            Ok(found) => {
                let known = approvals::of(project_dir.state(), &project_dir.root);
                // A name says nothing about what it stands for in another repository: it counts
                // where this path and this content are trusted.
                let is_trusted = project.trusts(file);
                let mcp = &settings.mcp;
                list.add(found, &mut taken, |config| {
                    let is_named = mcp.enable_all || mcp.enabled.contains(&config.name);
                    (is_trusted && is_named) || known.get(&config.name) == Some(&config.definition)
                });
            }
            Err(problem) => list.problems.push(problem),
        }
        Ok(list)
    }

    /// The first of a name wins: a repository must not take the place of a server that the user's
    /// rules speak of. Names are compared in the form they have in the names of tools.
    fn add(
        &mut self,
        found: ServerConfigs,
        taken: &mut BTreeMap<String, String>,
        is_approved: impl Fn(&ServerConfig) -> bool,
    ) {
        self.problems.extend(found.problems);
        for config in found.servers {
            let word = server_word(&config.name);
            if let Some(other) = taken.get(&word) {
                self.problems.push(McpProblem {
                    path: config.path,
                    line: None,
                    message: format!(
                        "mcpServers.{}: left out, the server `{other}` goes by that name already",
                        config.name
                    ),
                });
                continue;
            }
            taken.insert(word, config.name.clone());
            if is_approved(&config) {
                self.approved.push(config);
            } else {
                self.unapproved.push(config);
            }
        }
    }

    /// The servers, none of them started, and what people should know. Servers get a basic
    /// environment and not that of commands, and run under a guard process.
    pub fn connectable(
        self,
        project_dir: &ProjectDir,
        settings: &Settings,
    ) -> Result<(McpServers, Vec<String>), RuntimeError> {
        let warnings: Vec<String> = self.problems.iter().map(ToString::to_string).collect();
        if self.approved.is_empty() && self.unapproved.is_empty() {
            return Ok((McpServers::default(), warnings));
        }
        let setup = McpSetup {
            guard: Some(project_dir.environment.program.clone()),
            cwd: project_dir.root.clone(),
            env: McpSetup::basic_environment(project_dir.environment.vars.iter().cloned()),
            elicitor: SharedElicitor::default(),
            tokens: Some(McpTokenStore::new(project_dir.state().join("mcp-tokens"))),
            client: SharedChannel::default(),
            proxy: project_dir.proxy()?,
            connect_timeout: millis(settings.mcp.connect_timeout_ms, CONNECT_MS),
            call_timeout: millis(settings.mcp.timeout_ms, CALL_MS),
        };
        let servers = McpServers::new(self.approved, self.unapproved, setup);
        Ok((servers, warnings))
    }
}

/// Servers that a program passes. A mistake in them is the program's.
fn passed(text: &str) -> Result<ServerConfigs, RuntimeError> {
    let usage = |message: &str| RuntimeError::Usage(format!("MCP servers: {message}"));
    if text.contains("${") {
        return Err(usage(
            "`${` in a value; variables are not replaced here, pass the value itself",
        ));
    }
    let place = Path::new("passed by the caller");
    let found = ServerConfigs::parse(text, place, Origin::CommandLine, |_: &str| None)
        .map_err(|problem| usage(&problem.message))?;
    match found.problems.first() {
        Some(problem) => Err(usage(&problem.message)),
        None => Ok(found),
    }
}

/// What a plugin brings. What is wrong in it is told like a mistake in a file of the user.
fn of_plugin(servers: &PluginServers, project_dir: &ProjectDir) -> ServerConfigs {
    let PluginServers { root, file, text } = servers;
    let variables = |name: &str| in_plugin(root, name).or_else(|| variable(project_dir, name));
    let read = match text {
        Some(text) => ServerConfigs::parse(text, file, Origin::CommandLine, variables),
        None => {
            ServerConfigs::read(file, Origin::CommandLine, variables).map(Option::unwrap_or_default)
        }
    };
    let mut found = read.unwrap_or_else(|problem| ServerConfigs {
        problems: vec![problem],
        ..ServerConfigs::default()
    });
    if text.is_some() {
        // Lines were counted from where the part begins.
        found.problems.iter_mut().for_each(|it| it.line = None);
    }
    found
}

fn in_plugin(root: &Path, name: &str) -> Option<String> {
    let is_root = matches!(name, "CLAUDE_PLUGIN_ROOT" | "CODESPAR_PLUGIN_ROOT");
    is_root.then(|| root.display().to_string())
}

fn variable(project_dir: &ProjectDir, name: &str) -> Option<String> {
    project_dir.var(name).map(str::to_owned)
}

/// What a caller names: a mistake in it is the caller's.
fn of_caller(text: &ServerText, project_dir: &ProjectDir) -> Result<ServerConfigs, RuntimeError> {
    let usage =
        |error: &dyn std::fmt::Display| RuntimeError::Usage(format!("--mcp-config: {error}"));
    let path = match text {
        ServerText::File(file) => file.as_path(),
        ServerText::Json(_) => Path::new("--mcp-config"),
        ServerText::Passed(text) => return passed(text),
        ServerText::OfPlugin(servers) => return Ok(of_plugin(servers, project_dir)),
    };
    // In the file of a plugin, where the plugin is.
    let root = path.parent().unwrap_or(path);
    let variables = |name: &str| in_plugin(root, name).or_else(|| variable(project_dir, name));
    let found = match text {
        ServerText::Json(json) => ServerConfigs::parse(json, path, Origin::CommandLine, variables)
            .map_err(|problem| usage(&problem))?,
        _ => ServerConfigs::read(path, Origin::CommandLine, variables)
            .map_err(|problem| usage(&problem))?
            .ok_or_else(|| usage(&format!("{} is not there", path.display())))?,
    };
    match found.problems.first() {
        Some(problem) => Err(usage(problem)),
        None => Ok(found),
    }
}

/// Which servers cannot be called, and why. For a surface to show once they have settled.
pub fn notices(servers: &McpServers) -> Vec<String> {
    let servers = servers.iter();
    servers
        .filter_map(|server| {
            let why = match server.status() {
                McpStatus::Failed(error) => error.to_string(),
                McpStatus::NeedsApproval => McpError::NeedsApproval.to_string(),
                McpStatus::Pending | McpStatus::Connected => return None,
            };
            let name = &server.config().name;
            Some(format!("the MCP server `{name}` is not there: {why}"))
        })
        .collect()
}

fn millis(set: Option<u64>, default: u64) -> Duration {
    Duration::from_millis(set.filter(|millis| *millis > 0).unwrap_or(default))
}
