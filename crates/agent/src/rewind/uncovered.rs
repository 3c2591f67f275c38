//! What may have changed files without a checkpoint.

use std::{collections::HashMap, ops::Range};

use codespar_protocol::{Entry, EntryBody, ToolUse, ToolUseId};
use serde_json::Value;

use crate::for_user::command_in;

/// Characters of a command that are shown.
const SHOWN: usize = 120;

/// Commands, subagents and MCP tools that were started in these entries, each once. Only calls that
/// may change something are recorded as started.
pub(super) fn commands(entries: &[Entry], places: Range<u64>) -> Vec<String> {
    let mut calls: HashMap<&ToolUseId, &ToolUse> = HashMap::new();
    let mut found: Vec<String> = Vec::new();
    for entry in entries.iter().filter(|entry| places.contains(&entry.seq)) {
        let name = match &entry.body {
            EntryBody::Assistant { message, .. } => {
                calls.extend(message.tool_uses().map(|call| (&call.id, call)));
                None
            }
            EntryBody::ToolStarted { tool_use_id } => {
                calls.get(tool_use_id).and_then(|call| described(call))
            }
            EntryBody::User {
                message,
                synthetic: true,
            } => command_in(&message.text()).map(|command| one_line(&command)),
            _ => None,
        };
        found.extend(name.filter(|name| !found.contains(name)));
    }
    found
}

/// `None` for tools that leave files alone or keep checkpoints.
fn described(call: &ToolUse) -> Option<String> {
    let input: Value = serde_json::from_str(call.input.get()).ok()?;
    let text = |field: &str| input.get(field).and_then(Value::as_str);
    if let Some(command) = text("command") {
        return Some(one_line(command));
    }
    match call.name.as_str() {
        "Task" | "Agent" => Some(format!(
            "commands of the agent \"{}\"",
            one_line(text("description").unwrap_or_default())
        )),
        name if name.starts_with("mcp__") => Some(name.to_owned()),
        _ => None,
    }
}

fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHOWN) {
        None => line,
        Some((at, _)) => format!("{}…", &line[..at]),
    }
}
