//! Connections: accepted within limits, served, and ended in good order.
//!
//! A client that is slow on purpose holds a place among the connections and nothing else: the head
//! of a request, its body and the reading of an answer have a time limit each, and so has the TLS
//! handshake. Above the number of connections, new ones wait to be accepted and are not refused: a
//! burst of deliveries is taken one after the other.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use axum::Router;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use tokio_rustls::TlsAcceptor;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use url::Url;

use crate::{
    access::{Peer, SignInCode},
    config::Transport,
    providers::SignInSetupError,
    routes,
    stall::StallLimit,
    state::{ServedSurface, ServerSetup, ServerState, Shared},
    tls,
};
use codespar_protocol::AccessRole;

/// Bytes of the head of a request.
const HEAD_BYTES: usize = 32 * 1024;
/// After an error of `accept`, such as too many open files.
const PAUSE: Duration = Duration::from_millis(200);

#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error("cannot listen on {address}: {error}")]
    Listen {
        address: SocketAddr,
        error: io::Error,
    },
    #[error("{0}")]
    Tls(String),
    #[error(transparent)]
    SignIn(#[from] SignInSetupError),
}

/// The address of a server that only this machine reaches.
fn own_url(listener: &TcpListener) -> Option<Url> {
    let address = listener.local_addr().ok()?;
    Url::parse(&format!("http://{address}")).ok()
}

/// A server that has its address. It answers from [`Server::run`] on.
pub struct Server {
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    router: Router,
    state: Shared,
}

impl Server {
    /// Takes the address. Must be called within a Tokio runtime.
    pub async fn bind(setup: ServerSetup) -> Result<Self, ServerError> {
        let tls = match &setup.plan.transport {
            Transport::Tls(files) => Some(tls::acceptor(files).map_err(ServerError::Tls)?),
            Transport::Loopback | Transport::BehindProxy => None,
        };
        let address = setup.plan.address;
        let listener = TcpListener::bind(address).await;
        let listener = listener.map_err(|error| ServerError::Listen { address, error })?;
        let own = match &setup.plan.transport {
            Transport::Loopback => own_url(&listener),
            Transport::Tls(_) | Transport::BehindProxy => None,
        };
        let surface = setup.surface;
        let state = ServerState::new(setup, own)?;
        Ok(Self {
            listener,
            tls,
            router: match surface {
                ServedSurface::Everything => routes::router(&state),
                ServedSurface::Mcp => routes::mcp_router(&state),
            },
            state,
        })
    }

    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// A code that signs one browser in.
    pub fn sign_in_code(&self, role: AccessRole) -> io::Result<SignInCode> {
        self.state.access.sign_ins.new_code(role)
    }

    /// Answers until `stop`; then accepts nothing more, ends event streams, and waits for requests
    /// under way.
    pub async fn run(self, stop: CancellationToken) {
        let limits = self.state.limits.clone();
        let places = Arc::new(Semaphore::new(limits.connections));
        let connections = TaskTracker::new();
        let stopping = self.state.stopping.clone();
        loop {
            let accepted = tokio::select! {
                accepted = accept(&self.listener, &places) => accepted,
                () = stop.cancelled() => break,
            };
            let Some((stream, peer, place)) = accepted else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            let connection = Connection {
                router: self.router.clone(),
                peer: Peer(peer.ip()),
                state: self.state.clone(),
            };
            let tls = self.tls.clone();
            connections.spawn(async move {
                connection.serve_stream(stream, tls).await;
                drop(place);
            });
        }
        drop(self.listener);
        stopping.cancel();
        connections.close();
        self.state.background.close();
        let drained = async {
            connections.wait().await;
            self.state.background.wait().await;
        };
        if tokio::time::timeout(limits.drain_time, drained)
            .await
            .is_err()
        {
            tracing::warn!("requests were still under way when the server stopped");
        }
    }
}

type Place = tokio::sync::OwnedSemaphorePermit;

/// The next connection once there is a place for it; others wait in the queue of the system.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> Option<(TcpStream, SocketAddr, Place)> {
    let place = places.clone().acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, peer)) => Some((stream, peer, place)),
        Err(error) => {
            tracing::warn!(%error, "a connection was not accepted");
            None
        }
    }
}

struct Connection {
    router: Router,
    peer: Peer,
    state: Shared,
}

impl Connection {
    async fn serve_stream(self, stream: TcpStream, tls: Option<TlsAcceptor>) {
        // Events are small and wanted at once.
        let _ = stream.set_nodelay(true);
        let Some(tls) = tls else {
            return self.serve(stream).await;
        };
        let limit = self.state.limits.header_time;
        match tokio::time::timeout(limit, tls.accept(stream)).await {
            Ok(Ok(stream)) => self.serve(stream).await,
            Ok(Err(error)) => tracing::debug!(%error, "a TLS handshake failed"),
            Err(_) => tracing::debug!("a TLS handshake took too long"),
        }
    }

    async fn serve(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let limits = &self.state.limits;
        let stream = TokioIo::new(StallLimit::new(stream, limits.stall_time));
        let service = TowerToHyperService::new(self.router);
        let peer = self.peer;
        let service = hyper::service::service_fn(move |mut request: hyper::Request<_>| {
            request.extensions_mut().insert(peer);
            hyper::service::Service::call(&service, request)
        });
        let mut builder = hyper::server::conn::http1::Builder::new();
        builder
            .timer(TokioTimer::new())
            .header_read_timeout(limits.header_time)
            .max_buf_size(HEAD_BYTES);
        let connection = builder.serve_connection(stream, service);
        tokio::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = self.state.stopping.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection ended early");
        }
    }
}
