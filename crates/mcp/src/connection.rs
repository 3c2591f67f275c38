//! One connection: a program under a guard or an address, and the handshake.
//!
//! A program talks over its standard streams and runs under a guard process that ends it, and all
//! it started, with this process. It gets a small environment (`BASICS`) and what its configuration
//! adds, so no secret reaches it that the user did not name. An address is spoken to over
//! streamable HTTP, or the transport of 2024, without following redirects.
//!
//! Connecting is the handshake and the lists of what it offers, all within one time limit. What a
//! program writes to standard error is kept, and its end goes into the error message.

use std::{ffi::OsString, path::PathBuf, sync::Arc, time::Duration};

use codespar_tools::process::{Served, ServerHold, ServerLaunch, serve};
use http::{HeaderName, HeaderValue};
use rmcp::{
    ClientLifecycleMode, ClientServiceExt, Peer, RoleClient,
    model::ProtocolVersion,
    service::{ClientInitializeError, RunningService},
    transport::{
        StreamableHttpClientTransport,
        async_rw::AsyncRwTransport,
        streamable_http_client::{
            AuthRequiredError, InsufficientScopeError, StreamableHttpClientTransportConfig,
        },
    },
};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::{
    address,
    client_channel::SharedChannel,
    config::{Endpoint, HttpTransport, ServerConfig},
    elicitation::SharedElicitor,
    event::Listener,
    http_client::HttpClient,
    legacy_sse::LegacySse,
    oauth::{Bearer, McpTokenStore},
    offer::{Offer, OfferError},
    transport::{AnyTransport, ServerTransport},
};

/// Characters of an error, which may hold what the server answered.
const MAX_ERROR: usize = 1_000;
/// How long a connection may take to close in good order.
const FAREWELL: Duration = Duration::from_secs(1);
/// What a server needs of the environment to run at all.
const BASICS: [&str; 16] = [
    "HOME",
    "LANG",
    "LANGUAGE",
    "LOGNAME",
    "NODE_EXTRA_CA_CERTS",
    "PATH",
    "SHELL",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
];

/// What connections of a process share.
#[derive(Debug, Clone)]
pub struct McpSetup {
    /// This binary, which guards the programs; without it they are held by their group alone.
    pub guard: Option<PathBuf>,
    /// Where programs start: the project root.
    pub cwd: PathBuf,
    /// The environment of programs, before their configuration adds to it.
    pub env: Vec<(OsString, OsString)>,
    /// Who puts the questions of servers to the user.
    pub elicitor: SharedElicitor,
    /// The tokens of logins; without it nobody can log in.
    pub tokens: Option<McpTokenStore>,
    /// The way to servers in the program of a client.
    pub client: SharedChannel,
    /// A proxy for addresses that are not on this machine.
    pub proxy: Option<String>,
    /// How long connecting may take. Handshake and list of tools together, both attempts included.
    pub connect_timeout: Duration,
    /// How long a call may take without a sign of progress. Time during which the server waits for
    /// an answer of the user does not count.
    pub call_timeout: Duration,
}

impl McpSetup {
    /// The part of an environment that servers get: enough to run, no secrets.
    pub fn basic_environment(
        vars: impl Iterator<Item = (OsString, OsString)>,
    ) -> Vec<(OsString, OsString)> {
        vars.filter(|(name, _)| {
            name.to_str()
                .is_some_and(|name| BASICS.contains(&name) || name.starts_with("LC_"))
        })
        .collect()
    }
}

/// Why a server cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum McpError {
    /// Its program cannot be started.
    #[error("`{command}` cannot be started: {why}")]
    Start {
        /// The program.
        command: String,
        why: String,
    },
    /// Its address or headers cannot be used.
    #[error("it cannot be reached: {0}")]
    Address(String),
    /// It took too long.
    #[error("no answer within {seconds} s{said}")]
    NoAnswer {
        /// How long was waited.
        seconds: u64,
        /// What it wrote to its standard error.
        said: Said,
    },
    /// It is no MCP server, or one that went away.
    #[error("{why}{said}")]
    Handshake {
        /// What went wrong.
        why: String,
        /// What it wrote to its standard error.
        said: Said,
    },
    /// The user has to log in first, or again.
    #[error("it wants you to log in: codespar mcp login {name}")]
    NeedsLogin {
        /// The name of the server.
        name: String,
        /// The header of the refusal, from which a login starts.
        challenge: String,
    },
    /// The user has to allow it first.
    #[error(
        "it comes with the repository and is not approved; approve it in an interactive session, by \
         `enabledMcpServers` in settings.json of the state directory, or by --mcp-config"
    )]
    NeedsApproval,
    /// The session is over.
    #[error("the session is being ended")]
    Closing,
}

/// The end of what a program wrote to standard error, as part of an error message. At most the last
/// 500 characters are shown; nothing at all where it said nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said(String);

