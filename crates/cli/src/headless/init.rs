//! The line that a run or a turn begins with: where it works, with what, and who answers.

use std::sync::Arc;

use codespar_protocol::{EntryId, SessionId};
use codespar_runtime::{Project, key_variable};
use serde_json::{Value, json};

/// The version of Claude Code whose formats these lines have; clients look at it to know what they
/// may expect.
pub(crate) const COMPATIBLE_VERSION: &str = "2.1.325";

/// What the line says besides what the project knows.
pub(crate) struct InitParts {
    pub(crate) session: SessionId,
    pub(crate) is_resumed: bool,
    pub(crate) tools: Vec<String>,
    /// The id of the model that answers.
    pub(crate) model: String,
    pub(crate) commands: Vec<String>,
}

/// The line.
pub(crate) fn init(project: &Arc<Project>, parts: &InitParts) -> Value {
    let kinds = project.hub.kinds().iter();
    let kinds: Vec<&str> = kinds.map(|kind| kind.name.as_str()).collect();
    let plugins: Vec<Value> = project
        .plugins
        .iter()
        .map(|plugin| json!({ "name": plugin.name, "path": plugin.root }))
        .collect();
    json!({
        "type": "system",
        "subtype": "init",
        "session_id": parts.session,
        "cwd": project.dir.cwd,
        "model": parts.model,
        "provider": project.provider.model.provider(),
        "tools": parts.tools,
        "agents": kinds,
        "permissionMode": project.mode.get().name(),
        "mcp_servers": project.mcp.statuses(),
        "resumed": parts.is_resumed,
        "apiKeySource": key_source(project),
        "claude_code_version": COMPATIBLE_VERSION,
        "codespar_version": env!("CARGO_PKG_VERSION"),
        "slash_commands": parts.commands,
        "skills": project.skill_names(),
        "plugins": plugins,
        "output_style": project.style_name(),
        "uuid": EntryId::new(),
    })
}

/// The variable that holds the key, as clients know it.
fn key_source(project: &Project) -> &'static str {
    let provider = project.provider.model.provider();
    key_variable(&project.dir, provider).unwrap_or("none")
}

/// Who answers, and by which key.
pub(crate) fn account(project: &Project) -> Value {
    let provider = project.provider.model.provider();
    let source = key_source(project);
    json!({
        "apiProvider": api_provider(provider), "apiKeySource": source, "tokenSource": source,
    })
}

/// A provider in the words of clients: what is not Anthropic's own they show by its name.
pub(crate) fn api_provider(provider: &str) -> &str {
    match provider {
        "openai" => "openai",
        _ => "firstParty",
    }
}
