//! What reaches an agent from outside while it works: notifications, messages.
//!
//! The loop asks for deliveries at the top of each turn, where every call has its result, so that
//! nothing comes between a call and its answer. At the end of its work it waits here: a subagent
//! that is still under way may have something to say.

use async_trait::async_trait;
use codespar_store::StoreError;
use tokio_util::sync::CancellationToken;

use crate::Transcript;

/// Where an agent's messages come from.
#[async_trait]
pub trait Inbox: Send + Sync {
    /// Puts what waits into the conversation, each thing exactly once. Called when every call has
    /// its result. True if there was something. An error ends the run: what cannot be recorded must
    /// not be acted on.
    async fn deliver(&self, transcript: &mut Transcript) -> Result<bool, StoreError>;

    /// The agent has nothing more to do: waits for something to deliver. False when nothing will
    /// come, so that the run can end. Returns false when `cancel` is cancelled. Nothing is
    /// delivered yet when it returns true.
    async fn wait(&self, cancel: &CancellationToken) -> bool;

    /// Whether the agent has made tasks: only then are the tools that follow them of use.
    async fn has_tasks(&self) -> bool {
        false
    }
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
