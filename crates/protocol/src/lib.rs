//! What all crates share: ids, messages and content blocks, events, usage. No I/O.

mod access;
mod authority;
mod backoff;
mod change;
mod content;
mod cost;
mod counted;
mod dev_order;
mod error_chain;
mod event;
mod ids;
mod labels;
mod message;
mod notification;
mod permission;
mod pull_request;
mod question;
mod raw;
mod short_id;
mod task;
mod task_spec;
mod todo;
mod trace;
mod transcript;
mod usage;
mod workflow;

pub use access::{AccessRole, TokenId};
pub use authority::{Authority, RuleList, RuleText};
pub use backoff::{Backoff, random_fraction};
pub use change::{BadPath, Bytes, ChangeSet, FileChange, FileMode, RepoPath};
pub use content::{
    ContentBlock, Image, RedactedThinking, Text, Thinking, ToolResult, ToolResultContent, ToolUse,
};
pub use cost::{Cost, Usd};
pub use counted::{counted, short_count};
pub use dev_order::{
    Consent, DevLimits, DevOrder, DevPurpose, Engine, FollowOrder, ImageRef, OnFailure,
    RepositoryRef, VerifyChoice,
};
pub use error_chain::error_chain;
pub use event::{
    Event, NoticeLevel, Outcome, PermissionDenial, ReachedLimit, RunResult, retry_text,
};
pub use ids::{EntryId, ParseIdError, SessionId, ToolUseId};
pub use labels::{LabelError, Labels};
pub use message::{Message, Role, StopReason};
pub use notification::{TaskEnd, TaskNotification, escape_xml};
pub use permission::{Confinement, PermissionRequest, ProposedChange, ProposedHunk};
pub use pull_request::{
    Check, CheckState, CommitId, MergeStrategy, Permission, PullRequest, PullRequestState, Review,
    ReviewComment, Verdict,
};
pub use question::{
    Answer, ClarificationRequest, ElicitationRequest, ParseQuestionIdError, Question, QuestionId,
    QuestionRequest, QuestionStatus,
};
pub use raw::RawObject;
pub use task::{
    OnDependencyFailure, ParseTaskError, RESULT_KEYS, TaskId, TaskRecord, TaskStatus, TaskType,
    TaskView,
};
pub use task_spec::{
    AgentSpec, AttemptOptions, Isolation, MonitorSpec, ShellSpec, TaskSpec, TeamItemSpec,
    TeammateSpec,
};
pub use todo::{Todo, TodoStatus};
pub use trace::TRACE_TARGET;
pub use transcript::{Entry, EntryBody, SeenFile, SeenLines, SessionMode, conversation};
pub use usage::Usage;
pub use workflow::{StepWork, Workflow, WorkflowSpec, WorkflowStep};
