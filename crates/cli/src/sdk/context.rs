//! What fills the context, as `get_context_usage` answers it.

use codespar_agent::ContextUsage;
use codespar_runtime::Project;
use serde_json::{Value, json};

/// In the shape that clients draw as a bar: the categories add up to the window. What the
/// conversation has is what is left of the total besides the system prompt and the tools.
pub(super) fn usage(usage: &ContextUsage, model: &str, project: &Project) -> Value {
    let messages = usage.total.saturating_sub(usage.system + usage.tools);
    let free = usage.window.saturating_sub(usage.total);
    let category = |id: &str, name: &str, tokens: u64, kind: &str| json!({ "id": id, "name": name, "tokens": tokens, "color": "default", "kind": kind });
    let share = |part: u64| match usage.window {
        0 => 0.0,
        window => part as f64 * 100.0 / window as f64,
    };
    let agents = project.hub.kinds().iter();
    let agents: Vec<Value> = agents
        .map(|kind| json!({ "agentType": kind.name, "source": "project", "tokens": 0 }))
        .collect();
    json!({
        "categories": [
            category("system_prompt", "System prompt", usage.system, "used"),
            category("system_tools", "Tools", usage.tools, "used"),
            category("messages", "Messages", messages, "used"),
            category("free_space", "Free space", free, "free"),
        ],
        "totalTokens": usage.total,
        "maxTokens": usage.window,
        "rawMaxTokens": usage.window,
        "percentage": share(usage.total),
        "gridRows": [],
        "model": model,
        "memoryFiles": [],
        "mcpTools": [],
        "agents": agents,
        "autoCompactThreshold": usage.compact_at,
        "isAutoCompactEnabled": true,
        "apiUsage": null,
    })
}
