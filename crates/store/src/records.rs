//! The rows the store hands out.

use std::path::PathBuf;

use codespar_protocol::{Cost, SessionId, SessionMode, TaskId, Usage};
use jiff::Timestamp;
use serde::Serialize;

/// What a session starts from.
#[derive(Debug, Clone)]
pub struct NewSession {
    pub id: SessionId,
    /// Where it works.
    pub cwd: PathBuf,
    /// The model it began with.
    pub model: String,
    /// How it works.
    pub mode: SessionMode,
}

/// A session and its sums.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SessionRecord {
    pub id: SessionId,
    /// The first line of the first prompt, shortened to 80 characters.
    pub title: Option<String>,
    /// Where it works.
    pub cwd: PathBuf,
    /// The model it began with.
    pub model: String,
    /// How it works.
    pub mode: SessionMode,
    /// When it began.
    pub created_at: Timestamp,
    /// When something was last added. Exact for prompts (`User` entries); for other entries it may
    /// be up to a second early.
    pub updated_at: Timestamp,
    /// The last place in its transcript.
    pub last_seq: u64,
    /// Tokens of all its calls. Each counter stops at the largest number the database holds instead
    /// of overflowing.
    pub usage: Usage,
    /// Cost of all its calls. `Cost::Unknown` as soon as one call had no known price; it then
    /// carries the sum of the others.
    pub cost: Cost,
}

/// All conditions that are set must hold; the default selects every session.
#[derive(Debug, Clone, Default)]
pub struct SessionFilter {
    /// Only those that work here.
    pub cwd: Option<PathBuf>,
    /// At most this many.
    pub limit: Option<u32>,
}

/// A claim on a task: the number grows with every claim, so the newest one is the one that counts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TaskLease {
    pub task: TaskId,
    pub epoch: u64,
}

/// What a clean-up took away.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Removed {
    pub sessions: Vec<SessionId>,
    /// Bytes given back to the disk. Of the database and its log together, by file size; 0 where
    /// other processes wrote more meanwhile than was given back.
    pub bytes: u64,
}
