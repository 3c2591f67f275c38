//! What reaches an agent from outside while it works: notifications, messages.

use async_trait::async_trait;
use codespar_store::StoreError;
use tokio_util::sync::CancellationToken;

use crate::Transcript;

/// Where an agent's messages come from.
#[async_trait]
pub trait Inbox: Send + Sync {
    /// Puts what waits into the conversation, each thing exactly once. Called when every call has
    /// its result. True if there was something.
    async fn deliver(&self, transcript: &mut Transcript) -> Result<bool, StoreError>;

    /// The agent has nothing more to do: waits for something to deliver. False when nothing will
    /// come, so that the run can end.
    async fn wait(&self, cancel: &CancellationToken) -> bool;
}

/// Nothing ever comes.
pub struct NoInbox;

#[async_trait]
impl Inbox for NoInbox {
    async fn deliver(&self, _: &mut Transcript) -> Result<bool, StoreError> {
        Ok(false)
    }

    async fn wait(&self, _: &CancellationToken) -> bool {
        false
    }
}
