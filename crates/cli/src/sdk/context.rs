//! What fills the context, as `get_context_usage` answers it.

use std::path::Path;

use codespar_agent::{ContextUsage, FilePart, ToolPart};
use codespar_runtime::Project;
use serde_json::{Value, json};

/// In the shape that clients draw as a bar: the categories add up to the window. What the
/// conversation has is what is left of the total besides the system prompt and the tools.
pub(super) fn usage(usage: &ContextUsage, model: &str, project: &Project) -> Value {
    let free = usage.window.saturating_sub(usage.total);
    let files: u64 = usage.files.iter().map(|file| file.tokens).sum();
    let of_servers: u64 = usage.server_tools.iter().map(|tool| tool.tokens).sum();
    let prompt = usage.system.saturating_sub(files + usage.skills);
    let tools = usage.tools.saturating_sub(of_servers);
    let category = |id: &str, name: &str, tokens: u64, kind: &str| json!({ "id": id, "name": name, "tokens": tokens, "color": "default", "kind": kind });
    let share = |part: u64| match usage.window {
        0 => 0.0,
        window => part as f64 * 100.0 / window as f64,
    };
    let agents = project.hub.kinds().iter();
    let agents: Vec<Value> = agents
        .map(|kind| json!({ "agentType": kind.name, "source": "project", "tokens": 0 }))
        .collect();
    let memory_files = usage.files.iter().map(|part| file(part, &project.dir.root));
    json!({
        "categories": [
            category("system_prompt", "System prompt", prompt, "used"),
            category("system_tools", "Tools", tools, "used"),
            category("mcp_tools", "MCP tools", of_servers, "used"),
            category("memory_files", "Memory files", files, "used"),
            category("skills", "Skills", usage.skills, "used"),
            category("messages", "Messages", usage.conversation(), "used"),
            category("free_space", "Free space", free, "free"),
        ],
        "totalTokens": usage.total,
        "maxTokens": usage.window,
        "rawMaxTokens": usage.window,
        "percentage": share(usage.total),
        "gridRows": [],
        "model": model,
        "memoryFiles": memory_files.collect::<Vec<Value>>(),
        "mcpTools": usage.server_tools.iter().map(tool).collect::<Vec<Value>>(),
        "agents": agents,
        "autoCompactThreshold": usage.compact_at,
        "isAutoCompactEnabled": true,
        "apiUsage": null,
    })
}

/// Whose a file is follows from where it is.
fn file(part: &FilePart, root: &Path) -> Value {
    let kind = match part.path.starts_with(root) {
        true if part.path.ends_with("CLAUDE.local.md") => "Local",
        true => "Project",
        false => "User",
    };
    json!({ "path": part.path, "type": kind, "tokens": part.tokens })
}

/// The server is the word of it in the name of the tool.
fn tool(part: &ToolPart) -> Value {
    let server = part.name.split("__").nth(1).unwrap_or_default();
    json!({ "name": part.name, "serverName": server, "tokens": part.tokens, "isLoaded": true })
}
