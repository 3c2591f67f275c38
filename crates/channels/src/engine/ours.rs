//! Finds our own message that somebody replies to, reacts to, or presses a button of.
//!
//! People can be quicker than our record: a message is on the platform some moments before its id
//! is in the outbox. Whoever looks for an id that is not known waits until what is on its way is
//! recorded, and looks again.

use std::time::Duration;

use codespar_store::{OutboxRow, StoreError};

use super::ChannelCore;

/// Platforms wait three seconds for our acknowledgement. A call that takes longer is not waited for;
/// the reply then counts as one to a message that we do not know.
const PATIENCE: Duration = Duration::from_secs(2);

impl ChannelCore {
    /// The message of ours that the platform knows by this id.
    pub(crate) async fn our_message(
        &self,
        (channel, conversation): (&str, &str),
        message_id: &str,
    ) -> Result<Option<OutboxRow>, StoreError> {
        let find = || {
            self.store()
                .outbound_by_message(channel, conversation, message_id)
        };
        if let Some(row) = find().await? {
            return Ok(Some(row));
        }
        // Granted when no message is on its way; the next waits for nobody.
        let quiet = tokio::time::timeout(PATIENCE, self.on_the_way.write()).await;
        drop(quiet);
        find().await
    }
}
