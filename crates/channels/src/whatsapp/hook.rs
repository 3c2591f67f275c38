//! Deliveries of WhatsApp over its webhook.
//!
//! Meta asks once whether the address is ours, by a word that both know; deliveries are signed over the
//! raw body with the secret of the app.

use std::sync::Arc;

use async_trait::async_trait;

use super::{WHATSAPP, WhatsAppSecrets, event::read};
use crate::{
    ChannelCore, HookMethod, HookRequest, HookResponse, MOST_HOOK_BYTES, Webhook,
    hook_secret::{is_secret, is_signed},
    webhook::{recorded, unreadable},
};

/// The webhook of WhatsApp. No time stamp is signed: a replay is the same message again.
pub struct WhatsAppHook {
    core: Arc<ChannelCore>,
    secrets: WhatsAppSecrets,
    phone_number_id: String,
}

impl WhatsAppHook {
    pub fn new(core: Arc<ChannelCore>, secrets: WhatsAppSecrets, phone_number_id: String) -> Self {
        Self {
            core,
            secrets,
            phone_number_id,
        }
    }

    /// Meta asks whether the address is ours.
    fn verify(&self, query: &str) -> HookResponse {
        let given = |name: &str| {
            let mut pairs = url::form_urlencoded::parse(query.as_bytes());
            let found = pairs.find(|(key, _)| key == name);
            found
                .map(|(_, value)| value.into_owned())
                .unwrap_or_default()
        };
        let is_ours = given("hub.mode") == "subscribe"
            && is_secret(
                &self.secrets.verify_token,
                given("hub.verify_token").as_bytes(),
            );
        match is_ours {
            true => HookResponse::text(200, given("hub.challenge")),
            false => HookResponse::text(403, "the verify token is wrong"),
        }
    }
}

#[async_trait]
impl Webhook for WhatsAppHook {
    async fn handle(&self, request: HookRequest<'_>) -> HookResponse {
        if request.method == HookMethod::Get {
            return self.verify(request.query);
        }
        let HookRequest { headers, body, .. } = request;
        if body.len() > MOST_HOOK_BYTES {
            return HookResponse::text(413, "too large");
        }
        let header = headers.get("x-hub-signature-256");
        let header = header
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        if !is_signed(&self.secrets.app_secret, header, body) {
            return HookResponse::text(401, "the signature is wrong or missing");
        }
        let messages = match read(body, &self.phone_number_id) {
            Ok(messages) => messages,
            Err(error) => return unreadable(WHATSAPP, &error),
        };
        match recorded(&self.core, WHATSAPP, messages).await {
            Ok(()) => HookResponse::text(200, ""),
            Err(again) => again,
        }
    }
}
