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

use crate::{client_channel::ClientTransport, http_client::HttpClient, legacy_sse::LegacySse};

/// The streams of a program, an address, or a client that has the server.
pub(super) enum ServerTransport {
    Program(AsyncRwTransport<RoleClient, ChildStdout, pipe::Sender>),
    Address(StreamableHttpClientTransport<HttpClient>),
    Legacy(LegacySse),
    Client(ClientTransport),
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
        let sending: BoxFuture<'static, Result<(), Self::Error>> = match self {
            Self::Program(streams) => {
                let sent = streams.send(message);
                Box::pin(async move { sent.await.map_err(ServerTransportError::Program) })
            }
            Self::Address(address) => {
                let sent = address.send(message);
                Box::pin(async move { sent.await.map_err(ServerTransportError::Address) })
            }
            Self::Legacy(stream) => {
                let sent = stream.send(message);
                Box::pin(async move { sent.await.map_err(ServerTransportError::Address) })
            }
            Self::Client(client) => {
                let sent = client.send(&message);
                Box::pin(async move { sent.await.map_err(ServerTransportError::Program) })
            }
        };
        sending
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        match self {
            Self::Program(streams) => streams.receive().await,
            Self::Address(address) => address.receive().await,
            Self::Legacy(stream) => stream.receive().await,
            Self::Client(client) => client.receive().await,
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        match self {
            Self::Program(streams) => {
                let closed = streams.close().await;
                closed.map_err(ServerTransportError::Program)
            }
            Self::Address(address) => {
                let closed = address.close().await;
                closed.map_err(ServerTransportError::Address)
            }
            // The stream ends when it is dropped.
            Self::Legacy(_) => Ok(()),
            Self::Client(client) => {
                client.close();
                Ok(())
            }
        }
    }
}