impl std::fmt::Display for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.as_str() {
            "" => Ok(()),
            text => {
                let start = text.char_indices().rev().nth(499).map_or(0, |(at, _)| at);
                write!(f, "; it said: {}", &text[start..])
            }
        }
    }
}

/// A server that answers. Dropped, it kills its program; `close` lets it end by itself first.
pub(super) struct Connection {
    service: RunningService<RoleClient, Listener>,
    /// None for an address.
    hold: Option<ServerHold>,
    /// Cancelled when the client has let go of the transport.
    ended: CancellationToken,
}

impl Connection {
    /// Connects and asks what it offers. Servers of both eras of the protocol are understood: one
    /// that refuses the handshake of the older is asked in the way of the newer. The second attempt
    /// starts a program anew. If both fail, the error of the first is returned: it is the one of
    /// the protocol that most servers speak.
    pub(super) async fn open(
        config: &ServerConfig,
        setup: &Arc<McpSetup>,
        listener: Listener,
    ) -> Result<(Self, Offer), McpError> {
        let deadline = Instant::now() + setup.connect_timeout;
        let attempt = |mode| attempt(config, setup, listener.clone(), mode, deadline);
        let (first, is_newer) = match attempt(ClientLifecycleMode::Initialize).await {
            Ok(opened) => return Ok(opened),
            Err(failed) => failed,
        };
        if !is_newer {
            return Err(first);
        }
        let newer = ClientLifecycleMode::Discover {
            preferred_versions: vec![ProtocolVersion::LATEST],
        };
        attempt(newer).await.map_err(|_| first)
    }

    pub(super) fn peer(&self) -> Peer<RoleClient> {
        self.service.peer().clone()
    }

    /// Cancelled when it is over, also where the server ended it.
    pub(super) fn ended(&self) -> CancellationToken {
        self.ended.clone()
    }

    /// Lets go of it in good order; nothing of it is left but what it said last.
    pub(super) async fn close(mut self) -> Said {
        let _ = self.service.close_with_timeout(FAREWELL).await;
        match &mut self.hold {
            Some(hold) => {
                hold.end().await;
                Said(hold.stderr_tail())
            }
            None => Said::default(),
        }
    }
}

/// One try. The error comes with whether the server may speak the newer protocol.
async fn attempt(
    config: &ServerConfig,
    setup: &Arc<McpSetup>,
    listener: Listener,
    mode: ClientLifecycleMode,
    deadline: Instant,
) -> Result<(Connection, Offer), (McpError, bool)> {
    let (transport, mut hold) = match &config.endpoint {
        Endpoint::Program { command, .. } => {
            let served = serve(&launch(config, setup), setup.guard.as_deref());
            let Served {
                input,
                output,
                hold,
            } = served.map_err(|error| {
                let (command, why) = (command.clone(), error.to_string());
                (McpError::Start { command, why }, false)
            })?;
            let streams = AsyncRwTransport::new_client(output, input);
            (AnyTransport::Program(streams), Some(hold))
        }
        Endpoint::Http { .. } => {
            let transport = timeout_at(deadline, http(config, setup)).await;
            let transport = transport.unwrap_or_else(|_| Err(no_answer(setup, Said::default())));
            (transport.map_err(|error| (error, false))?, None)
        }
        Endpoint::Client => {
            let client = setup.client.connect(&config.name);
            let client = client.ok_or_else(|| {
                let why = "no client is there that has it".to_owned();
                (McpError::Address(why), false)
            })?;
            (AnyTransport::Client(client), None)
        }
    };
    let ended = CancellationToken::new();
    let transport = ServerTransport::new(transport, &ended);
    let handshake = listener.serve_with_lifecycle(transport, mode);
    let handshake = timeout_at(deadline, handshake).await;
    let (why, is_newer) = match handshake {
        Ok(Ok(service)) => {
            let connection = Connection {
                service,
                hold,
                ended,
            };
            return match offered(&connection.service, deadline).await {
                Ok(offer) => Ok((connection, offer)),
                Err(error) => {
                    let said = connection.close().await;
                    Err((lacking(config, &error, said), false))
                }
            };
        }
        Ok(Err(error)) => match error.auth_challenge() {
            Some(challenge) => return Err((needs_login(config, challenge), false)),
            None => (Some(message_of(&error)), may_be_newer(&error)),
        },
        Err(_) => (None, false),
    };
    let mut said = Said::default();
    if let Some(hold) = &mut hold {
        hold.end().await;
        said = Said(hold.stderr_tail());
    }
    let error = match why {
        Some(why) => McpError::Handshake { why, said },
        None => no_answer(setup, said),
    };
    Err((error, is_newer))
}

fn no_answer(setup: &McpSetup, said: Said) -> McpError {
    McpError::NoAnswer {
        seconds: setup.connect_timeout.as_secs(),
        said,
    }
}

