//! Slack: events, buttons and commands over Socket Mode or its webhook, messages over its Web API.
//!
//! ```text
//! POST /hooks/slack ─▶ signature over the raw body ─┐
//! Socket Mode ───────▶ envelope ────────────────────┴▶ message │ command │ reaction │ button
//!                                                       └▶ on record, then acknowledged
//! ```

mod check;
mod draw;
mod event;
mod files;
mod intake;
mod interaction;
mod quiet;
mod sessions;
mod signature;
mod socket;
mod streams;
mod web;

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use secrecy::SecretString;
use url::Url;

use self::{
    event::{Delivered, read},
    intake::take,
    signature::{SignatureError, check},
};
pub use self::{socket::SlackSocket, web::SlackChannel};
use crate::{ChannelCore, HookRequest, HookResponse, MOST_HOOK_BYTES, Webhook};

/// The name of the channel.
pub const SLACK: &str = "slack";

/// What is needed to talk to one workspace.
#[derive(Clone)]
pub struct SlackSetup {
    pub bot_token: SecretString,
    /// For Socket Mode.
    pub app_token: Option<SecretString>,
    /// `https://slack.com/api/`.
    pub api: Url,
    pub proxy: Option<Url>,
}

/// The webhook of Slack.
pub struct SlackHook {
    core: Arc<ChannelCore>,
    signing_secret: SecretString,
}

impl SlackHook {
    /// The secret is the app's: Slack signs with it what it sends.
    pub fn new(core: Arc<ChannelCore>, signing_secret: SecretString) -> Self {
        Self {
            core,
            signing_secret,
        }
    }
}

#[async_trait]
impl Webhook for SlackHook {
    async fn handle(&self, request: HookRequest<'_>) -> HookResponse {
        let HookRequest { headers, body, .. } = request;
        if body.len() > MOST_HOOK_BYTES {
            return HookResponse::text(413, "too large");
        }
        match check(&self.signing_secret, headers, body, Timestamp::now()) {
            Ok(()) => {}
            Err(error @ SignatureError::Missing) => {
                return HookResponse::text(400, error.to_string());
            }
            Err(error) => return HookResponse::text(401, error.to_string()),
        }
        let delivered = match read(headers, body) {
            Ok(Delivered::Challenge(text)) => return HookResponse::text(200, text),
            Ok(delivered) => delivered,
            Err(error) => {
                // Without its body, which is somebody's message.
                tracing::warn!("an event of Slack cannot be read: {error}");
                return HookResponse::text(400, "this cannot be read");
            }
        };
        match take(&self.core, delivered).await {
            Ok(Some(shown)) => HookResponse::json(200, &shown),
            Ok(None) => HookResponse::text(200, ""),
            Err(error) => {
                tracing::warn!("an event of Slack is not on record: {error}");
                HookResponse::text(503, "try again")
            }
        }
    }
}
