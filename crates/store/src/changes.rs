//! What happened in a store, by cursor: followed by this process and by others.
//!
//! Triggers of the schema write a row for each change within the transaction that makes it, so the
//! order of cursors is the order of commits over all processes. Cursors have no gaps. Old rows are
//! removed by clean-ups; a follower with a cursor from before is refused and reads the state anew.

use codespar_protocol::{QuestionId, SessionId, TaskId, TaskStatus};
use serde::{Deserialize, Serialize};

/// A place in the order of changes. Whoever has seen everything up to it asks for what came after.
/// 0, the default, comes before the first change.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct ChangeCursor(pub u64);

/// Something that was committed. It points at what changed; the rest is read where it is kept.
///
/// Which ids are set depends on the kind:
///
/// ```text
/// task          the session that made it, if any   the task
/// entry         the session of the transcript      -
/// mail          -                                  the task that has mail
/// notification  the session it is for              the task that ended
/// question      the session of whoever asks        the task that asks, if any
/// step          -                                  the task whose step it is
/// inbound       -                                  -
/// outbox        -                                  -
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreChange {
    pub cursor: ChangeCursor,
    pub session_id: Option<SessionId>,
    pub task_id: Option<TaskId>,
    #[serde(flatten)]
    pub kind: ChangeKind,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ChangeKind {
    /// A task was created, has another status, or is to be stopped.
    Task { status: TaskStatus },
    /// A transcript has a further entry.
    Entry { seq: u64 },
    /// A task has mail.
    Mail,
    /// A session has a notification of a task's end.
    Notification,
    /// A question was asked, answered or withdrawn.
    Question { id: QuestionId },
    /// A step of a task has a result.
    Step { step: String },
    /// A message arrived in a channel, or has another state.
    Inbound { channel: String },
    /// A message to people was put, changed, sent or given up.
    Outbox { channel: String },
}
