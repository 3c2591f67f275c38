//! Keeps what an agent has changed in its files, where another host may have to go on with it.

use async_trait::async_trait;

/// Told when files may have changed. Only agents whose files no other host has are given one.
#[async_trait]
pub trait WorkKeeper: Send + Sync {
    /// Called after each call that may have changed something, before its result is on record: so
    /// whatever a conversation says was done is also kept. A failure to keep it is for the
    /// implementation to note; the agent goes on.
    async fn keep(&self) -> WorkKept;
}

/// Whether the agent is to go on here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkKept {
    GoOn,
    /// Another process has the task by now.
    HandedOver,
}
