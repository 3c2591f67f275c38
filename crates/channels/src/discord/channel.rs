//! Discord as a place to post to.
//!
//! A nonce made of the key of a message has Discord refuse to post it a second time. Each edit repeats
//! who may be notified, since Discord forgets it.

use std::{collections::HashSet, sync::Arc, time::Duration};

use async_trait::async_trait;
use codespar_store::ThreadRef;
use parking_lot::Mutex;
use reqwest::Method;
use serde_json::{Value, json};

use super::{DISCORD, DiscordApi, draw, places::OWN_CHANNEL, rest::send_error};
use crate::{AddressedMessage, ChannelAdapter, ChannelFinding, Pace, SendError};

/// About five calls in five seconds for a channel.
const PACE: Pace = Pace {
    post: Duration::from_millis(1_000),
    edit: Duration::from_millis(1_500),
};

/// Discord as a place to post to.
pub struct DiscordChannel {
    api: Arc<DiscordApi>,
    /// Keys of messages that could not be edited any more: they are posted with another nonce, so
    /// that Discord does not give the old one back.
    renewed: Mutex<HashSet<String>>,
}

impl DiscordChannel {
    pub fn new(api: Arc<DiscordApi>) -> Self {
        Self {
            api,
            renewed: Mutex::default(),
        }
    }

    fn nonce(&self, key: &str) -> String {
        match self.renewed.lock().contains(key) {
            true => draw::nonce(&format!("{key}/anew")),
            false => draw::nonce(key),
        }
    }

    async fn send(&self, method: Method, path: &str, body: &Value) -> Result<Value, SendError> {
        let sent = self.api.call(method, path, Some(body)).await;
        sent.map_err(send_error)
    }
}

/// The channel that a thread is shown in.
fn channel_of(at: &ThreadRef) -> &str {
    at.thread
        .strip_prefix(OWN_CHANNEL)
        .unwrap_or(&at.conversation)
}

#[async_trait]
impl ChannelAdapter for DiscordChannel {
    fn name(&self) -> &str {
        DISCORD
    }

    fn pace(&self) -> Pace {
        PACE
    }

    /// A message that Discord has already is not made again, and is as it was then: it is edited to
    /// what is to be said now.
    async fn post(&self, outgoing: AddressedMessage<'_>) -> Result<String, SendError> {
        let AddressedMessage { at, key, message } = outgoing;
        let mut body = draw::body(message);
        body["nonce"] = json!(self.nonce(key));
        body["enforce_nonce"] = json!(true);
        if !at.thread.starts_with(OWN_CHANNEL) {
            body["message_reference"] = json!({
                "message_id": at.thread,
                // The person may have deleted it.
                "fail_if_not_exists": false,
            });
        }
        let path = format!("channels/{}/messages", channel_of(at));
        let posted = self.send(Method::POST, &path, &body).await?;
        let missing = || SendError::Permanent("Discord gave no id".to_owned());
        let id = posted["id"].as_str().ok_or_else(missing)?;
        if posted["content"] != body["content"] {
            self.edit(id, outgoing).await?;
        }
        Ok(id.to_owned())
    }

    async fn edit(&self, id: &str, outgoing: AddressedMessage<'_>) -> Result<(), SendError> {
        let AddressedMessage { at, key, message } = outgoing;
        let path = format!("channels/{}/messages/{id}", channel_of(at));
        let body = draw::body(message);
        let sent = self.send(Method::PATCH, &path, &body).await;
        if let Err(SendError::CannotEdit) = sent {
            self.renewed.lock().insert(key.to_owned());
        }
        sent.map(|_| ())
    }

    /// Not needed: a message is posted with a nonce, and is there once.
    async fn find_posted(&self, _at: &ThreadRef, _key: &str) -> Result<Option<String>, SendError> {
        Ok(None)
    }

    async fn fetch_image(&self, reference: &str, most: usize) -> Result<Vec<u8>, String> {
        self.api.attachment(reference, most).await
    }

    async fn check(&self) -> Vec<ChannelFinding> {
        let name = match self.api.get("users/@me").await {
            Ok(user) => user["username"].as_str().unwrap_or_default().to_owned(),
            Err(error) => {
                return vec![ChannelFinding::problem(format!(
                    "DISCORD_BOT_TOKEN: {error}. The Developer Portal gives a new one: the \
                     application, Bot, Reset Token"
                ))];
            }
        };
        let mut findings = vec![ChannelFinding::fine(format!("the token is that of {name}"))];
        findings.push(match self.api.get("users/@me/guilds").await {
            Ok(Value::Array(servers)) if servers.is_empty() => ChannelFinding::warning(
                "the bot is in no server. The Developer Portal: OAuth2, URL Generator, scope bot, \
                 permissions View Channels, Send Messages, Send Messages in Threads",
            ),
            Ok(servers) => {
                let count = servers.as_array().map_or(0, Vec::len);
                ChannelFinding::fine(format!("the bot is in {count} servers"))
            }
            Err(error) => ChannelFinding::warning(format!("its servers: {error}")),
        });
        findings
    }
}
