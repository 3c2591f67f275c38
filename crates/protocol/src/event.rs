//! The one stream that leaves the loop. The terminal, headless output, editors and tests read it.

use serde::{Deserialize, Serialize};

use crate::{
    Cost, EntryId, Message, PermissionRequest, SessionId, StopReason, TaskId, TaskStatus, TaskType,
    Todo, ToolResultContent, ToolUseId, Usage,
};

/// How much a notice matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeLevel {
    /// Good to know.
    Info,
    /// Something is not as asked.
    Warning,
}

/// Something that happened. Serialised as `{"type": "<snake_case name>", …}`; the form is stable:
/// fields may be added, never renamed or removed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// The model call of a turn is about to be made. Turns count from 1.
    TurnStarted { turn: u32 },
    /// A piece of the answer.
    TextDelta { text: String },
    /// A piece of the reasoning.
    ThinkingDelta { text: String },
    /// The model call failed in a way worth another try.
    Retrying {
        /// The try that failed, from 1.
        attempt: u32,
        /// How long it waits.
        delay_ms: u64,
        /// What went wrong.
        reason: String,
    },
    /// The whole answer; it is in the store.
    Assistant {
        id: EntryId,
        /// The provider's id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id: Option<String>,
        message: Message,
        /// The model that answered.
        model: String,
        /// Why it stopped.
        stop_reason: StopReason,
        /// Tokens of this call.
        usage: Usage,
        /// Cost of this call.
        cost: Cost,
    },
    /// A tool begins.
    ToolStarted {
        tool_use_id: ToolUseId,
        /// The tool's name.
        tool: String,
        /// What it does, in one line.
        summary: String,
        input: serde_json::Value,
    },
    /// The last lines that a running command has written, without secrets. They are shown while it
    /// runs and kept nowhere: its result has all of them. Only where a surface asked for them.
    CommandOutput {
        tool_use_id: ToolUseId,
        /// The newest last; a long line is cut. Control characters are those of the command.
        lines: Vec<String>,
    },
    /// A tool ended; its result is in the store.
    ToolFinished {
        tool_use_id: ToolUseId,
        /// The tool's name.
        tool: String,
        /// It failed or was refused.
        is_error: bool,
        /// How long it took.
        duration_ms: u64,
        /// What the model gets to see of it.
        result: ToolResultContent,
    },
    /// The answers to the calls of the last message, in call order; they are in the store.
    ToolResults {
        /// The entry of the last of them.
        id: EntryId,
        /// The user-role message that holds them.
        message: Message,
    },
    /// A person is being asked.
    PermissionAsked {
        /// What about.
        question: Box<PermissionRequest>,
    },
    /// A call was not allowed.
    PermissionDenied(PermissionDenial),
    /// The list of steps changed.
    Todos {
        /// All of them.
        todos: Vec<Todo>,
    },
    /// Older turns were replaced by a summary.
    Compacted {
        /// Size of the context before, in tokens.
        tokens_before: u64,
        /// How many entries stay whole.
        entries_kept: u64,
    },
    /// A task began.
    TaskStarted {
        task_id: TaskId,
        /// What it runs.
        task_type: TaskType,
        /// One line.
        subject: String,
        /// The call that started it, if one did.
        tool_use_id: Option<ToolUseId>,
        /// An agent's kind and model, for display.
        kind: Option<String>,
    },
    /// A task is under way.
    TaskProgress {
        task_id: TaskId,
        /// Tools it has used.
        tool_uses: u32,
        /// Tokens it has used.
        total_tokens: u64,
        /// How long it has run.
        duration_ms: u64,
        /// What it does now.
        summary: String,
    },
    /// A step of a built-in workflow has something to say.
    Step {
        /// Whose.
        task_id: TaskId,
        /// Which: `base`, `locate`, `read`, `generate`, `apply`, `verify`, `publish`, `report`.
        step: String,
        /// One or a few lines.
        text: String,
    },
    /// A task is over; its notification is in the conversation, or the call that waited for it
    /// has its result.
    TaskEnded {
        task_id: TaskId,
        status: TaskStatus,
        /// What it was, in one line.
        subject: String,
        /// What it was and how it ended, in one line.
        summary: String,
        /// Its error, or its result as far as the record has it.
        detail: String,
        /// Where all that it wrote is, if there is such a file.
        output_file: Option<String>,
        /// Tokens it used.
        usage: Usage,
        cost: Cost,
        /// Tools it used.
        tool_uses: u32,
        /// How long it took.
        duration_ms: u64,
    },
    /// Something that happened in a subagent.
    Subagent {
        /// The call that started it.
        parent_tool_use_id: ToolUseId,
        task_id: TaskId,
        /// What happened.
        event: Box<Event>,
    },
    /// Something a person should know.
    Notice {
        /// How much it matters.
        level: NoticeLevel,
        /// One line.
        text: String,
    },
    /// The run is over.
    Finished(Box<RunResult>),
}

/// A retry of a model call in one line, for people.
pub fn retry_text(attempt: u32, delay_ms: u64, reason: &str) -> String {
    format!(
        "try {attempt} failed ({reason}); next in {:.1} s",
        delay_ms as f64 / 1000.0
    )
}

/// A tool call that was not allowed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PermissionDenial {
    /// The tool's name.
    pub tool_name: String,
    pub tool_use_id: ToolUseId,
    /// The input it would have had.
    pub tool_input: serde_json::Value,
    /// Why not.
    pub reason: String,
}

/// How a run ended. The words are those of the `result` line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It came to an end of its own.
    Success,
    /// The limit on turns was reached.
    ErrorMaxTurns,
    /// The limit on money was reached.
    ErrorMaxBudgetUsd,
    /// No answer of the form that was asked for.
    ErrorMaxStructuredOutputRetries,
    /// Anything else: the provider failed, the store failed, it was interrupted.
    ErrorDuringExecution,
}

/// Which limit ended a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReachedLimit {
    Turns,
    WallTime,
    Budget,
}

/// The end of a run, with its sums.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// The session it belongs to.
    pub session_id: SessionId,
    pub outcome: Outcome,
    /// The final text, or what went wrong.
    pub result: String,
    /// A person or a signal stopped it.
    pub interrupted: bool,
    /// The limit that ended it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<ReachedLimit>,
    /// Why the model stopped last.
    pub stop_reason: Option<StopReason>,
    /// Model calls of this run.
    pub num_turns: u32,
    /// Tool calls of this run.
    pub tool_uses: u32,
    /// Wall time.
    pub duration_ms: u64,
    /// Time spent waiting for the model.
    pub duration_api_ms: u64,
    /// Tokens of this run.
    pub usage: Usage,
    /// Cost of this run.
    pub cost: Cost,
    /// The same by model, sorted by name.
    pub by_model: Vec<(String, Usage, Cost)>,
    /// Calls that were not allowed.
    pub permission_denials: Vec<PermissionDenial>,
}
