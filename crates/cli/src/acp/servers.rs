//! MCP servers that the client passes. They are the person's own: passing them allows them, as
//! naming a file with `--mcp-config` does.

use agent_client_protocol::v1::schema::McpServer;
use serde_json::{Map, Value, json};

/// As the text of an `.mcp.json`; none where there are none.
pub(super) fn as_text(servers: &[McpServer]) -> Result<Option<String>, String> {
    let mut entries = Map::new();
    for server in servers {
        let (name, entry) = match server {
            McpServer::Stdio(server) => {
                let env = server
                    .env
                    .iter()
                    .map(|one| (one.name.clone(), json!(one.value)));
                let env: Map<String, Value> = env.collect();
                let command = server.command.to_str();
                let command = command.ok_or("the path of an MCP server is not UTF-8")?;
                let entry = json!({
                    "type": "stdio", "command": command, "args": server.args, "env": env,
                });
                (&server.name, entry)
            }
            McpServer::Http(server) => {
                let headers = server.headers.iter();
                let headers: Map<String, Value> = headers
                    .map(|one| (one.name.clone(), json!(one.value)))
                    .collect();
                let entry = json!({"type": "http", "url": server.url, "headers": headers});
                (&server.name, entry)
            }
            McpServer::Sse(server) => {
                return Err(format!(
                    "the MCP server `{}` has the transport `sse`; `stdio` and `http` are possible",
                    server.name
                ));
            }
            _ => return Err("an MCP server has an unknown transport".to_owned()),
        };
        if entries.insert(name.clone(), entry).is_some() {
            return Err(format!("there are two MCP servers `{name}`"));
        }
    }
    let text = (!entries.is_empty()).then(|| json!({ "mcpServers": entries }).to_string());
    Ok(text)
}
