//! A channel whose messages are only recorded: surfaces that read the record show them.

use async_trait::async_trait;
use codespar_store::ThreadRef;

use crate::{AddressedMessage, ChannelAdapter, ChannelFinding, Pace, SendError};

/// The terminal and the web page. Posting is putting on record, which has been done, so the key is
/// the id and nothing can be posted twice.
pub struct StoredChannel {
    pub name: String,
}

#[async_trait]
impl ChannelAdapter for StoredChannel {
    fn name(&self) -> &str {
        &self.name
    }

    fn pace(&self) -> Pace {
        Pace::default()
    }

    async fn post(&self, outgoing: AddressedMessage<'_>) -> Result<String, SendError> {
        Ok(outgoing.key.to_owned())
    }

    async fn edit(&self, _id: &str, _: AddressedMessage<'_>) -> Result<(), SendError> {
        Ok(())
    }

    async fn find_posted(&self, _at: &ThreadRef, key: &str) -> Result<Option<String>, SendError> {
        Ok(Some(key.to_owned()))
    }

    /// There is nothing to set up.
    async fn check(&self) -> Vec<ChannelFinding> {
        Vec::new()
    }
}
