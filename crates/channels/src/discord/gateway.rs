//! The gateway of Discord: a session over WebSockets that is resumed where it was.
//!
//! Heartbeats that are not acknowledged end the connection, and the next one resumes the session from
//! the last event that is on record. A session that Discord gave up begins anew: what was said in
//! between is lost, which Discord offers no remedy for. Errors that a new attempt cannot cure, such as
//! a wrong token, end the channel with their reason.

use std::{sync::Arc, time::Duration};

use codespar_protocol::random_fraction;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::{DISCORD, DiscordApi, event, session::GatewaySession};
use crate::{
    ChannelCore,
    client::CallError,
    websocket::{RECONNECT, Socket, SocketError},
};

/// Messages in servers and direct messages, and reactions to them. What mentions us and what is said
/// to us directly is shown without the privileged intent for all content.
const INTENTS: u64 = (1 << 9) | (1 << 10) | (1 << 12) | (1 << 13);
const HELLO_WITHIN: Duration = Duration::from_secs(20);

/// What is said over the gateway.
#[derive(Deserialize)]
struct Payload {
    op: u64,
    #[serde(default)]
    d: Value,
    #[serde(default)]
    s: Option<u64>,
    #[serde(default)]
    t: Option<String>,
}

mod op {
    pub(super) const DISPATCH: u64 = 0;
    pub(super) const HEARTBEAT: u64 = 1;
    pub(super) const IDENTIFY: u64 = 2;
    pub(super) const RESUME: u64 = 6;
    pub(super) const RECONNECT: u64 = 7;
    pub(super) const INVALID_SESSION: u64 = 9;
    pub(super) const HELLO: u64 = 10;
    pub(super) const HEARTBEAT_ACK: u64 = 11;
}

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
enum End {
    /// The session goes on over another connection.
    #[error("{0}")]
    Again(String),
    /// The session is gone; another one is begun.
    #[error("the session is not valid any more")]
    Anew,
    #[error("{0}")]
    Call(#[from] CallError),
    /// It would end in the same way again.
    #[error("{0}")]
    Permanent(String),
}

impl From<SocketError> for End {
    fn from(error: SocketError) -> Self {
        let text = error.to_string();
        match error {
            SocketError::Closed { code: Some(code) } => match code {
                4_004 => Self::Permanent(
                    "DISCORD_BOT_TOKEN is not valid; the Developer Portal gives a new one: the \
                     application, Bot, Reset Token"
                        .to_owned(),
                ),
                // Sharding, version and intents.
                4_010..=4_014 => Self::Permanent(text),
                // The number is wrong; the session timed out.
                4_007 | 4_009 => Self::Anew,
                _ => Self::Again(text),
            },
            _ => Self::Again(text),
        }
    }
}

/// Hands messages to the core until it is cancelled.
pub async fn gateway(api: Arc<DiscordApi>, core: Arc<ChannelCore>, cancel: CancellationToken) {
    let mut gateway = Gateway {
        session: GatewaySession::load(&api.session_file),
        failures: 0,
        api,
        core,
    };
    loop {
        let end = tokio::select! {
            end = gateway.connection() => end,
            () = cancel.cancelled() => return,
        };
        let pause = match end {
            End::Permanent(reason) => {
                tracing::error!("{DISCORD} is not listened to: {reason}");
                return;
            }
            End::Call(CallError::Wait(wait)) => wait,
            End::Anew => {
                gateway.forget();
                // As Discord asks for: between one and five seconds.
                Duration::from_secs(1) + Duration::from_secs(4).mul_f64(random_fraction())
            }
            End::Again(_) | End::Call(_) => {
                gateway.failures += 1;
                RECONNECT.jittered_delay(gateway.failures)
            }
        };
        tracing::info!("the gateway of {DISCORD} is left: {end}");
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = cancel.cancelled() => return,
        }
    }
}

struct Gateway {
    api: Arc<DiscordApi>,
    core: Arc<ChannelCore>,
    session: Option<GatewaySession>,
    /// Connections in a row that did not come to work.
    failures: u32,
}

/// When the next heartbeat is due, and whether the last one was heard.
struct Heart {
    interval: Duration,
    next: Instant,
    is_heard: bool,
}

