//! The servers of a process.
//!
//! Making the set starts nothing. `begin` connects all in the background and returns; `settled`
//! waits for that where the tools are needed. An agent gets the tools of the servers that are
//! connected at that moment.

use std::{collections::HashSet, sync::Arc};

use codespar_tools::Tool;
use futures::future::{BoxFuture, join_all};
use serde::Serialize;

use crate::{
    client_channel::{ClientChannel, SharedChannel},
    config::ServerConfig,
    connection::McpSetup,
    elicitation::{Elicitor, SharedElicitor},
    naming::tool_name,
    server::{McpServer, McpStatus},
    tool::McpTool,
};

/// All of them, by name.
#[derive(Default)]
pub struct McpServers {
    servers: Vec<Arc<McpServer>>,
    elicitor: SharedElicitor,
    client: SharedChannel,
}

/// How a server stands, for people and programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServerStatus {
    pub name: String,
    /// `connected`, `failed`, `needs-approval` or `pending`.
    pub status: &'static str,
    /// Why, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl McpServers {
    /// Servers that may be started, and those that the user has to allow first. Nothing is
    /// started yet.
    pub fn new(
        approved: Vec<ServerConfig>,
        unapproved: Vec<ServerConfig>,
        setup: McpSetup,
    ) -> Self {
        let (elicitor, client) = (setup.elicitor.clone(), setup.client.clone());
        let setup = Arc::new(setup);
        let with = |status: McpStatus| {
            let setup = setup.clone();
            move |config| McpServer::new(config, setup.clone(), status.clone())
        };
        let approved = approved.into_iter().map(with(McpStatus::Pending));
        let unapproved = unapproved.into_iter().map(with(McpStatus::NeedsApproval));
        let mut servers: Vec<Arc<McpServer>> = approved.chain(unapproved).collect();
        servers.sort_by(|a, b| a.config().name.cmp(&b.config().name));
        Self {
            servers,
            elicitor,
            client,
        }
    }

    /// Says who puts the questions of servers to the user, before any is connected. The first call
    /// counts.
    pub fn set_elicitor(&self, elicitor: Arc<dyn Elicitor>) {
        self.elicitor.set(elicitor);
    }

    /// Says how servers in the program of a client are reached, before any is connected. The first
    /// call counts.
    pub fn set_client(&self, channel: Arc<dyn ClientChannel>) {
        self.client.set(channel);
    }

    /// Begins to connect, all at once, in the background.
    pub fn begin(&self) {
        for server in &self.servers {
            server.begin();
        }
    }

    /// Waits until each is connected, or known not to be: no longer than connecting may take.
    pub fn settled(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            join_all(self.servers.iter().map(McpServer::settle)).await;
        })
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<McpServer>> {
        self.servers.iter()
    }

    /// Whether these are the same servers, allowed to start in the same way.
    pub fn is_like(&self, other: &Self) -> bool {
        let waits = |server: &McpServer| server.status() == McpStatus::NeedsApproval;
        let pairs = self.servers.iter().zip(&other.servers);
        self.servers.len() == other.servers.len()
            && pairs
                .into_iter()
                .all(|(one, other)| one.config() == other.config() && waits(one) == waits(other))
    }

    /// A server by its name.
    pub fn get(&self, name: &str) -> Option<&Arc<McpServer>> {
        self.servers
            .iter()
            .find(|server| server.config().name == name)
    }

    /// Those that wait for the user.
    pub fn unapproved(&self) -> Vec<Arc<McpServer>> {
        let waiting = |server: &&Arc<McpServer>| server.status() == McpStatus::NeedsApproval;
        self.servers.iter().filter(waiting).cloned().collect()
    }

    /// How each stands.
    pub fn statuses(&self) -> Vec<ServerStatus> {
        let servers = self.servers.iter();
        servers
            .map(|server| {
                let status = server.status();
                ServerStatus {
                    name: server.config().name.clone(),
                    status: status.as_str(),
                    error: match &status {
                        McpStatus::Failed(error) => Some(error.to_string()),
                        _ => None,
                    },
                }
            })
            .collect()
    }

    /// The names of those that can be called.
    pub fn connected(&self) -> Vec<String> {
        let servers = self.servers.iter();
        servers
            .filter(|server| server.status() == McpStatus::Connected)
            .map(|server| server.config().name.clone())
            .collect()
    }

    /// The tools of all that are connected. Names depend on the order of servers and of their
    /// lists, which is the same each time.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let mut used = HashSet::new();
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        for server in &self.servers {
            for tool in server.tools() {
                let name = tool_name(&server.config().name, &tool.name, &mut used);
                if let Some(tool) = McpTool::new(name, server.clone(), &tool) {
                    tools.push(Arc::new(tool));
                }
            }
        }
        tools
    }

    /// Lets go of all in good order; no process of theirs is left.
    pub fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            join_all(self.servers.iter().map(|server| server.close())).await;
        })
    }
}
