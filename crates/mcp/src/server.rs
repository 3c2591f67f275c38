//! A server of this process: connected once, shared by all agents, taken up again when it dies.
//!
//! ```text
//! needs-approval --approve--> pending --begin--> connected <--------+
//!                                |                   | transport ends |
//!                                +-----> failed <----+                |
//!                                          | again after 1, 2, 4 … 60 s
//!                                          +--------------------------+
//! ```
//!
//! A connection that ends is noticed by the next call, or by whoever looks (`is_gone`). That call
//! is never made a second time: its outcome is unknown, and only the model can judge whether to
//! repeat it. It connects anew and tells the model so.
//!
//! Each connection has a number, its generation. Whoever finds a connection dead names the
//! generation it saw, so that of many calls that fail at once only the first connects.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use codespar_protocol::Backoff;
use futures::future::BoxFuture;
use parking_lot::RwLock;
use rmcp::{
    Peer, RoleClient,
    model::{ClientRequest, DiscoverRequest, DiscoverRequestParams, PingRequest, Tool},
    service::ServiceError,
};
use tokio::sync::{Mutex, broadcast, watch};
use tokio_util::sync::CancellationToken;

use crate::{
    config::ServerConfig,
    connection::{Connection, McpError, McpSetup, Said, in_time},
    elicitation::OpenElicitations,
    event::{Listener, McpEvent},
    oauth::{Login, LoginError},
    offer::Offer,
    progress::CallsInProgress,
};

/// How many events may wait for a slow listener.
const EVENTS: usize = 256;

/// How long after a failed attempt to connect the next one is made.
const RECONNECT: Backoff = Backoff {
    first: Duration::from_secs(1),
    longest: Duration::from_secs(60),
};

/// How a server stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpStatus {
    /// Nobody has needed it yet, or it is being connected.
    Pending,
    /// It can be called.
    Connected,
    /// It cannot.
    Failed(McpError),
    /// It comes with a repository and nobody has allowed it.
    NeedsApproval,
}

impl McpStatus {
    /// The word in the init line.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Connected => "connected",
            Self::Failed(McpError::NeedsLogin { .. }) => "needs-auth",
            Self::Failed(_) => "failed",
            Self::NeedsApproval => "needs-approval",
        }
    }
}

/// Shared by all agents of a project. Calls run side by side on one connection.
pub struct McpServer {
    config: ServerConfig,
    pub(super) setup: Arc<McpSetup>,
    events: broadcast::Sender<McpEvent>,
    /// Held while connecting, so that one attempt runs at a time. Calls use the peer in `face` and
    /// do not wait for it.
    connection: Mutex<Option<Connection>>,
    face: RwLock<Face>,
    /// The first connection was begun, or is not wanted any more.
    begun: AtomicBool,
    /// The first attempt to connect is over, whatever came of it.
    settled: watch::Sender<bool>,
    pub(super) elicitations: OpenElicitations,
    pub(super) calls: CallsInProgress,
    /// Whether it is being reconnected in the background.
    retrying: AtomicBool,
    pub(super) closing: CancellationToken,
    pub(super) this: Weak<Self>,
}

/// What is known of it without waiting.
struct Face {
    status: McpStatus,
    offer: Offer,
    peer: Option<Peer<RoleClient>>,
    /// Cancelled when the connection of `peer` is over.
    ended: CancellationToken,
    /// Counts connections, so that each death is followed by one new connection only.
    generation: u64,
}

/// A connection to call over.
pub(super) struct Line {
    pub(super) peer: Peer<RoleClient>,
    pub(super) generation: u64,
}

