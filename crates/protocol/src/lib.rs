//! The words every room shares: ids, messages and content blocks, events, usage. No I/O.

mod change;
mod content;
mod cost;
mod event;
mod ids;
mod message;
mod pull_request;
mod question;
mod raw;
mod task;
mod todo;
mod transcript;
mod usage;

pub use change::{BadPath, Bytes, ChangeSet, FileChange, FileMode, RepoPath};
pub use content::{
    ContentBlock, Image, RedactedThinking, Text, Thinking, ToolResult, ToolResultContent, ToolUse,
};
pub use cost::{Cost, Usd};
pub use event::{Event, NoticeLevel, Outcome, PermissionDenial, RunResult};
pub use ids::{EntryId, ParseIdError, SessionId, ToolUseId};
pub use message::{Message, Role, StopReason};
pub use pull_request::{
    Check, CheckState, CommitId, MergeStrategy, Permission, PullRequest, PullRequestState, Review,
    ReviewComment, Verdict,
};
pub use question::{Answer, Question};
pub use raw::RawObject;
pub use task::{ParseTaskError, TaskId, TaskRecord, TaskStatus, TaskType, team_list};
pub use todo::{Todo, TodoStatus};
pub use transcript::{Entry, EntryBody, SessionMode};
pub use usage::Usage;
