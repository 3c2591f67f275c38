//! Servers for the monitors of a project.
//!
//! A monitor names a server; it is looked up when the monitor runs, among those the project has
//! then.

use std::{
    path::Path,
    sync::{Arc, Weak},
};

use async_trait::async_trait;
use codespar_mcp::{McpServer, McpServers};
use codespar_tasks::ServerSource;

use crate::Project;

/// The runner of monitors belongs to one project: its servers are the only ones found.
pub(crate) struct ProjectServers(pub(crate) Weak<Project>);

#[async_trait]
impl ServerSource for ProjectServers {
    async fn server(&self, _root: &Path, name: &str) -> Result<Arc<McpServer>, String> {
        let project = self.0.upgrade();
        let project = project.ok_or_else(|| "the process is leaving".to_owned())?;
        let server = project.mcp.get(name).cloned();
        server.ok_or_else(|| unknown(&project.mcp, name))
    }
}

/// Names what there is.
pub fn unknown(servers: &McpServers, name: &str) -> String {
    let known: Vec<&str> = servers
        .iter()
        .map(|server| server.config().name.as_str())
        .collect();
    let known = if known.is_empty() {
        "there are none".to_owned()
    } else {
        format!("there are: {}", known.join(", "))
    };
    format!("there is no MCP server `{name}`; {known}")
}