impl McpServer {
    pub(super) fn new(config: ServerConfig, setup: Arc<McpSetup>, status: McpStatus) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            config,
            setup,
            events: broadcast::channel(EVENTS).0,
            connection: Mutex::new(None),
            face: RwLock::new(Face {
                status,
                offer: Offer::default(),
                peer: None,
                ended: CancellationToken::new(),
                generation: 0,
            }),
            begun: AtomicBool::new(false),
            settled: watch::channel(false).0,
            elicitations: OpenElicitations::default(),
            calls: CallsInProgress::default(),
            retrying: AtomicBool::new(false),
            closing: CancellationToken::new(),
            this: this.clone(),
        })
    }

    /// How it is configured.
    pub fn config(&self) -> &ServerConfig {
        &self.config
    }

    pub fn status(&self) -> McpStatus {
        self.face.read().status.clone()
    }

    /// The names and descriptions of the tools it listed.
    pub fn tool_texts(&self) -> Vec<(String, String)> {
        let face = self.face.read();
        let text = |tool: &Tool| {
            let description = tool.description.as_deref().unwrap_or_default();
            (tool.name.to_string(), description.to_owned())
        };
        face.offer.tools.iter().map(text).collect()
    }

    /// The tools it listed.
    pub(super) fn tools(&self) -> Vec<Tool> {
        self.face.read().offer.tools.clone()
    }

    /// What it offers, and the connection it offered it on.
    pub(super) fn offer<T>(&self, look: impl FnOnce(&Offer) -> T) -> T {
        look(&self.face.read().offer)
    }

    /// Puts new lists in the place of the old ones, unless it was connected anew meanwhile.
    pub(super) fn update_offer(&self, generation: u64, change: impl FnOnce(&mut Offer)) {
        let mut face = self.face.write();
        if face.generation == generation {
            change(&mut face.offer);
        }
    }

    /// Begins a login of the user, from how the server refused last.
    pub fn login(&self) -> BoxFuture<'_, Result<Login, LoginError>> {
        Box::pin(async move {
            let status = self.status();
            let challenge = match &status {
                McpStatus::Failed(McpError::NeedsLogin { challenge, .. }) => Some(challenge),
                _ => None,
            };
            Login::begin(&self.config, &self.setup, challenge.map(String::as_str)).await
        })
    }

    /// Whether it refused to connect, or refused a call, for want of a login.
    pub fn wants_login(&self) -> bool {
        matches!(
            self.status(),
            McpStatus::Failed(McpError::NeedsLogin { .. })
        ) || Login::is_pending(&self.config, &self.setup)
    }

    /// What it was sent as the user's login, which it could repeat.
    pub(super) fn token(&self) -> Option<String> {
        Login::token(&self.config, &self.setup)
    }

    /// Forgets the tokens of the user; says whether there were any.
    pub fn logout(&self) -> Result<bool, LoginError> {
        Login::forget(&self.config, &self.setup)
    }

    fn listener(&self) -> Listener {
        Listener {
            server: self.config.name.clone(),
            events: self.events.clone(),
            elicitor: self.setup.elicitor.get(),
            elicitations: self.elicitations.clone(),
            calls: self.calls.clone(),
        }
    }

    /// Hears what it tells from now on.
    pub fn events(&self) -> broadcast::Receiver<McpEvent> {
        self.events.subscribe()
    }

    pub(super) fn teller(&self) -> broadcast::Sender<McpEvent> {
        self.events.clone()
    }

    /// The user allows it. Does not connect; `begin` does.
    pub fn approve(&self) {
        let mut face = self.face.write();
        if face.status == McpStatus::NeedsApproval {
            face.status = McpStatus::Pending;
        }
    }

    /// Begins to connect, once, in the background.
    pub fn begin(self: &Arc<Self>) {
        if self.status() == McpStatus::NeedsApproval || self.begun.swap(true, Ordering::SeqCst) {
            return;
        }
        let server = self.clone();
        tokio::spawn(async move {
            // The status tells what came of it.
            let _ = server.connect(0).await;
            server.settled.send_replace(true);
        });
    }

    /// Waits until it is connected, or known not to be. Returns at once for one that is not
    /// approved. Not more than the first attempt is waited for.
    pub fn settle(self: &Arc<Self>) -> BoxFuture<'_, McpStatus> {
        Box::pin(async move {
            self.begin();
            if self.begun.load(Ordering::SeqCst) {
                // The sender is ours: it does not go away.
                let _ = self.settled.subscribe().wait_for(|done| *done).await;
            }
            self.status()
        })
    }

    /// Connects, if nobody has since the generation seen. Ok also where another has connected
    /// meanwhile. A failure starts the attempts in the background.
    async fn connect(&self, seen: u64) -> Result<(), McpError> {
        let mut connection = self.connection.lock().await;
        if self.face.read().generation != seen {
            return Ok(());
        }
        if let Some(old) = connection.take() {
            old.close().await;
        }
        let attempt = tokio::select! {
            attempt = Connection::open(&self.config, &self.setup, self.listener()) => attempt,
            () = self.closing.cancelled() => Err(McpError::Closing),
        };
        match attempt {
            Ok((opened, offer)) => {
                let generation = {
                    let mut face = self.face.write();
                    face.status = McpStatus::Connected;
                    face.offer = offer;
                    face.peer = Some(opened.peer());
                    face.ended = opened.ended();
                    face.generation += 1;
                    face.generation
                };
                *connection = Some(opened);
                self.follow_lists(generation);
                Ok(())
            }
            Err(error) => {
                let mut face = self.face.write();
                face.status = McpStatus::Failed(error.clone());
                face.peer = None;
                self.keep_trying();
                Err(error)
            }
        }
    }

    /// Tries to connect in the background until it succeeds or the session ends, whether or not it
    /// was connected before. Agents that were made while the server was there still have its tools;
    /// those that are made later, and the user's own at its next turn, get them.
    fn keep_trying(&self) {
        if self.closing.is_cancelled() || self.retrying.swap(true, Ordering::SeqCst) {
            return;
        }
        let (this, closing) = (self.this.clone(), self.closing.clone());
        tokio::spawn(async move {
            for attempt in 1.. {
                tokio::select! {
                    () = tokio::time::sleep(RECONNECT.delay(attempt)) => {}
                    () = closing.cancelled() => return,
                }
                let Some(server) = this.upgrade() else { return };
                if !server.is_gone() || server.reconnect().await.is_ok() {
                    server.retrying.store(false, Ordering::SeqCst);
                    return;
                }
            }
        });
    }

    /// Lets go of the connection until [`McpServer::reconnect`]; meanwhile it has no tools.
    pub fn suspend(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let mut connection = self.connection.lock().await;
            if let Some(open) = connection.take() {
                open.close().await;
            }
            let mut face = self.face.write();
            face.status = McpStatus::Pending;
            face.offer = Offer::default();
            face.peer = None;
            face.generation += 1;
        })
    }

    /// Connects anew, whatever is known of the connection there is.
    pub fn reconnect(&self) -> BoxFuture<'_, Result<(), McpError>> {
        Box::pin(async move {
            let seen = self.face.read().generation;
            self.connect(seen).await
        })
    }

    /// The error is for the model and says whether reconnecting is under way.
    pub(super) fn line(&self) -> Result<Line, String> {
        let face = self.face.read();
        match (&face.peer, &face.status) {
            (Some(peer), _) => Ok(Line {
                peer: peer.clone(),
                generation: face.generation,
            }),
            (None, McpStatus::Failed(error)) => {
                let again = match self.retrying.load(Ordering::SeqCst) {
                    true => "; reconnecting is tried again in the background",
                    false => "",
                };
                Err(self.named(&format!("is down: {error}{again}")))
            }
            (None, _) => Err(self.named("is not connected")),
        }
    }

    pub(super) fn named(&self, text: &str) -> String {
        format!("the MCP server `{}` {text}", self.config.name)
    }

    /// Connects anew after a death and says what happened.
    pub(super) async fn revived(&self, line: &Line, reason: &str) -> String {
        let mut said = Said::default();
        {
            let mut connection = self.connection.lock().await;
            if self.generation() == line.generation
                && let Some(dead) = connection.take()
            {
                said = dead.close().await;
            }
        }
        let after = match self.connect(line.generation).await {
            Ok(()) => {
                "it was connected anew and may have lost what it knew; call again if that is \
                       safe"
                    .to_owned()
            }
            Err(error) => {
                format!("connecting anew failed: {error}; it is tried again in the background")
            }
        };
        self.named(&format!("{reason}{said}. {after}"))
    }

    /// Whether it still answers. `ping`, or the handshake's question in the newer protocol, which
    /// has no ping. For health checks of monitors.
    pub fn check(&self) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            let line = self.line()?;
            if line.peer.is_transport_closed() {
                return Err("it has ended".to_owned());
            }
            let has_ping = line
                .peer
                .peer_info()
                .is_none_or(|info| info.protocol_version.has_initialize());
            let request = if has_ping {
                ClientRequest::PingRequest(PingRequest::default())
            } else {
                ClientRequest::DiscoverRequest(DiscoverRequest::new(DiscoverRequestParams {}))
            };
            match in_time(self.setup.connect_timeout, line.peer.send_request(request)).await {
                Some(Ok(_)) => Ok(()),
                // One that refuses is there.
                Some(Err(ServiceError::McpError(_))) => Ok(()),
                Some(Err(error)) => Err(error.to_string()),
                None => Err(format!(
                    "no answer within {} s",
                    self.setup.connect_timeout.as_secs()
                )),
            }
        })
    }

    /// Whether the connection is known to be gone, without asking the server.
    pub fn is_gone(&self) -> bool {
        let face = self.face.read();
        match &face.peer {
            Some(peer) => face.ended.is_cancelled() || peer.is_transport_closed(),
            None => true,
        }
    }

    /// Waits until the connection with this number is gone, or another has taken its place; returns
    /// at once where that is so already. May be dropped and called again.
    pub fn lost(&self, generation: u64) -> BoxFuture<'static, ()> {
        let face = self.face.read();
        let is_current = face.generation == generation && face.peer.is_some();
        let ended = is_current.then(|| face.ended.clone());
        Box::pin(async move {
            // Whoever connects anew lets go of the old connection first.
            if let Some(ended) = ended {
                ended.cancelled().await;
            }
        })
    }

    /// Counts connections: another number, another connection.
    pub fn generation(&self) -> u64 {
        self.face.read().generation
    }

    /// Lets go of it, for a caller that has no set.
    pub fn end(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.close())
    }

    /// Lets go of it in good order. Attempts under way end with `McpError::Closing`, and no new one
    /// starts.
    pub(super) async fn close(&self) {
        // Not to be connected again.
        self.begun.store(true, Ordering::SeqCst);
        self.closing.cancel();
        // Whoever waits for a connection waits no longer.
        self.settled.send_replace(true);
        if let Some(connection) = self.connection.lock().await.take() {
            connection.close().await;
        }
    }
}
