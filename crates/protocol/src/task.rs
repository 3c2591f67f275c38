//! Tasks: everything that runs beside the conversation, as one record with one lifecycle.

use std::{fmt, str::FromStr};

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::{Map, Value};

use crate::{
    AgentSpec, Authority, Cost, Labels, SessionId, TaskSpec, Usage,
    short_id::{are_digits, fresh_digits},
};

/// What a task runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskType {
    /// A shell command.
    LocalBash,
    /// A subagent in the process that claims it.
    LocalAgent,
    /// An agent in a `codespar worker`.
    RemoteAgent,
    /// A named, long-lived agent of a team.
    InProcessTeammate,
    /// A pipeline of steps.
    LocalWorkflow,
    /// Watches an MCP server.
    MonitorMcp,
    /// Thinks in the background and writes notes.
    Dream,
}

impl TaskType {
    pub const ALL: [Self; 7] = [
        Self::LocalBash,
        Self::LocalAgent,
        Self::RemoteAgent,
        Self::InProcessTeammate,
        Self::LocalWorkflow,
        Self::MonitorMcp,
        Self::Dream,
    ];

    /// The first letter of its ids.
    pub const fn prefix(self) -> char {
        match self {
            Self::LocalBash => 'b',
            Self::LocalAgent => 'a',
            Self::RemoteAgent => 'r',
            Self::InProcessTeammate => 't',
            Self::LocalWorkflow => 'w',
            Self::MonitorMcp => 'm',
            Self::Dream => 'd',
        }
    }

    /// The word in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::LocalBash => "local_bash",
            Self::LocalAgent => "local_agent",
            Self::RemoteAgent => "remote_agent",
            Self::InProcessTeammate => "in_process_teammate",
            Self::LocalWorkflow => "local_workflow",
            Self::MonitorMcp => "monitor_mcp",
            Self::Dream => "dream",
        }
    }

    /// Runs an agent loop, which can be resumed and sent messages.
    pub const fn is_agent(self) -> bool {
        matches!(
            self,
            Self::LocalAgent | Self::RemoteAgent | Self::InProcessTeammate | Self::Dream
        )
    }
}

impl fmt::Display for TaskType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text names no type of task, status or id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {kind}; {expected}")]
pub struct ParseTaskError {
    kind: &'static str,
    text: String,
    expected: String,
}

impl FromStr for TaskType {
    type Err = ParseTaskError;
    fn from_str(text: &str) -> Result<Self, ParseTaskError> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or_else(|| ParseTaskError {
                kind: "a task type",
                text: text.to_owned(),
                expected: format!("there are {}", Self::ALL.map(Self::as_str).join(", ")),
            })
    }
}

/// A task's name: the letter of its type, `-`, eight hexadecimal digits.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskId(String);

impl TaskId {
    pub fn new(kind: TaskType) -> Self {
        Self(format!("{}-{}", kind.prefix(), fresh_digits()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The type its letter stands for.
    pub fn task_type(&self) -> Option<TaskType> {
        let letter = self.0.chars().next()?;
        TaskType::ALL
            .into_iter()
            .find(|kind| kind.prefix() == letter)
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TaskId({})", self.0)
    }
}

impl FromStr for TaskId {
    type Err = ParseTaskError;
    fn from_str(text: &str) -> Result<Self, ParseTaskError> {
        let id = Self(text.to_owned());
        match text.split_once('-') {
            Some((letter, digits))
                if letter.len() == 1 && are_digits(digits) && id.task_type().is_some() =>
            {
                Ok(id)
            }
            _ => Err(ParseTaskError {
                kind: "a task id",
                text: text.to_owned(),
                expected: "one looks like a-1f3c2b8a".to_owned(),
            }),
        }
    }
}

impl Serialize for TaskId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for TaskId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(D::Error::custom)
    }
}

/// How far a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Not begun.
    Pending,
    /// A runner has it.
    Running,
    /// It did what it was for.
    Completed,
    /// It did not.
    Failed,
    /// Someone stopped it.
    Killed,
}

impl TaskStatus {
    pub const ALL: [Self; 5] = [
        Self::Pending,
        Self::Running,
        Self::Completed,
        Self::Failed,
        Self::Killed,
    ];

    /// The word in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Killed => "killed",
        }
    }

    /// It is over (until it is continued).
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Killed)
    }

    /// Whether the lifecycle has this step. A new attempt (final → pending) is not one: it is a
    /// step of its own, for agents that are sent a message.
    pub const fn may_become(self, next: Self) -> bool {
        match self {
            Self::Pending => matches!(next, Self::Running | Self::Failed | Self::Killed),
            Self::Running => matches!(next, Self::Completed | Self::Failed | Self::Killed),
            Self::Completed | Self::Failed | Self::Killed => false,
        }
    }
}

impl fmt::Display for TaskStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for TaskStatus {
    type Err = ParseTaskError;
    fn from_str(text: &str) -> Result<Self, ParseTaskError> {
        Self::ALL
            .into_iter()
            .find(|status| status.as_str() == text)
            .ok_or_else(|| ParseTaskError {
                kind: "a task status",
                text: text.to_owned(),
                expected: format!("there are {}", Self::ALL.map(Self::as_str).join(", ")),
            })
    }
}

