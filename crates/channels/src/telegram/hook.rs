//! Updates of Telegram over its webhook.
//!
//! Believed by the secret that was given to Telegram with the address, compared in constant time.

use std::sync::Arc;

use async_trait::async_trait;
use secrecy::SecretString;
use serde_json::{Value, json};

use super::{TELEGRAM, TelegramApi, update};
use crate::{
    ChannelCore, HookRequest, HookResponse, MOST_HOOK_BYTES, Webhook,
    hook_secret::is_secret,
    webhook::{not_recorded, recorded, unreadable},
};

const SECRET_HEADER: &str = "x-telegram-bot-api-secret-token";

/// The webhook of Telegram. Deliveries are not signed: they have a secret that only Telegram knows,
/// and no time stamp. A replay is the same message again.
pub struct TelegramHook {
    core: Arc<ChannelCore>,
    api: Arc<TelegramApi>,
    secret: SecretString,
}

impl TelegramHook {
    pub fn new(core: Arc<ChannelCore>, api: Arc<TelegramApi>, secret: SecretString) -> Self {
        Self { core, api, secret }
    }
}

#[async_trait]
impl Webhook for TelegramHook {
    async fn handle(&self, request: HookRequest<'_>) -> HookResponse {
        let HookRequest { headers, body, .. } = request;
        if body.len() > MOST_HOOK_BYTES {
            return HookResponse::text(413, "too large");
        }
        let given = headers.get(SECRET_HEADER);
        if !given.is_some_and(|given| is_secret(&self.secret, given.as_bytes())) {
            return HookResponse::text(401, "the secret token is wrong");
        }
        let update: Value = match serde_json::from_slice(body) {
            Ok(update) => update,
            Err(error) => return unreadable(TELEGRAM, &error),
        };
        let account = match self.api.account().await {
            Ok(account) => account,
            Err(error) => {
                tracing::warn!("the account at {TELEGRAM} is not known: {error}");
                return HookResponse::text(503, "try again");
            }
        };
        let delivered = match update::read(&update, account) {
            Ok(delivered) => delivered,
            Err(error) => return unreadable(TELEGRAM, &error),
        };
        let messages = delivered.message.into_iter().collect();
        if let Err(again) = recorded(&self.core, TELEGRAM, messages).await {
            return again;
        }
        if let Some(reaction) = delivered.reaction
            && let Err(error) = self.api.take_reaction(&self.core, reaction).await
        {
            return not_recorded(TELEGRAM, &error);
        }
        match delivered.pressed {
            // The answer is the call that ends the waiting of the client.
            Some(id) => HookResponse::json(
                200,
                &json!({"method": "answerCallbackQuery", "callback_query_id": id}),
            ),
            None => HookResponse::text(200, ""),
        }
    }
}
