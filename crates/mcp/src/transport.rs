//! One type for all ways to a server.
//!
//! The MCP client is generic over its transport, and one copy of it is several hundred thousand
//! lines of generated code. With a single type there is one copy.

use futures::future::BoxFuture;
use rmcp::{
    RoleClient,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::{
        StreamableHttpClientTransport, Transport, async_rw::AsyncRwTransport,
        streamable_http_client::StreamableHttpError,
    },
};
use tokio::{net::unix::pipe, process::ChildStdout};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{client_channel::ClientTransport, http_client::HttpClient, legacy_sse::LegacySse};

/// The streams of a program, an address, or a client that has the server.
pub(super) enum AnyTransport {
    Program(AsyncRwTransport<RoleClient, ChildStdout, pipe::Sender>),
    Address(StreamableHttpClientTransport<HttpClient>),
    Legacy(LegacySse),
    Client(ClientTransport),
}

/// A way to a server. The MCP client owns it and drops it when the connection is over, whoever ended
/// it; `ended` is cancelled then, so that nobody has to ask again and again whether it still stands.
pub(super) struct ServerTransport {
    inner: AnyTransport,
    _ended: DropGuard,
}

impl ServerTransport {
    pub(super) fn new(inner: AnyTransport, ended: &CancellationToken) -> Self {
        Self {
            inner,
            _ended: ended.clone().drop_guard(),
        }
    }
}

/// The cause stays a source of its own: the client looks for a missing authorisation among them.
#[derive(Debug, thiserror::Error)]
pub(super) enum ServerTransportError {
    #[error("{0}")]
    Program(#[source] std::io::Error),
    #[error("{0}")]
    Address(#[source] StreamableHttpError<reqwest::Error>),
}

impl Transport<RoleClient> for ServerTransport {
    type Error = ServerTransportError;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let sending: BoxFuture<'static, Result<(), Self::Error>> = match &mut self.inner {
            AnyTransport::Program(streams) => {
                let sent = streams.send(message);
                Box::pin(async move { sent.await.map_err(ServerTransportError::Program) })
            }
            AnyTransport::Address(address) => {
                let sent = address.send(message);
                Box::pin(async move { sent.await.map_err(ServerTransportError::Address) })
            }
            AnyTransport::Legacy(stream) => {
                let sent = stream.send(message);
                Box::pin(async move { sent.await.map_err(ServerTransportError::Address) })
            }
            AnyTransport::Client(client) => {
                let sent = client.send(&message);
                Box::pin(async move { sent.await.map_err(ServerTransportError::Program) })
            }
        };
        sending
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        match &mut self.inner {
            AnyTransport::Program(streams) => streams.receive().await,
            AnyTransport::Address(address) => address.receive().await,
            AnyTransport::Legacy(stream) => stream.receive().await,
            AnyTransport::Client(client) => client.receive().await,
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        match &mut self.inner {
            AnyTransport::Program(streams) => {
                let closed = streams.close().await;
                closed.map_err(ServerTransportError::Program)
            }
            AnyTransport::Address(address) => {
                let closed = address.close().await;
                closed.map_err(ServerTransportError::Address)
            }
            // The stream ends when it is dropped.
            AnyTransport::Legacy(_) => Ok(()),
            AnyTransport::Client(client) => {
                client.close();
                Ok(())
            }
        }
    }
}
