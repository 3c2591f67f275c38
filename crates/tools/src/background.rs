//! Commands that go on after the call that started them.
//!
//! What runs them is above this crate: the Bash tool hands a command over and returns. The decision
//! about the command is that of the call, made on the same [`Access`](codespar_policy::Access) as in
//! the foreground.

use std::{path::PathBuf, time::Duration};

use async_trait::async_trait;

use crate::ToolError;

/// A command to start. It has been decided on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackgroundCommand {
    pub command: String,
    /// In a few words, if the model gave some.
    pub description: Option<String>,
    pub cwd: PathBuf,
    /// After this it is stopped; without one it may run until somebody stops it.
    pub timeout: Option<Duration>,
}

/// A command under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartedCommand {
    /// What it is read and stopped by.
    pub id: String,
    /// The file with what it writes.
    pub output: Option<PathBuf>,
}

/// Starts commands and lets them run.
#[async_trait]
pub trait BackgroundCommands: Send + Sync {
    /// Returns as soon as the command is on record; its end is told to the conversation.
    async fn start(&self, command: BackgroundCommand) -> Result<StartedCommand, ToolError>;
}
