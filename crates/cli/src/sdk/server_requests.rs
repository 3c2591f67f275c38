//! Requests of the client about MCP servers: how they stand, connecting anew, switching them off,
//! and other ones for this session.
//!
//! Servers of the settings belong to the project and are shared by all its agents; switching one
//! off changes what the agent of this session is offered and leaves the server to the others.
//! Servers that the client sets are the session's own, and end with it.

use std::sync::Arc;

use codespar_mcp::{McpServer, McpServers, McpStatus};
use codespar_runtime::{
    ServerText,
    mcp::{ServerList, ServerReach},
};
use codespar_tools::Registry;
use serde_json::{Map, Value, json};

use super::driver::Driver;

impl Driver {
    fn all_servers(&self) -> Vec<Arc<McpServer>> {
        let added = self.added.iter().flat_map(|servers| servers.iter());
        self.parts
            .project
            .mcp
            .iter()
            .chain(added)
            .cloned()
            .collect()
    }

    /// By its name, among those of the project and those of the client.
    fn server(&self, name: &str) -> Result<Arc<McpServer>, String> {
        let servers = self.all_servers();
        let found = servers.iter().find(|server| server.config().name == name);
        found.cloned().ok_or_else(|| {
            let known: Vec<&str> = servers.iter().map(|it| it.config().name.as_str()).collect();
            format!(
                "there is no MCP server `{name}`; there are: {}",
                known.join(", ")
            )
        })
    }

    /// Of all servers, also those that are switched off: a client shows them to be switched on
    /// again.
    pub(super) fn server_status(&self) -> Value {
        let servers = self.all_servers();
        let servers: Vec<Value> = servers
            .iter()
            .map(|server| self.status_of(server))
            .collect();
        json!({ "mcpServers": servers })
    }

    fn status_of(&self, server: &McpServer) -> Value {
        let config = server.config();
        let status = server.status();
        let (word, error) = match &status {
            _ if self.disabled.contains(&config.name) => ("disabled", None),
            McpStatus::Failed(error) => ("failed", Some(error.to_string())),
            McpStatus::NeedsApproval => ("disabled", Some("not approved".to_owned())),
            other => (other.as_str(), None),
        };
        let tools: Vec<Value> = server
            .tool_texts()
            .into_iter()
            .map(|(name, description)| json!({ "name": name, "description": description }))
            .collect();
        let mut status = json!({
            "name": config.name, "status": word, "scope": config.origin.as_str(), "tools": tools,
        });
        if let Some(error) = error {
            status["error"] = json!(error);
        }
        status
    }

    /// Answers when it is connected or cannot be: the turn goes on meanwhile.
    pub(super) fn reconnect_server(&mut self, id: &str, name: &str) {
        let (client, id) = (self.parts.client.clone(), id.to_owned());
        let server = match self.server(name) {
            Ok(server) => server,
            Err(why) => return client.reply(&id, Err(why)),
        };
        self.disabled.remove(name);
        tokio::spawn(async move {
            let connected = server.reconnect().await;
            let answer = connected.map(|()| Value::Object(Map::new()));
            client.reply(&id, answer.map_err(|error| error.to_string()));
        });
    }

    pub(super) async fn toggle_server(&mut self, request: &Value) -> Result<Value, String> {
        let name = request["serverName"].as_str().unwrap_or_default();
        let server = self.server(name)?;
        match request["enabled"].as_bool() {
            Some(true) => {
                self.disabled.remove(name);
                server
                    .reconnect()
                    .await
                    .map_err(|error| error.to_string())?;
            }
            Some(false) => {
                self.disabled.insert(name.to_owned());
                server.suspend().await;
            }
            None => return Err("`enabled` has to be true or false".to_owned()),
        }
        Ok(Value::Object(Map::new()))
    }

    /// Takes the place of the servers that the client set before; those of the files and the
    /// command line stay. They are the session's own: agents in the background do not have them.
    pub(super) async fn set_servers(&mut self, servers: &Value) -> Result<Value, String> {
        let project = self.parts.project.clone();
        let text = json!({ "mcpServers": servers }).to_string();
        let (dir, settings) = (&project.dir, &project.settings);
        let list = ServerList::read(dir, settings, &[ServerText::Json(text)], ServerReach::Named)
            .map_err(|error| error.to_string())?;
        let made = list
            .connectable(dir, settings)
            .map_err(|error| error.to_string())?;
        let (made, _) = made;
        let known: Vec<String> = project
            .mcp
            .iter()
            .map(|it| it.config().name.clone())
            .collect();
        if let Some(taken) = made.iter().find(|it| known.contains(&it.config().name)) {
            let name = &taken.config().name;
            return Err(format!("the MCP server `{name}` is there already"));
        }
        made.set_client(self.servers.clone());
        made.begin();
        made.settled().await;
        let names = |servers: &McpServers| -> Vec<String> {
            servers.iter().map(|it| it.config().name.clone()).collect()
        };
        let added = names(&made);
        let mut errors = Map::new();
        for server in made.iter() {
            if let McpStatus::Failed(error) = server.status() {
                errors.insert(server.config().name.clone(), json!(error.to_string()));
            }
        }
        let before = self.added.replace(Arc::new(made));
        let mut removed = Vec::new();
        if let Some(before) = before {
            removed = names(&before);
            before.close().await;
        }
        let added: Vec<String> = added
            .into_iter()
            .filter(|name| !errors.contains_key(name))
            .collect();
        Ok(json!({ "added": added, "removed": removed, "errors": errors }))
    }

    /// Tools of servers that were switched off or taken away.
    pub(super) fn unwanted_tools(&self) -> Vec<String> {
        let off = self
            .disabled
            .iter()
            .map(|name| format!("mcp__{}", codespar_mcp::server_word(name)));
        let wanted = self.wanted_tools();
        let gone = self
            .added_tools
            .iter()
            .filter(|name| wanted.get(name).is_none());
        off.chain(gone.cloned()).collect()
    }

    /// Tools of servers that are connected now.
    pub(super) fn wanted_tools(&self) -> Registry {
        let mut tools = self.parts.project.server_tools();
        for tool in self.added.iter().flat_map(|servers| servers.tools()) {
            tools.add(tool);
        }
        let off = self
            .disabled
            .iter()
            .map(|name| format!("mcp__{}", codespar_mcp::server_word(name)));
        tools.filtered(None, &off.collect::<Vec<_>>())
    }
}
