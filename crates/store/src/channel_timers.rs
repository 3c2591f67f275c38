//! What is looked at when its time has come, as values.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{NewAudit, NewMessage, NewOutbound, ThreadRef};

/// Who looks at it when its time has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimerKind {
    /// A command that is run at a time, or regularly.
    Schedule,
    /// A pull request whose checks are watched.
    Watch,
}

/// Whether a timer is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimerState {
    Active,
    /// Its owner may not do any more what it does.
    Paused,
    /// Removed, or nothing is left to be done.
    Ended,
}

/// Something that is due at a time. It is kept when it has ended, so that ending it twice is no
/// error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelTimer {
    pub id: String,
    pub kind: TimerKind,
    pub at: ThreadRef,
    /// JSON.
    pub body: String,
    pub state: TimerState,
    pub next_at: Timestamp,
}

/// What came of a timer whose time had come, in one transaction: the message that it puts on record
/// and the next time are there together or not at all, so each time counts once.
#[derive(Debug, Clone, PartialEq)]
pub struct TimerChange {
    pub body: String,
    pub state: TimerState,
    pub next_at: Timestamp,
    pub message: Option<NewMessage>,
    pub outbound: Vec<NewOutbound>,
    pub audit: Vec<NewAudit>,
}
