//! MCP servers in the program of the client: their messages travel as `mcp_message`.

use std::{collections::HashMap, sync::Arc};

use codespar_mcp::ClientChannel;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::client::Client;

/// What a server may say before it is listened to.
const WAITING: usize = 256;

/// Carries messages between them and our MCP client.
pub(super) struct ClientServers {
    client: Client,
    open: Arc<Mutex<HashMap<String, mpsc::Sender<Value>>>>,
}

impl ClientServers {
    pub(super) fn new(client: Client) -> Self {
        Self {
            client,
            open: Arc::default(),
        }
    }

    /// What a server says by itself. The error names the server if it is not connected.
    pub(super) fn said(&self, server: &str, message: Value) -> Result<(), String> {
        let open = self.open.lock().get(server).cloned();
        let open =
            open.ok_or_else(|| format!("there is no MCP server `{server}` of yours here"))?;
        open.try_send(message)
            .map_err(|_| format!("the MCP server `{server}` says too much at once"))
    }
}

impl ClientChannel for ClientServers {
    fn open(&self, server: &str) -> mpsc::Receiver<Value> {
        let (say, said) = mpsc::channel(WAITING);
        self.open.lock().insert(server.to_owned(), say);
        said
    }

    /// The answer of the client holds that of the server, if the message was a request.
    fn send(&self, server: &str, message: Value) -> BoxFuture<'static, Result<(), String>> {
        let (client, open) = (self.client.clone(), self.open.clone());
        let server = server.to_owned();
        Box::pin(async move {
            let is_request = message.get("id").is_some() && message.get("method").is_some();
            let request =
                json!({ "subtype": "mcp_message", "server_name": server, "message": message });
            let mut answer = client.ask(request).await?;
            if !is_request {
                return Ok(());
            }
            let say = open.lock().get(&server).cloned();
            let said = answer["mcp_response"].take();
            match say {
                Some(say) => say.send(said).await.map_err(|_| "it was closed".to_owned()),
                None => Err("it was closed".to_owned()),
            }
        })
    }
}
