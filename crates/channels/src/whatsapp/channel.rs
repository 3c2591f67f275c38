//! WhatsApp as a place to post to.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use codespar_store::ThreadRef;

use super::{WHATSAPP, WhatsAppApi, draw, graph::send_error};
use crate::{AddressedMessage, ChannelAdapter, ChannelFinding, OutboundKind, Pace, SendError};

const PACE: Pace = Pace {
    post: Duration::from_secs(1),
    edit: Duration::ZERO,
};

/// WhatsApp as a place to post to.
pub struct WhatsAppChannel {
    api: Arc<WhatsAppApi>,
}

impl WhatsAppChannel {
    pub fn new(api: Arc<WhatsAppApi>) -> Self {
        Self { api }
    }
}

#[async_trait]
impl ChannelAdapter for WhatsAppChannel {
    fn name(&self) -> &str {
        WHATSAPP
    }

    fn pace(&self) -> Pace {
        PACE
    }

    async fn post(&self, outgoing: AddressedMessage<'_>) -> Result<String, SendError> {
        let AddressedMessage { at, message, .. } = outgoing;
        let path = format!("{}/messages", self.api.phone_number_id);
        let body = draw::body(at, message);
        let posted = self.api.post(&path, &body).await.map_err(send_error)?;
        let id = posted["messages"][0]["id"].as_str();
        let missing = || SendError::Permanent("WhatsApp gave no id".to_owned());
        id.map(str::to_owned).ok_or_else(missing)
    }

    /// Nothing can be edited. Progress shows how a run began, and a question stays as it was asked;
    /// what they came to is a message of its own. Another text is posted anew.
    async fn edit(&self, _id: &str, outgoing: AddressedMessage<'_>) -> Result<(), SendError> {
        let AddressedMessage { message, .. } = outgoing;
        match message.kind {
            OutboundKind::Progress
            | OutboundKind::Question
            | OutboundKind::Settled
            | OutboundKind::Draft => Ok(()),
            OutboundKind::Text | OutboundKind::Result | OutboundKind::File => {
                Err(SendError::CannotEdit)
            }
        }
    }

    /// What a business has sent cannot be asked for: a message whose answer was lost is sent again.
    async fn find_posted(&self, _at: &ThreadRef, _key: &str) -> Result<Option<String>, SendError> {
        Ok(None)
    }

    async fn fetch_image(&self, reference: &str, most: usize) -> Result<Vec<u8>, String> {
        self.api.media(reference, most).await
    }

    async fn check(&self) -> Vec<ChannelFinding> {
        let path = format!(
            "{}?fields=display_phone_number,verified_name",
            self.api.phone_number_id
        );
        let found = match self.api.get(&path).await {
            Ok(found) => found,
            Err(error) => {
                return vec![ChannelFinding::problem(format!(
                    "WHATSAPP_ACCESS_TOKEN or WHATSAPP_PHONE_NUMBER_ID: {error}. The App \
                     Dashboard shows both: WhatsApp, API Setup"
                ))];
            }
        };
        let number = found["display_phone_number"].as_str().unwrap_or("unknown");
        vec![
            ChannelFinding::fine(format!("the token may use the number {number}")),
            ChannelFinding::warning(
                "experimental: Meta's terms forbid general AI assistants in most countries, and \
                 people are only answered within 24 hours of their last message",
            ),
        ]
    }
}
