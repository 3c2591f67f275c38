//! Questions in the store.

use std::path::PathBuf;

use codespar_protocol::{QuestionRequest, SessionId, TaskId};
use jiff::Timestamp;

use crate::TaskLease;

/// What a question starts from.
#[derive(Debug, Clone)]
pub struct NewQuestion {
    /// The conversation of the agent that asks.
    pub session_id: SessionId,
    pub task_id: Option<TaskId>,
    /// The attempt that asks, if one does: refused with `StoreError::LeaseLost` when another runner
    /// has taken that task over.
    pub asked_under: Option<TaskLease>,
    pub project_root: PathBuf,
    /// Tells it from the others of its session: whoever asks again finds the same question.
    pub key: String,
    pub request: QuestionRequest,
    pub expires_at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuestionFilter {
    /// Those that wait for an answer, oldest first.
    Open,
    /// All of one session, in no order.
    OfSession(SessionId),
}
