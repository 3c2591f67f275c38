//! Which thread a message belongs to, where threads are chains of replies.
//!
//! Most platforms have no threads as Slack has them: people reply to a message. A reply to anything
//! of a thread, ours or a person's, is a part of it; what replies to nothing begins one. In a direct
//! chat people answer without replying, so while a question waits there, what is said belongs to its
//! thread.

use codespar_store::{MessageState, Receipt, StoreError};

use super::ChannelCore;
use crate::{Inbound, Privacy};

/// A message whose thread is not known yet: `inbound.at.thread` is empty, unless the platform has a
/// thread for it (a topic, a channel of its own).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChainedMessage {
    /// The platform's id of it; for a button, of the message that has the button.
    pub(crate) message_id: String,
    pub(crate) inbound: Inbound,
}

/// What a platform with chains of replies knows a message by.
pub(crate) fn chained_identity(channel: &str, conversation: &str, message_id: &str) -> String {
    format!("{channel}:{conversation}:{message_id}")
}

impl ChannelCore {
    /// Puts a message on record in the thread it belongs to.
    pub(crate) async fn receive_chained(
        &self,
        message: ChainedMessage,
    ) -> Result<Receipt, StoreError> {
        let ChainedMessage {
            message_id,
            mut inbound,
        } = message;
        if inbound.at.thread.is_empty() {
            inbound.at.thread = self.chain_of(&inbound, message_id).await?;
        }
        self.receive(inbound).await
    }

    async fn chain_of(&self, inbound: &Inbound, message_id: String) -> Result<String, StoreError> {
        let at = &inbound.at;
        if let Some(replied) = &inbound.reply_to {
            let store = self.store();
            let place = (at.channel.as_str(), at.conversation.as_str());
            if let Some(row) = self.our_message(place, replied).await? {
                return Ok(row.at.thread);
            }
            let identity = chained_identity(&at.channel, &at.conversation, replied);
            return match store.message(&identity).await {
                Ok(message) => Ok(message.at.thread),
                Err(StoreError::NoSuchMessage(_)) => Ok(replied.clone()),
                Err(error) => Err(error),
            };
        }
        let asking = match inbound.privacy {
            Privacy::Direct => self.asking_thread(&at.channel, &at.conversation).await?,
            Privacy::Room => None,
        };
        Ok(asking.unwrap_or(message_id))
    }

    /// The thread of a conversation in which a question waits; the last one if there are several.
    async fn asking_thread(
        &self,
        channel: &str,
        conversation: &str,
    ) -> Result<Option<String>, StoreError> {
        let open = self.store().open_messages(channel).await?;
        for work in open.iter().rev() {
            let is_here = work.at.conversation == conversation;
            let (true, MessageState::Working, Some(task)) = (is_here, work.state, &work.task_id)
            else {
                continue;
            };
            if !self.open_questions(task).await?.is_empty() {
                return Ok(Some(work.at.thread.clone()));
            }
        }
        Ok(None)
    }
}
