//! What a caller asks of a project, beside its settings.

use std::path::{Path, PathBuf};

use codespar_change::verify::detect as detect_tests;
use codespar_policy::Mode;
use codespar_protocol::Usd;

use crate::{Plugin, RuntimeError};

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
    /// Files of MCP servers; naming one here allows its servers.
    pub mcp_config: Vec<PathBuf>,
    /// MCP servers that the caller passes as text in the form of `.mcp.json`; passing them allows
    /// them. Variables are not replaced in them.
    pub mcp_servers: Option<String>,
    /// Directories of plugins; naming one here trusts it.
    pub plugin_dirs: Vec<PathBuf>,
}

impl ProjectOptions {
    /// The plugins that were named.
    pub fn plugins(&self) -> Result<Vec<Plugin>, RuntimeError> {
        let dirs = self.plugin_dirs.iter();
        dirs.map(|dir| Plugin::read(dir)).collect()
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
