//! Servers that live in the program of a client: their messages travel over whatever connects us
//! with it.
//!
//! The client names its servers and answers for them. A message to such a server is passed on; what
//! the server says comes back over the same connection, in any order.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use futures::future::BoxFuture;
use rmcp::{
    RoleClient,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
};
use serde_json::Value;
use tokio::sync::mpsc;

/// The way to the servers of a client.
pub trait ClientChannel: Send + Sync {
    /// A new connection to this server: what it says from now on comes here. One that was open
    /// before ends.
    fn open(&self, server: &str) -> mpsc::Receiver<Value>;

    /// Passes a message on. The error says why the client cannot have it.
    fn send(&self, server: &str, message: Value) -> BoxFuture<'static, Result<(), String>>;
}

/// The channel of a process, which is known before the first server is connected.
#[derive(Clone, Default)]
pub struct SharedChannel(Arc<OnceLock<Arc<dyn ClientChannel>>>);

impl SharedChannel {
    /// The first call counts.
    pub fn set(&self, channel: Arc<dyn ClientChannel>) {
        let _ = self.0.set(channel);
    }

    /// A connection to a server of the client; `None` where there is no client.
    pub(super) fn connect(&self, server: &str) -> Option<ClientTransport> {
        let channel = self.0.get()?.clone();
        Some(ClientTransport {
            said: channel.open(server),
            server: server.to_owned(),
            channel,
        })
    }
}

impl fmt::Debug for SharedChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedChannel({})", self.0.get().is_some())
    }
}

/// One connection to a server of the client.
pub(super) struct ClientTransport {
    server: String,
    channel: Arc<dyn ClientChannel>,
    said: mpsc::Receiver<Value>,
}

impl ClientTransport {
    pub(super) fn send(
        &self,
        message: &TxJsonRpcMessage<RoleClient>,
    ) -> BoxFuture<'static, Result<(), std::io::Error>> {
        let value = serde_json::to_value(message).map_err(std::io::Error::other);
        let (channel, server) = (self.channel.clone(), self.server.clone());
        Box::pin(async move {
            let sent = channel.send(&server, value?).await;
            sent.map_err(std::io::Error::other)
        })
    }

    /// What is no message of the protocol is passed over: the client may not end the connection by
    /// it.
    pub(super) async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let said = self.said.recv().await?;
            if let Ok(message) = serde_json::from_value(said) {
                return Some(message);
            }
        }
    }

    pub(super) fn close(&mut self) {
        self.said.close();
    }
}
