//! Why a run cannot go on.

use codespar_model::ModelError;
use codespar_store::StoreError;

/// Why a run cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The model call failed for good.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// What happened cannot be recorded, so nothing more is done.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Another process goes on with the conversation.
    #[error("handed over to another process")]
    HandedOver,
}

impl AgentError {
    /// A person or a signal stopped it.
    pub fn is_interrupt(&self) -> bool {
        matches!(self, Self::Model(ModelError::Cancelled))
    }
}
