//! Socket Mode: Slack delivers over a WebSocket that we open, so no address of ours is public.
//!
//! ```text
//! apps.connections.open ─▶ wss://… ─▶ hello
//!    envelope (events_api │ interactive │ slash_commands) ─▶ on record ─▶ {"envelope_id": …}
//!    disconnect ─▶ the next connection is opened; this one is read until Slack closes it
//! ```
//!
//! What was not acknowledged Slack delivers again, over any connection of the app. An address works
//! once, so every connection begins with asking for one.

use std::{sync::Arc, time::Duration};

use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::{
    SlackSetup,
    event::{Delivered, read_event},
    intake::take,
    interaction::{button, command},
    web::{SlackApi, USUAL_METHOD_ERROR},
};
use crate::{
    ChannelCore, ClientError, SendError,
    websocket::{RECONNECT, Socket, SocketError},
};

/// A connection that Slack announced to close is read for so long.
const LAST_READ: Duration = Duration::from_secs(30);
/// After one that was to end so soon the next one is not opened at once: it may go on like that.
const SHORT_LIFE: Duration = Duration::from_secs(10);

/// Opens connections and hands over what comes in.
pub struct SlackSocket {
    api: SlackApi,
    app_token: SecretString,
    proxy: Option<Url>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Frame {
    Hello,
    Disconnect {
        #[serde(default)]
        reason: String,
    },
    EventsApi {
        envelope_id: String,
        payload: Value,
    },
    Interactive {
        envelope_id: String,
        payload: Value,
    },
    SlashCommands {
        envelope_id: String,
        payload: Value,
    },
    #[serde(other)]
    Other,
}

/// Why a connection is not read any more.
enum Ended {
    Cancelled,
    /// Slack will close it; what is left in it is still to be read.
    Refresh(Box<Socket>),
    Lost(SocketError),
    /// Somebody switched Socket Mode off.
    Disabled,
}

impl SlackSocket {
    pub fn new(setup: &SlackSetup, app_token: SecretString) -> Result<Self, ClientError> {
        Ok(Self {
            api: SlackApi::new(setup)?,
            app_token,
            proxy: setup.proxy.clone(),
        })
    }

    /// Keeps a connection open until `cancel`.
    pub async fn run(self, core: Arc<ChannelCore>, cancel: CancellationToken) {
        // In a row: connections that Slack did not greet.
        let mut failures = 0;
        loop {
            let opened = tokio::select! {
                opened = self.open() => opened,
                () = cancel.cancelled() => return,
            };
            let began = Instant::now();
            let ended = match opened {
                Ok(socket) => converse(socket, &core, &cancel, &mut failures).await,
                Err(error) => Ended::Lost(error),
            };
            match ended {
                Ended::Cancelled => return,
                Ended::Refresh(old) => {
                    let (core, cancel) = (core.clone(), cancel.clone());
                    tokio::spawn(finish(*old, core, cancel));
                    if began.elapsed() > SHORT_LIFE {
                        continue;
                    }
                }
                Ended::Lost(error) => tracing::warn!("Socket Mode of Slack: {error}"),
                Ended::Disabled => {
                    tracing::warn!("Socket Mode is switched off in the settings of the Slack app");
                }
            }
            failures += 1;
            tokio::select! {
                () = tokio::time::sleep(RECONNECT.jittered_delay(failures)) => {}
                () = cancel.cancelled() => return,
            }
        }
    }

    async fn open(&self) -> Result<Socket, SocketError> {
        let url = open_url(&self.api, &self.app_token).await;
        let url = url.map_err(|error| SocketError::NotConnected(error.to_string()))?;
        Socket::connect(&url, self.proxy.as_ref()).await
    }
}

/// Asks for the address of a connection. It holds a ticket, so it is in no message of ours.
pub(super) async fn open_url(api: &SlackApi, app_token: &SecretString) -> Result<Url, SendError> {
    let url = api.url("apps.connections.open")?;
    let request = api.http.post(url);
    let answer = api
        .call_with(request, app_token.expose_secret())
        .await?
        .answer;
    let unusable = || SendError::Permanent(USUAL_METHOD_ERROR.to_owned());
    let url: Url = answer
        .url
        .and_then(|url| url.parse().ok())
        .ok_or_else(unusable)?;
    // A server of one's own may have no TLS; Slack has.
    match (api.api.scheme(), url.scheme()) {
        (_, "wss") | ("http", "ws") => Ok(url),
        _ => Err(unusable()),
    }
}

async fn converse(
    mut socket: Socket,
    core: &ChannelCore,
    cancel: &CancellationToken,
    failures: &mut u32,
) -> Ended {
    loop {
        let text = tokio::select! {
            text = socket.next() => text,
            () = cancel.cancelled() => {
                socket.close().await;
                return Ended::Cancelled;
            }
        };
        let text = match text {
            Ok(text) => text,
            Err(error) => return Ended::Lost(error),
        };
        match serde_json::from_str(&text) {
            Ok(Frame::Hello) => *failures = 0,
            Ok(Frame::Disconnect { reason }) if reason == "link_disabled" => {
                return Ended::Disabled;
            }
            Ok(Frame::Disconnect { .. }) => return Ended::Refresh(Box::new(socket)),
            Ok(frame) => {
                if let Err(error) = acknowledged(&mut socket, core, frame).await {
                    return Ended::Lost(error);
                }
            }
            // Without the text, which may be somebody's message.
            Err(error) => tracing::warn!("an envelope of Slack cannot be read: {error}"),
        }
    }
}

/// Reads the rest of a connection that Slack is about to close, beside the new one.
async fn finish(socket: Socket, core: Arc<ChannelCore>, cancel: CancellationToken) {
    let mut failures = 0;
    let reading = converse(socket, &core, &cancel, &mut failures);
    if let Ok(Ended::Refresh(socket)) = tokio::time::timeout(LAST_READ, reading).await {
        // Announced a second time.
        socket.close().await;
    }
}

/// Puts an envelope on record and acknowledges it. One that cannot be recorded is not acknowledged;
/// one that cannot be read would be no better the next time.
async fn acknowledged(
    socket: &mut Socket,
    core: &ChannelCore,
    frame: Frame,
) -> Result<(), SocketError> {
    let (envelope_id, delivered) = match frame {
        Frame::EventsApi {
            envelope_id,
            payload,
        } => (envelope_id, read_event(payload)),
        Frame::Interactive {
            envelope_id,
            payload,
        } => (envelope_id, serde_json::from_value(payload).map(button)),
        Frame::SlashCommands {
            envelope_id,
            payload,
        } => (envelope_id, serde_json::from_value(payload).map(command)),
        Frame::Hello | Frame::Disconnect { .. } | Frame::Other => return Ok(()),
    };
    let delivered = delivered.unwrap_or_else(|error| {
        tracing::warn!("an event of Slack cannot be read: {error}");
        Delivered::Nothing
    });
    match take(core, delivered).await {
        Ok(shown) => {
            let mut acknowledgement = json!({"envelope_id": envelope_id});
            if let Some(shown) = shown {
                acknowledgement["payload"] = shown;
            }
            socket.send(acknowledgement.to_string()).await
        }
        Err(error) => {
            tracing::warn!("an event of Slack is not on record: {error}");
            Ok(())
        }
    }
}
