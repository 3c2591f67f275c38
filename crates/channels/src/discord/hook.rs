//! Buttons of Discord over its endpoint for interactions.
//!
//! Signed with the key of the application over the time stamp and the raw body; a stamp that is older
//! than five minutes is refused.

use std::sync::Arc;

use async_trait::async_trait;
use http::HeaderMap;
use jiff::Timestamp;
use ring::signature::{ED25519, UnparsedPublicKey};
use serde_json::{Value, json};

use super::{DISCORD, DiscordApi, event};
use crate::{
    ChannelCore, HookRequest, HookResponse, MOST_HOOK_BYTES, Webhook,
    hook_secret::from_hex,
    webhook::{recorded, unreadable},
};

/// Older deliveries may be replays.
const MOST_SECONDS: i64 = 5 * 60;
/// The types of an interaction, and of its answer.
const PING: u64 = 1;
const PONG: u64 = 1;
/// Done, and the message stays as it is.
const DEFERRED_UPDATE: u64 = 6;

/// The key of the application, which signs what Discord sends.
#[derive(Debug, Clone)]
pub struct DiscordKey(Vec<u8>);

impl DiscordKey {
    /// From the 64 digits that the Developer Portal shows as "Public Key".
    pub fn from_hex(digits: &str) -> Option<Self> {
        from_hex(digits).filter(|bytes| bytes.len() == 32).map(Self)
    }

    /// Over the stamp and the raw body.
    fn is_signed(&self, headers: &HeaderMap, body: &[u8], now: Timestamp) -> bool {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let (Some(stamp), Some(signature)) = (
            header("x-signature-timestamp"),
            header("x-signature-ed25519").and_then(from_hex),
        ) else {
            return false;
        };
        let age = stamp.parse::<i64>().ok();
        let age = age.and_then(|stamp| now.as_second().checked_sub(stamp));
        let is_recent = age.is_some_and(|age| age.abs() <= MOST_SECONDS);
        let signed = [stamp.as_bytes(), body].concat();
        let key = UnparsedPublicKey::new(&ED25519, &self.0);
        is_recent && key.verify(&signed, &signature).is_ok()
    }
}

/// The endpoint for interactions.
pub struct DiscordHook {
    core: Arc<ChannelCore>,
    api: Arc<DiscordApi>,
    key: DiscordKey,
}

impl DiscordHook {
    pub fn new(core: Arc<ChannelCore>, api: Arc<DiscordApi>, key: DiscordKey) -> Self {
        Self { core, api, key }
    }

    /// Discord waits three seconds for the answer, which only says that it is on record.
    async fn press(&self, interaction: event::Interaction) -> HookResponse {
        let message = match self.api.pressed(interaction).await {
            Ok(message) => message,
            Err(error) => {
                tracing::warn!("the place of a button of {DISCORD} is not known: {error}");
                return HookResponse::text(503, "try again");
            }
        };
        let messages = message.into_iter().collect();
        match recorded(&self.core, DISCORD, messages).await {
            Ok(()) => HookResponse::json(200, &json!({"type": DEFERRED_UPDATE})),
            Err(again) => again,
        }
    }
}

#[async_trait]
impl Webhook for DiscordHook {
    async fn handle(&self, request: HookRequest<'_>) -> HookResponse {
        let HookRequest { headers, body, .. } = request;
        if body.len() > MOST_HOOK_BYTES {
            return HookResponse::text(413, "too large");
        }
        // Discord sends wrong signatures, too, to see that they are refused.
        if !self.key.is_signed(headers, body, Timestamp::now()) {
            return HookResponse::text(401, "the signature is wrong, missing or old");
        }
        let interaction: Value = match serde_json::from_slice(body) {
            Ok(interaction) => interaction,
            Err(error) => return unreadable(DISCORD, &error),
        };
        if interaction["type"] == PING {
            return HookResponse::json(200, &json!({"type": PONG}));
        }
        match event::parsed(&interaction) {
            Ok(interaction) => self.press(interaction).await,
            Err(error) => unreadable(DISCORD, &error),
        }
    }
}
