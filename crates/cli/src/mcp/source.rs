//! Servers for monitors, which may belong to another project than the one this process works in.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use codespar_agent::mcp::{McpServer, McpServers};
use codespar_protocol::TaskType;
use codespar_tasks::{MonitorRunner, ServerSource, TaskHub};
use parking_lot::Mutex;

use super::Gathered;
use crate::assemble::Ground;

/// From now on monitors are taken.
pub(crate) fn serve_monitors(ground: &Arc<Ground>, hub: &Arc<TaskHub>) {
    let servers = ProjectServers {
        ground: ground.clone(),
        others: Mutex::default(),
    };
    let runner = MonitorRunner {
        servers: Arc::new(servers),
        hub: hub.clone(),
        redactor: ground.redactor.clone(),
    };
    hub.scheduler()
        .serve(TaskType::MonitorMcp, Arc::new(runner));
}

/// Finds servers by project.
struct ProjectServers {
    ground: Arc<Ground>,
    others: Mutex<HashMap<PathBuf, Arc<McpServers>>>,
}

impl ProjectServers {
    fn of(&self, root: &Path) -> Result<Arc<McpServers>, String> {
        let place = &self.ground.place;
        // A worktree of an agent is the project under another path.
        if root == place.root || root.starts_with(place.state.join("worktrees")) {
            return Ok(self.ground.mcp.clone());
        }
        if let Some(known) = self.others.lock().get(root) {
            return Ok(known.clone());
        }
        let settings = &self.ground.settings;
        let found = Gathered::read(place, settings, root, &[])
            .and_then(|found| found.servers(place, settings, root));
        let servers = Arc::new(found.map_err(|error| error.to_string())?.0);
        let mut others = self.others.lock();
        Ok(others.entry(root.to_path_buf()).or_insert(servers).clone())
    }
}

#[async_trait]
impl ServerSource for ProjectServers {
    async fn server(&self, root: &Path, name: &str) -> Result<Arc<McpServer>, String> {
        let servers = self.of(root)?;
        servers
            .get(name)
            .cloned()
            .ok_or_else(|| unknown(&servers, name))
    }
}

/// Names what there is.
pub(crate) fn unknown(servers: &McpServers, name: &str) -> String {
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
