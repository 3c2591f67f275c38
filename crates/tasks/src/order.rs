//! What a task is made from, as it stands in its metadata.

use std::path::PathBuf;

use codespar_protocol::{SessionId, ToolUseId, Usd};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

/// A shell command to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BashOrder {
    /// The command.
    pub command: String,
    /// The project root, which it may write to.
    pub root: PathBuf,
    /// Where it starts.
    pub cwd: PathBuf,
}

/// An agent to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentOrder {
    /// What it is to do.
    pub prompt: String,
    /// Its kind.
    pub subagent_type: String,
    /// Its model, if not the kind's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its limit on turns, if not the kind's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u32>,
    /// The most it may cost, over all its attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_budget_usd: Option<Usd>,
    /// A name to send messages to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `worktree` for one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<String>,
    /// The project root.
    pub root: PathBuf,
    /// Where it works.
    pub cwd: PathBuf,
    /// Its own conversation.
    pub agent_session: SessionId,
    /// How far below the person's agent it is; 1 for its children.
    pub depth: u32,
    /// The call that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_use_id: Option<ToolUseId>,
}

/// Reads an order from metadata. Keys that are not its own are left alone.
pub(crate) fn read<T: DeserializeOwned>(metadata: &Map<String, Value>) -> Result<T, String> {
    serde_json::from_value(Value::Object(metadata.clone()))
        .map_err(|error| format!("the task's metadata is not a complete order: {error}"))
}

/// Writes an order as metadata.
pub(crate) fn write(order: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(order) {
        Ok(Value::Object(map)) => map,
        // Orders are structs of plain values: they are always objects.
        _ => Map::new(),
    }
}
