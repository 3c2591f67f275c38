//! Keeps agents that work side by side from writing over each other.
//!
//! Only agents that share a working tree have one; an agent in a worktree of its own writes freely.
//! A claim is asked for when the call is decided on and holds until the agent's attempt ends.

use std::path::Path;

use async_trait::async_trait;

/// Asked before a file is written.
#[async_trait]
pub trait WriteGate: Send + Sync {
    /// Takes the file for this agent. The error names who has it.
    async fn claim(&self, path: &Path) -> Result<(), String>;
}