/// A task as people, tools and scripts see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TaskRecord {
    pub task_id: TaskId,
    /// What it runs.
    pub task_type: TaskType,
    /// How far it is.
    pub status: TaskStatus,
    /// One line.
    pub subject: String,
    /// More about it; empty if nothing was said.
    #[serde(default)]
    pub description: String,
    /// What to show while it runs.
    pub active_form: Option<String>,
    /// The agent that runs it (its name, or its kind), or who has taken it.
    pub owner: Option<String>,
    /// What it runs. Absent where an earlier version did not write it down: such a task cannot
    /// run any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<TaskSpec>,
    /// By whose authority it runs. Absent as `spec` is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authority: Option<Authority>,
    /// The process that alone takes it while that process lives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved_for: Option<String>,
    /// What the process that runs it must offer.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// What becomes of it when a task it waits for does not complete.
    #[serde(default)]
    pub on_dependency_failure: OnDependencyFailure,
    /// What callers keep with it, and what its runner tells of its end (`result`, `report`, …).
    /// Nothing in it changes what runs.
    pub metadata: Map<String, Value>,
    /// Tasks that wait for this one.
    pub blocks: Vec<TaskId>,
    /// Tasks this one waits for.
    pub blocked_by: Vec<TaskId>,
    /// Where its output goes.
    pub output_file: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When its latest attempt began.
    pub started_at: Option<Timestamp>,
    /// When it was over.
    pub ended_at: Option<Timestamp>,
    /// Why it failed or was stopped.
    pub error: Option<String>,
    /// Of a shell command.
    pub exit_code: Option<i32>,
    /// How many times it was begun.
    pub attempt: u32,
    /// Tokens of all attempts.
    pub usage: Usage,
    /// Cost of all attempts.
    pub cost_usd: Cost,
    /// The session that made it.
    pub session_id: Option<SessionId>,
    /// The task that made it.
    pub parent_task_id: Option<TaskId>,
}

impl TaskRecord {
    /// The team on whose list this stands. Such a record is work for a teammate to take, not
    /// something that runs.
    pub fn team_list(&self) -> Option<&str> {
        self.spec.as_ref()?.team_list()
    }

    /// Runs an agent loop, which can be resumed and sent messages.
    pub fn runs_agent(&self) -> bool {
        self.agent().is_some()
    }

    /// The agent it runs, if it runs one.
    pub fn agent(&self) -> Option<&AgentSpec> {
        self.spec.as_ref()?.agent()
    }

    /// The record as JSON for people and scripts: each time as RFC 3339 and, with `_unix` added to
    /// its name, in seconds since 1970.
    pub fn view(&self) -> TaskView<'_> {
        let seconds = |at: Option<Timestamp>| at.map(Timestamp::as_second);
        TaskView {
            record: self,
            created_at_unix: self.created_at.as_second(),
            updated_at_unix: self.updated_at.as_second(),
            started_at_unix: seconds(self.started_at),
            ended_at_unix: seconds(self.ended_at),
        }
    }

    /// The name that an agent can be sent messages by.
    pub fn agent_name(&self) -> Option<&str> {
        self.agent()?.name.as_deref()
    }
}

/// See [`TaskRecord::view`].
#[derive(Debug, Serialize)]
pub struct TaskView<'a> {
    #[serde(flatten)]
    record: &'a TaskRecord,
    created_at_unix: i64,
    updated_at_unix: i64,
    started_at_unix: Option<i64>,
    ended_at_unix: Option<i64>,
}

/// Metadata that runners write when a task ends. Callers cannot write them: others read them as
/// the task's own report.
pub const RESULT_KEYS: [&str; 6] = [
    "result",
    "partial",
    "tool_uses",
    "duration_ms",
    "memory_file",
    "denied",
];

/// What becomes of a task when one that it waits for does not complete.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnDependencyFailure {
    /// It fails with it.
    #[default]
    Fail,
    /// It runs all the same.
    Run,
}

impl OnDependencyFailure {
    pub const ALL: [Self; 2] = [Self::Fail, Self::Run];

    /// The word in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Fail => "fail",
            Self::Run => "run",
        }
    }
}

impl FromStr for OnDependencyFailure {
    type Err = ParseTaskError;
    fn from_str(text: &str) -> Result<Self, ParseTaskError> {
        Self::ALL
            .into_iter()
            .find(|choice| choice.as_str() == text)
            .ok_or_else(|| ParseTaskError {
                kind: "what to do when a dependency fails",
                text: text.to_owned(),
                expected: "there are fail, run".to_owned(),
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_carry_the_letter_of_their_type_and_are_read_back() {
        for kind in TaskType::ALL {
            let id = TaskId::new(kind);
            assert_eq!(id.as_str().parse::<TaskId>(), Ok(id.clone()));
            assert_eq!(id.task_type(), Some(kind));
            assert_eq!(id.as_str().len(), 10);
        }
    }

    #[test]
    fn a_process_never_makes_the_same_id_twice() {
        let ids: std::collections::HashSet<TaskId> = (0..300_000)
            .map(|_| TaskId::new(TaskType::LocalBash))
            .collect();
        assert_eq!(ids.len(), 300_000);
    }

    #[test]
    fn what_is_not_an_id_is_refused() {
        for text in [
            "",
            "a",
            "a-",
            "a-123",
            "x-12345678",
            "a-1234567g",
            "a-1234567A",
            "a-123456789",
            "aa-12345678",
        ] {
            assert!(text.parse::<TaskId>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_lifecycle_has_no_way_back() {
        for from in TaskStatus::ALL {
            for to in TaskStatus::ALL {
                let allowed = match (from, to) {
                    (
                        TaskStatus::Pending,
                        TaskStatus::Running | TaskStatus::Failed | TaskStatus::Killed,
                    ) => true,
                    (TaskStatus::Running, end) => end.is_final(),
                    _ => false,
                };
                assert_eq!(from.may_become(to), allowed, "{from} → {to}");
            }
        }
    }
}
