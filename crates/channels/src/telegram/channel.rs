//! Telegram as a place to post to.
//!
//! Telegram cannot be asked what was posted: a message whose answer was lost is posted again. An edit
//! that changes nothing is refused by Telegram and is as good as done.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use codespar_store::ThreadRef;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    TELEGRAM, TelegramApi, TelegramDelivery,
    api::send_error,
    draw,
    update::{TOPIC, number},
};
use crate::{AddressedMessage, ChannelAdapter, ChannelFinding, Pace, SendError, client::CallError};

/// One message a second in a chat, twenty a minute in a group; an edit counts as one.
const PACE: Pace = Pace {
    post: Duration::from_secs(1),
    edit: Duration::from_secs(3),
};

/// Telegram as a place to post to.
pub struct TelegramChannel {
    api: Arc<TelegramApi>,
    delivery: TelegramDelivery,
}

#[derive(Deserialize)]
struct PostedMessage {
    message_id: i64,
}

#[derive(Deserialize)]
struct WebhookInfo {
    #[serde(default)]
    url: String,
    #[serde(default)]
    last_error_message: Option<String>,
}

impl TelegramChannel {
    pub fn new(api: Arc<TelegramApi>, delivery: TelegramDelivery) -> Self {
        Self { api, delivery }
    }

    /// Whether Telegram delivers in the way that we expect.
    async fn check_delivery(&self) -> ChannelFinding {
        let info: WebhookInfo = match self.api.call("getWebhookInfo", &json!({})).await {
            Ok(info) => info,
            Err(error) => return ChannelFinding::problem(format!("the webhook: {error}")),
        };
        match (&self.delivery, info.url.is_empty(), info.last_error_message) {
            (TelegramDelivery::Polling, true, _) => {
                ChannelFinding::fine("updates are asked for (no webhook is set)")
            }
            (TelegramDelivery::Polling, false, _) => ChannelFinding::problem(
                "a webhook is set, so updates cannot be asked for: call deleteWebhook, or set \
                 TELEGRAM_WEBHOOK_SECRET",
            ),
            (TelegramDelivery::Webhook { .. }, true, _) => ChannelFinding::problem(
                "no webhook is set: call setWebhook with the address of /hooks/telegram and the \
                 secret_token",
            ),
            (TelegramDelivery::Webhook { .. }, false, None) => {
                ChannelFinding::fine("the webhook is set")
            }
            (TelegramDelivery::Webhook { .. }, false, Some(error)) => ChannelFinding::warning(
                format!("the webhook is set; its last delivery failed: {error}"),
            ),
        }
    }
}

/// Where a message goes: a topic of a group, or the chain of replies that a message began.
fn placed(mut body: Value, at: &ThreadRef) -> Value {
    body["chat_id"] = number(&at.conversation);
    match at.thread.strip_prefix(TOPIC) {
        Some(topic) => body["message_thread_id"] = number(topic),
        None => {
            body["reply_parameters"] = json!({
                "message_id": number(&at.thread),
                // The person may have deleted it.
                "allow_sending_without_reply": true,
            });
        }
    }
    body
}

#[async_trait]
impl ChannelAdapter for TelegramChannel {
    fn name(&self) -> &str {
        TELEGRAM
    }

    fn pace(&self) -> Pace {
        PACE
    }

    async fn post(&self, outgoing: AddressedMessage<'_>) -> Result<String, SendError> {
        let AddressedMessage { at, message, .. } = outgoing;
        let body = placed(draw::body(message), at);
        let posted: PostedMessage = self
            .api
            .call("sendMessage", &body)
            .await
            .map_err(send_error)?;
        Ok(posted.message_id.to_string())
    }

    async fn edit(&self, id: &str, outgoing: AddressedMessage<'_>) -> Result<(), SendError> {
        let AddressedMessage { at, message, .. } = outgoing;
        let mut body = draw::body(message);
        body["chat_id"] = number(&at.conversation);
        body["message_id"] = number(id);
        match self.api.call::<Value>("editMessageText", &body).await {
            Ok(_) => Ok(()),
            // It says so already, from an edit whose answer was lost.
            Err(CallError::Refused { description, .. })
                if description.contains("message is not modified") =>
            {
                Ok(())
            }
            Err(error) => Err(send_error(error)),
        }
    }

    /// A bot cannot read what it has said: a message whose answer was lost is posted again.
    async fn find_posted(&self, _at: &ThreadRef, _key: &str) -> Result<Option<String>, SendError> {
        Ok(None)
    }

    async fn fetch_image(&self, reference: &str, most: usize) -> Result<Vec<u8>, String> {
        self.api.file(reference, most).await
    }

    async fn check(&self) -> Vec<ChannelFinding> {
        let account = match self.api.account().await {
            Ok(account) => account,
            Err(error) => {
                return vec![ChannelFinding::problem(format!(
                    "TELEGRAM_BOT_TOKEN: {error}. BotFather shows it: /mybots, the bot, API Token"
                ))];
            }
        };
        let name = &account.username;
        let mut findings = vec![ChannelFinding::fine(format!(
            "the token is that of @{name}"
        ))];
        if !account.can_join_groups {
            findings.push(ChannelFinding::warning(
                "the bot cannot be added to groups. BotFather: /setjoingroups, the bot, Enable",
            ));
        }
        findings.push(self.check_delivery().await);
        findings
    }
}
