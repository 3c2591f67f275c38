//! What is kept of chat channels, as values.

use codespar_protocol::{AccessRole, SessionId, TaskId, Usd};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Where something is said: a thread of a conversation of a channel.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ThreadRef {
    /// `slack`, `terminal` …
    pub channel: String,
    /// A room, a repository, a direct message.
    pub conversation: String,
    pub thread: String,
}

/// How far a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageState {
    /// On record, nothing decided.
    Received,
    /// It waits for the work of its thread to end.
    Queued,
    /// Its task is under way, or its end has not been told.
    Working,
    /// All of it is done.
    Handled,
    /// It was not for us. A later delivery of it that mentions us is received again.
    Ignored,
}

/// A message that arrived.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMessage {
    /// What the platform knows it by, with the name of the channel.
    pub identity: String,
    pub at: ThreadRef,
    pub speaker: String,
    pub mentioned: bool,
    /// JSON.
    pub body: String,
}

/// A message as it stands on record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelMessage {
    /// In the order of arrival.
    pub seq: u64,
    pub identity: String,
    pub at: ThreadRef,
    pub speaker: String,
    pub mentioned: bool,
    pub body: String,
    pub state: MessageState,
    pub task_id: Option<TaskId>,
    /// JSON: what was decided to be done.
    pub work: Option<String>,
    pub repository: Option<String>,
    pub received_at: Timestamp,
}

/// What became of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Receipt {
    /// It is on record for the first time.
    New,
    /// It was ignored before, and this delivery mentions us.
    Renewed,
    /// Nothing new.
    Known,
}

/// What one step of the work on a message writes, in one transaction. What is absent stays.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MessageChange {
    pub state: Option<MessageState>,
    /// Kept only if the message has none yet; the one on record is given back.
    pub task_id: Option<TaskId>,
    /// JSON: what was decided to be done.
    pub work: Option<String>,
    /// Other messages that are part of this work; they are handled with it.
    pub merged: Vec<String>,
    pub repository: Option<String>,
    pub cost: Option<Usd>,
    pub binding: Option<ThreadBinding>,
    /// Whether its speaker turned out to have a role; people without one use up no turns.
    pub standing: MessageStanding,
    /// Messages that stand for parts of it, each with a task of its own.
    pub started: Vec<StartedMessage>,
    /// A timer that does not go on because of what was decided.
    pub pause_timer: Option<String>,
    pub outbound: Vec<NewOutbound>,
    pub audit: Vec<NewAudit>,
}

/// Whether the speaker of a message had a role when it was decided on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MessageStanding {
    #[default]
    Known,
    Stranger,
}

/// A message of ours on behalf of a person, with the task that it is at work on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartedMessage {
    pub message: NewMessage,
    pub task_id: TaskId,
    /// JSON: what is to be done.
    pub work: String,
    pub repository: String,
}

/// What a thread is about. Absent fields leave what is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadBinding {
    pub repository: Option<String>,
    pub session: Option<SessionId>,
    pub pull_request: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryLink {
    pub repository: String,
    pub is_default: bool,
    pub linked_by: String,
}

/// What an admin has said of a user of a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelPerson {
    pub channel: String,
    pub user_id: String,
    pub role: Option<AccessRole>,
    pub forge_login: Option<String>,
    pub set_by: String,
}

/// How urgent a message to people is. Results are not held up by progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OutboundPriority {
    Final,
    Question,
    Reply,
    Progress,
    /// An answer while it is written; what comes of it does not depend on it.
    Draft,
}

/// A message to people. Put again under the same key, it is the next revision of the same message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewOutbound {
    pub key: String,
    pub at: ThreadRef,
    pub kind: String,
    /// JSON.
    pub body: String,
    pub priority: OutboundPriority,
}

/// A message to people as it stands on record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxRow {
    pub seq: u64,
    pub key: String,
    pub at: ThreadRef,
    pub kind: String,
    pub body: String,
    pub revision: u64,
    pub sent_revision: u64,
    /// The platform's name for it, once it was posted.
    pub message_id: Option<String>,
    /// Deliveries that were begun.
    pub attempts: u64,
    pub not_before: Timestamp,
    pub failure: Option<String>,
    /// When it was first put.
    pub created_at: Timestamp,
}

/// What came of an attempt to deliver a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// About to be tried; on record first, so that a restart knows that it may have arrived.
    Begun,
    Sent {
        revision: u64,
        message_id: String,
    },
    /// This revision is left out. Whether it arrived is not known: the next one asks first, as
    /// after a crash.
    Skipped {
        revision: u64,
    },
    /// Not before this time.
    Postponed {
        until: Timestamp,
    },
    /// It will not be tried again.
    Failed {
        reason: String,
    },
}

/// Something that was asked for and what was decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewAudit {
    #[serde(flatten)]
    pub at: ThreadRef,
    pub identity: String,
    pub speaker: String,
    pub role: Option<AccessRole>,
    pub action: String,
    /// `allowed`, `refused`, `done`, `failed`.
    pub decision: String,
    pub detail: String,
    pub repository: Option<String>,
    pub task_id: Option<TaskId>,
}

/// A line of the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditEntry {
    pub seq: u64,
    pub time: Timestamp,
    #[serde(flatten)]
    pub entry: NewAudit,
}
