//! What a caller asks of a project, beside its settings.

use std::path::PathBuf;

use codespar_policy::Mode;
use codespar_protocol::Usd;

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
}
