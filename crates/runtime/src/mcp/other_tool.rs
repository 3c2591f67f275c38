//! MCP servers that the user has added to another tool: `mcpServers` of `~/.claude.json`, for all
//! projects and for this one.
//!
//! The rest of that file, which is most of it, is skipped. A file that cannot be read is a problem
//! that is told; the other servers are used.

use std::{collections::BTreeMap, path::Path};

use codespar_mcp::{McpProblem, ServerConfigs};
use codespar_tools::files::{OpenError, read_text};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::project_dir::ProjectDir;

/// It holds the history of that tool too.
const MAX_BYTES: u64 = 64 << 20;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct State {
    mcp_servers: BTreeMap<String, Box<RawValue>>,
    projects: BTreeMap<String, Box<RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ProjectState {
    mcp_servers: BTreeMap<String, Box<RawValue>>,
}

/// Those of the project come first, as there.
pub(super) fn servers(
    project_dir: &ProjectDir,
    variables: impl Fn(&str) -> Option<String>,
) -> ServerConfigs {
    let Some(path) = project_dir.home().map(|home| home.join(".claude.json")) else {
        return ServerConfigs::default();
    };
    let text = match read_text(&path, MAX_BYTES) {
        Ok(text) => text,
        Err(OpenError::Missing) => return ServerConfigs::default(),
        Err(error) => return wrong(&path, error.to_string()),
    };
    let state: State = match serde_json::from_str(&text) {
        Ok(state) => state,
        Err(error) => return wrong(&path, error.to_string()),
    };
    let root = project_dir.root.to_string_lossy();
    let own = state.projects.get(&*root);
    let own = own.and_then(|raw| serde_json::from_str::<ProjectState>(raw.get()).ok());
    let mut entries = state.mcp_servers;
    entries.extend(own.unwrap_or_default().mcp_servers);
    ServerConfigs::of_settings(&entries, &path, variables)
}

fn wrong(path: &Path, message: String) -> ServerConfigs {
    let problem = McpProblem {
        path: path.to_path_buf(),
        line: None,
        message,
    };
    ServerConfigs {
        problems: vec![problem],
        ..ServerConfigs::default()
    }
}
