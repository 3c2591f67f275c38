//! Messages come in: on record before anything else, in the thread that they belong to.
//!
//! An adapter may acknowledge a delivery as soon as `receive` has returned. What a message means is
//! decided later, by the loop that serves the channel, so a slow decision keeps no platform waiting.

use codespar_store::{ChannelMessage, MessageState, NewMessage, Receipt, StoreError, ThreadRef};
use jiff::Timestamp;

use super::{
    ChannelCore,
    reply::{Audited, Verdict},
};
use crate::{
    ForgeOrigin, Inbound, InboundImage, WEB,
    message::{KeptMessage, NEW_THREAD},
};

/// What a person without any role is told: what is missing, not what exists.
pub(crate) const NO_ROLE: &str = "you have no role here. An admin can give you one.";

impl ChannelCore {
    /// Puts a message on record. Only after this may it be acknowledged. A message that is known is
    /// not handled a second time, except that a mention and pictures that it lacked count.
    pub async fn receive(&self, inbound: Inbound) -> Result<Receipt, StoreError> {
        if inbound.at.channel == WEB {
            let refused = "nobody but the server speaks in the channel of the page";
            return Err(StoreError::Database(refused.to_owned()));
        }
        self.put_on_record(inbound, None).await
    }

    /// The same for a message of a channel that is the forge itself, with what the forge vouches
    /// for.
    pub async fn receive_from_forge(
        &self,
        inbound: Inbound,
        origin: ForgeOrigin,
    ) -> Result<Receipt, StoreError> {
        self.put_on_record(inbound, Some(origin)).await
    }

    /// Without a look at who speaks.
    pub(crate) async fn put_on_record(
        &self,
        inbound: Inbound,
        origin: Option<ForgeOrigin>,
    ) -> Result<Receipt, StoreError> {
        let at = self.thread_of(inbound.at).await?;
        let kept = KeptMessage {
            speaker: inbound.speaker,
            privacy: inbound.privacy,
            text: inbound.text,
            images: inbound.images,
            reply_to: inbound.reply_to,
            forge: origin,
            origin: None,
        };
        let body = serde_json::to_string(&kept)
            .map_err(|error| StoreError::Database(error.to_string()))?;
        let new = NewMessage {
            identity: inbound.identity,
            at,
            speaker: kept.speaker.id,
            mentioned: inbound.mentioned,
            body,
        };
        let (identity, images) = (new.identity.clone(), kept.images);
        let receipt = self.store().receive_message(new).await?;
        if receipt != Receipt::New && !images.is_empty() {
            self.add_images(&identity, &kept.text, images).await?;
        }
        self.reach("received");
        self.wake();
        Ok(receipt)
    }

    /// A second event of a message may have pictures that the first one lacked. The same text shows
    /// that nobody has changed the message in between.
    async fn add_images(
        &self,
        identity: &str,
        text: &str,
        images: Vec<InboundImage>,
    ) -> Result<(), StoreError> {
        let message = self.store().message(identity).await?;
        let Ok(mut kept) = serde_json::from_str::<KeptMessage>(&message.body) else {
            return Ok(());
        };
        if kept.images.is_empty() && kept.text == text {
            kept.images = images;
            let body = serde_json::to_string(&kept)
                .map_err(|error| StoreError::Database(error.to_string()))?;
            self.store().amend_message(&message, &body).await?;
        }
        Ok(())
    }

    /// A thread that began with a message of ours has the name that it was given before there was
    /// one; people's replies have the platform's.
    pub(crate) async fn thread_of(&self, at: ThreadRef) -> Result<ThreadRef, StoreError> {
        let row = self
            .store()
            .outbound_by_message(&at.channel, &at.conversation, &at.thread)
            .await?;
        Ok(match row {
            Some(row) if row.at.thread.starts_with(NEW_THREAD) => row.at,
            _ => at,
        })
    }

    /// Where a message of ours is posted: in a thread that began with one, below that one.
    pub(crate) async fn posting_place(&self, at: &ThreadRef) -> Result<ThreadRef, StoreError> {
        /// Of a conversation; a thread that is older begins anew.
        const LOOKED_AT: u32 = 1_000;
        if !at.thread.starts_with(NEW_THREAD) {
            return Ok(at.clone());
        }
        let sent = self
            .store()
            .sent_to(&at.channel, &at.conversation, LOOKED_AT);
        let rows = sent.await?;
        let of_thread = rows.into_iter().filter(|row| row.at == *at);
        // The first that was posted, which need not be the first on record: ids of messages grow.
        let root = of_thread.filter_map(|row| row.message_id).min();
        Ok(ThreadRef {
            thread: root.unwrap_or_else(|| at.thread.clone()),
            ..at.clone()
        })
    }

    /// Takes a command that only its speaker sees. Somebody without a role is refused at once: the
    /// text is for them alone, and nothing is posted.
    pub async fn receive_command(&self, inbound: Inbound) -> Result<Option<String>, StoreError> {
        let message = unrecorded(&inbound);
        let kept = KeptMessage {
            speaker: inbound.speaker.clone(),
            privacy: inbound.privacy,
            text: inbound.text.clone(),
            images: Vec::new(),
            reply_to: None,
            forge: None,
            origin: None,
        };
        let binding = self.store().thread_binding(&inbound.at).await?;
        let (role, _) = self.role_of(&message, &kept, &binding).await?;
        if role.is_some() {
            self.receive(inbound).await?;
            return Ok(None);
        }
        let audited = Audited {
            role: None,
            action: "message",
            verdict: Verdict::Refused,
            detail: &inbound.text,
            task: None,
        };
        let entry = self.entry(&message, &audited);
        self.store().append_audit(entry).await?;
        Ok(Some(NO_ROLE.to_owned()))
    }
}

/// A message as it would be on record.
pub(crate) fn unrecorded(inbound: &Inbound) -> ChannelMessage {
    ChannelMessage {
        seq: 0,
        identity: inbound.identity.clone(),
        at: inbound.at.clone(),
        speaker: inbound.speaker.id.clone(),
        mentioned: inbound.mentioned,
        body: String::new(),
        state: MessageState::Received,
        received_at: Timestamp::now(),
        task_id: None,
        work: None,
        repository: None,
    }
}
