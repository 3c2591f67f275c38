//! MCP servers of the person, the project and the command line, and who may start.

mod approvals;
mod source;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    time::Duration,
};

use codespar_agent::mcp::{
    McpError, McpGround, McpProblem, McpServers, McpStatus, Origin, ServerConfig, ServerConfigs,
    server_word,
};

pub(crate) use self::{
    approvals::remember,
    source::{serve_monitors, unknown},
};
use crate::{error::CommandError, place::Place, settings::Settings};

/// The project's file.
const PROJECT_FILE: &str = ".mcp.json";
const CONNECT_MS: u64 = 10_000;
const CALL_MS: u64 = 60_000;

/// All configurations there are, sorted by whether they may be started.
#[derive(Default)]
pub(crate) struct Gathered {
    pub(crate) approved: Vec<ServerConfig>,
    pub(crate) unapproved: Vec<ServerConfig>,
    pub(crate) problems: Vec<McpProblem>,
}

impl Gathered {
    /// Reads them for a project. What is wrong in a file of the command line is the caller's
    /// mistake; elsewhere it is reported and the rest is used.
    pub(crate) fn read(
        place: &Place,
        settings: &Settings,
        root: &Path,
        files: &[PathBuf],
    ) -> Result<Self, CommandError> {
        let variables = |name: &str| place.var(name).map(str::to_owned);
        let mut gathered = Self::default();
        let mut words = BTreeMap::new();
        for file in files {
            let usage = |error: &dyn std::fmt::Display| {
                CommandError::Usage(format!("--mcp-config: {error}"))
            };
            let found = ServerConfigs::read(file, Origin::CommandLine, variables)
                .map_err(|problem| usage(&problem))?
                .ok_or_else(|| usage(&format!("{} is not there", file.display())))?;
            if let Some(problem) = found.problems.first() {
                return Err(usage(problem));
            }
            gathered.add(found, &mut words, |_| true);
        }
        let own = place.state.join("settings.json");
        let found = ServerConfigs::of_settings(&settings.mcp.servers, &own, variables);
        gathered.add(found, &mut words, |_| true);
        let project = place.project_at(root);
        let Some(file) = project.file(PROJECT_FILE) else {
            return Ok(gathered);
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
                let known = approvals::of(&place.state, root);
                // A name says nothing about what it stands for in another repository: it counts
                // where this path and this content are trusted.
                let is_trusted = project.trusts(file);
                let mcp = &settings.mcp;
                gathered.add(found, &mut words, |config| {
                    let is_named = mcp.enable_all || mcp.enabled.contains(&config.name);
                    (is_trusted && is_named) || known.get(&config.name) == Some(&config.definition)
                });
            }
            Err(problem) => gathered.problems.push(problem),
        }
        Ok(gathered)
    }

    /// The first of a name wins: a repository must not take the place of a server that the
    /// person's rules speak of.
    fn add(
        &mut self,
        found: ServerConfigs,
        words: &mut BTreeMap<String, String>,
        is_approved: impl Fn(&ServerConfig) -> bool,
    ) {
        self.problems.extend(found.problems);
        for config in found.servers {
            let word = server_word(&config.name);
            if let Some(other) = words.get(&word) {
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
            words.insert(word, config.name.clone());
            if is_approved(&config) {
                self.approved.push(config);
            } else {
                self.unapproved.push(config);
            }
        }
    }

    /// The servers, none of them started, and what people should know.
    pub(crate) fn servers(
        self,
        place: &Place,
        settings: &Settings,
        root: &Path,
    ) -> Result<(McpServers, Vec<String>), CommandError> {
        let warnings: Vec<String> = self.problems.iter().map(ToString::to_string).collect();
        if self.approved.is_empty() && self.unapproved.is_empty() {
            return Ok((McpServers::default(), warnings));
        }
        let ground = McpGround {
            guard: Some(std::env::current_exe()?),
            cwd: root.to_path_buf(),
            env: McpGround::basic_environment(place.vars.iter().cloned()),
            proxy: ["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]
                .iter()
                .find_map(|name| place.var(name))
                .map(str::to_owned),
            connect_timeout: millis(settings.mcp.connect_timeout_ms, CONNECT_MS),
            call_timeout: millis(settings.mcp.timeout_ms, CALL_MS),
        };
        let servers = McpServers::new(self.approved, self.unapproved, ground);
        Ok((servers, warnings))
    }
}

/// Which servers cannot be called, and why.
pub(crate) fn notices(servers: &McpServers) -> Vec<String> {
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