impl Gateway {
    /// Connects, and listens until the connection ends.
    async fn connection(&mut self) -> End {
        let mut socket = match self.connected().await {
            Ok(socket) => socket,
            Err(end) => return end,
        };
        let end = match self.converse(&mut socket).await {
            Ok(never) => match never {},
            Err(end) => end,
        };
        // Otherwise it is dropped: a proper close would end the session, which goes on.
        if matches!(end, End::Anew | End::Permanent(_)) {
            socket.close().await;
        }
        end
    }

    async fn connected(&self) -> Result<Socket, End> {
        let url = self.url().await?;
        Ok(Socket::connect(&url, self.api.proxy.as_ref()).await?)
    }

    async fn converse(&mut self, socket: &mut Socket) -> Result<std::convert::Infallible, End> {
        let mut heart = hello(socket).await?;
        socket.send(self.introduction().to_string()).await?;
        loop {
            tokio::select! {
                text = socket.next() => {
                    let payload = payload(&text?)?;
                    self.hear(socket, &mut heart, payload).await?;
                }
                () = sleep_until(heart.next) => {
                    if !heart.is_heard {
                        return Err(End::Again("the last heartbeat was not answered".to_owned()));
                    }
                    heart.is_heard = false;
                    heart.next = Instant::now() + heart.interval;
                    self.beat(socket).await?;
                }
            }
        }
    }

    /// Where the session is, or where one can be begun.
    async fn url(&self) -> Result<Url, End> {
        let url = match &self.session {
            Some(session) => session.url.clone(),
            None => {
                let found = self.api.get("gateway/bot").await?;
                let limit = &found["session_start_limit"];
                if limit["remaining"] == 0 {
                    let wait = limit["reset_after"].as_u64().unwrap_or(60_000);
                    return Err(CallError::Wait(Duration::from_millis(wait)).into());
                }
                found["url"].as_str().unwrap_or_default().to_owned()
            }
        };
        let mut url: Url = url
            .parse()
            .map_err(|_| End::Again("the address of the gateway cannot be read".to_owned()))?;
        let is_discords = url.scheme() == "wss"
            && url
                .host_str()
                .is_some_and(|host| host == "discord.gg" || host.ends_with(".discord.gg"));
        // The token goes there.
        if !is_discords && self.api.api.scheme() == "https" {
            return Err(End::Anew);
        }
        url.set_query(Some("v=10&encoding=json"));
        Ok(url)
    }

    fn introduction(&self) -> Value {
        let token = self.api.token();
        match &self.session {
            Some(session) => json!({"op": op::RESUME, "d": {
                "token": token, "session_id": session.id, "seq": session.sequence,
            }}),
            None => json!({"op": op::IDENTIFY, "d": {
                "token": token, "intents": INTENTS,
                "properties": {"os": "linux", "browser": "codespar", "device": "codespar"},
            }}),
        }
    }

    async fn beat(&self, socket: &mut Socket) -> Result<(), End> {
        let sequence = self.session.as_ref().map(|session| session.sequence);
        let beat = json!({"op": op::HEARTBEAT, "d": sequence});
        Ok(socket.send(beat.to_string()).await?)
    }

    async fn hear(
        &mut self,
        socket: &mut Socket,
        heart: &mut Heart,
        payload: Payload,
    ) -> Result<(), End> {
        match payload.op {
            op::DISPATCH => self.dispatch(payload).await,
            op::HEARTBEAT => self.beat(socket).await,
            op::HEARTBEAT_ACK => {
                heart.is_heard = true;
                Ok(())
            }
            op::RECONNECT => Err(End::Again("Discord asks to connect again".to_owned())),
            op::INVALID_SESSION if payload.d == true => {
                Err(End::Again("the session is to be resumed again".to_owned()))
            }
            op::INVALID_SESSION => Err(End::Anew),
            _ => Ok(()),
        }
    }