async fn offered(
    service: &RunningService<RoleClient, Listener>,
    deadline: Instant,
) -> Result<Offer, OfferError> {
    match timeout_at(deadline, Offer::of(service.peer())).await {
        Ok(offer) => offer,
        Err(_) => Err(OfferError::Slow),
    }
}

/// Some servers let anybody connect and want a login for the rest.
fn lacking(config: &ServerConfig, error: &OfferError, said: Said) -> McpError {
    match error.challenge() {
        Some(challenge) => needs_login(config, &challenge),
        None => McpError::Handshake {
            why: error.to_string(),
            said,
        },
    }
}

/// A token that the user wrote into the configuration is the user's to replace.
pub(super) fn needs_login(config: &ServerConfig, challenge: &str) -> McpError {
    if !config.may_log_in() {
        return McpError::Handshake {
            why: "it refuses the `Authorization` in its `headers`".to_owned(),
            said: Said::default(),
        };
    }
    McpError::NeedsLogin {
        name: config.name.clone(),
        challenge: challenge.to_owned(),
    }
}

/// The header with which a server refused a request for want of a login, if that is what happened.
pub(super) fn challenge_in(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(refused) = error.downcast_ref::<AuthRequiredError>() {
            return Some(refused.www_authenticate_header.clone());
        }
        if let Some(refused) = error.downcast_ref::<InsufficientScopeError>() {
            return Some(refused.www_authenticate_header.clone());
        }
        cause = error.source();
    }
    None
}

/// A variable of the configuration replaces one of the basic environment.
fn launch(config: &ServerConfig, setup: &McpSetup) -> ServerLaunch {
    let (command, arguments, own) = match &config.endpoint {
        Endpoint::Program {
            command,
            arguments,
            env,
        } => (command.as_str(), arguments.as_slice(), Some(env)),
        Endpoint::Http { .. } | Endpoint::Client => ("", [].as_slice(), None),
    };
    let mut env = setup.env.clone();
    for (name, value) in own.into_iter().flatten() {
        env.retain(|(known, _)| known != name.as_str());
        env.push((name.into(), value.into()));
    }
    ServerLaunch {
        program: command.into(),
        arguments: arguments.iter().map(Into::into).collect(),
        cwd: setup.cwd.clone(),
        env,
    }
}

/// Header values are marked as sensitive, so that they do not appear in logs of the client. A header
/// of the configuration takes the place of a login.
async fn http(config: &ServerConfig, setup: &Arc<McpSetup>) -> Result<AnyTransport, McpError> {
    let Endpoint::Http {
        url,
        headers,
        transport,
        ..
    } = &config.endpoint
    else {
        return Err(McpError::Address("it has no address".to_owned()));
    };
    let mut own = std::collections::HashMap::new();
    for (name, value) in headers {
        let bad = |what: &str| McpError::Address(format!("the header `{name}` has a bad {what}"));
        let header = HeaderName::try_from(name.as_str()).map_err(|_| bad("name"))?;
        let mut value = HeaderValue::try_from(value.as_str()).map_err(|_| bad("value"))?;
        value.set_sensitive(true);
        own.insert(header, value);
    }
    let bearer = match own.contains_key(&http::header::AUTHORIZATION) {
        true => None,
        false => Bearer::new(url, setup).map(Arc::new),
    };
    let built = address::client(url, setup).and_then(reqwest::ClientBuilder::build);
    let http = built.map_err(|error| McpError::Address(error.to_string()))?;
    let client = HttpClient { http, bearer };
    if *transport == HttpTransport::LegacySse {
        let opened = LegacySse::open(url, client, own).await;
        return match opened {
            Ok(stream) => Ok(AnyTransport::Legacy(stream)),
            Err(error) => Err(match challenge_in(&error) {
                Some(challenge) => needs_login(config, &challenge),
                None => McpError::Address(chain(&error)),
            }),
        };
    }
    let with = StreamableHttpClientTransportConfig::with_uri(Arc::<str>::from(url.as_str()))
        .custom_headers(own);
    let address = StreamableHttpClientTransport::with_client(client, with);
    Ok(AnyTransport::Address(address))
}

/// Whether a server that refused the older handshake is worth asking in the newer way.
fn may_be_newer(error: &ClientInitializeError) -> bool {
    match error {
        ClientInitializeError::JsonRpcError(_) => true,
        ClientInitializeError::TransportError { .. } => !error.is_authorization_required(),
        _ => false,
    }
}

fn message_of(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::ConnectionClosed(_) => "it ended at once".to_owned(),
        ClientInitializeError::TransportError { error, .. } => chain(&*error.error),
        other => chain(other),
    }
}

/// An error with its causes, in one line.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    match text.char_indices().nth(MAX_ERROR) {
        None => text,
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}

/// Runs what must not take long; says whether it was done in time.
pub(super) async fn in_time<T>(limit: Duration, work: impl Future<Output = T>) -> Option<T> {
    timeout(limit, work).await.ok()
}