    /// Once what an event says is on record, its number is, too. If it is not, the connection ends,
    /// and Discord tells of the event again when the session is resumed.
    async fn dispatch(&mut self, payload: Payload) -> Result<(), End> {
        match payload.t.as_deref() {
            Some("READY") => self.begin(&payload.d),
            Some("RESUMED") => self.failures = 0,
            Some("MESSAGE_CREATE") => match event::parsed(&payload.d) {
                Ok(message) => {
                    let session = self.session.as_ref();
                    let ours = session.map(|one| one.user.as_str()).unwrap_or_default();
                    let message = self.api.said(message, ours).await?;
                    self.record(message).await?;
                }
                Err(error) => unreadable(&error),
            },
            Some("MESSAGE_REACTION_ADD") => match event::parsed(&payload.d) {
                Ok(reaction) => self.react(reaction, payload.s).await?,
                Err(error) => unreadable(&error),
            },
            Some("INTERACTION_CREATE") => match event::parsed(&payload.d) {
                Ok(pressed) => self.press(pressed).await?,
                Err(error) => unreadable(&error),
            },
            _ => {}
        }
        if let (Some(session), Some(sequence)) = (&mut self.session, payload.s) {
            session.sequence = sequence;
            session.keep(&self.api.session_file);
            if payload.t.as_deref() == Some("MESSAGE_CREATE") {
                self.core.reach("noted");
            }
        }
        Ok(())
    }

    fn begin(&mut self, ready: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        self.failures = 0;
        self.session = Some(GatewaySession {
            id: text(&ready["session_id"]),
            url: text(&ready["resume_gateway_url"]),
            user: text(&ready["user"]["id"]),
            sequence: 0,
        });
    }

    fn forget(&mut self) {
        self.session = None;
        GatewaySession::forget(&self.api.session_file);
    }

    async fn record(&self, message: Option<crate::engine::ChainedMessage>) -> Result<(), End> {
        let Some(message) = message else {
            return Ok(());
        };
        self.core.reach("arrived");
        let received = self.core.receive_chained(message).await;
        let failed = |error| End::Again(format!("a message is not on record: {error}"));
        received.map(|_| ()).map_err(failed)
    }

    /// A reaction has no id: what tells it from a later one is the number of its event.
    async fn react(&self, reaction: event::Reaction, number: Option<u64>) -> Result<(), End> {
        let session = self.session.as_ref();
        let ours = session.map(|one| one.user.as_str()).unwrap_or_default();
        let Some(stop) = self.api.stopped(reaction, ours, number).await? else {
            return Ok(());
        };
        let received = self.core.receive_stop(stop).await;
        received.map_err(|error| End::Again(format!("a reaction is not on record: {error}")))
    }

    /// The client that shows the button waits for three seconds. It does not matter if it fails.
    async fn press(&self, pressed: event::Interaction) -> Result<(), End> {
        let path = format!("interactions/{}/{}/callback", pressed.id, pressed.token);
        let message = self.api.pressed(pressed).await?;
        self.record(message).await?;
        let done = json!({"type": 6});
        let answered = self
            .api
            .call(reqwest::Method::POST, &path, Some(&done))
            .await;
        if let Err(error) = answered {
            tracing::debug!("a button of {DISCORD} is not acknowledged: {error}");
        }
        Ok(())
    }
}

/// Without its text, which is somebody's.
fn unreadable(error: &serde_json::Error) {
    tracing::warn!("an event of {DISCORD} cannot be read: {error}");
}

fn payload(text: &str) -> Result<Payload, End> {
    let read = serde_json::from_str(text);
    read.map_err(|_| End::Again("what Discord says cannot be read".to_owned()))
}

/// The first beat comes at a time of its own, so that many clients do not beat together.
async fn hello(socket: &mut Socket) -> Result<Heart, End> {
    let late = |_| End::Again("Discord does not say hello".to_owned());
    let text = timeout(HELLO_WITHIN, socket.next()).await.map_err(late)??;
    let hello = payload(&text)?;
    let interval = hello.d["heartbeat_interval"].as_u64();
    let (op::HELLO, Some(interval)) = (hello.op, interval) else {
        return Err(End::Again("Discord does not say hello".to_owned()));
    };
    let interval = Duration::from_millis(interval.max(1));
    Ok(Heart {
        interval,
        next: Instant::now() + interval.mul_f64(random_fraction()),
        is_heard: true,
    })
}
