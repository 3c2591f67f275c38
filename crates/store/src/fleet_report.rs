//! What all processes together do, and what waits for them.

use codespar_protocol::{Labels, TaskId, TaskType};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Limit, RunnerAbout};

/// One moment of the fleet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetReport {
    /// By id.
    pub runners: Vec<FleetRunner>,
    /// By type, labels and repository.
    pub queues: Vec<QueueDepth>,
    pub limits: Vec<LimitUse>,
}

/// A process that runs tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetRunner {
    pub id: String,
    /// How many signs of life it has shown; 0 for one that is gone and whose tasks nobody has taken
    /// over yet.
    pub beats: u64,
    pub is_silent: bool,
    /// Absent until its first heartbeat, and for one of an earlier version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<RunnerAbout>,
    /// In order of creation.
    pub running: Vec<FleetTask>,
}

/// How it stands with a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunnerState {
    Alive,
    /// It has shown no sign of life for a while: others may take its tasks over.
    Silent,
    /// It left tasks behind that nobody has taken over yet.
    Gone,
}

impl RunnerState {
    pub const ALL: [Self; 3] = [Self::Alive, Self::Silent, Self::Gone];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Alive => "alive",
            Self::Silent => "silent",
            Self::Gone => "gone",
        }
    }
}

impl FleetRunner {
    pub fn state(&self) -> RunnerState {
        match (self.beats, self.is_silent) {
            (0, _) => RunnerState::Gone,
            (_, true) => RunnerState::Silent,
            (_, false) => RunnerState::Alive,
        }
    }
}

/// A task that a process runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetTask {
    pub task_id: TaskId,
    pub task_type: TaskType,
    pub subject: String,
    pub repository: String,
    pub started_at: Option<Timestamp>,
    pub attempt: u32,
    /// How often in a row it was taken over from a lost process.
    pub take_overs: u32,
}

/// Tasks that wait for nothing but a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueDepth {
    pub task_type: TaskType,
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    pub repository: String,
    pub ready: u64,
    /// Since when the oldest of them has waited: when it was made, or what it waited for was over, it
    /// was restarted, or a process handed it back.
    pub oldest_ready_at: Timestamp,
}

/// A limit, and what runs under it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitUse {
    #[serde(flatten)]
    pub limit: Limit,
    /// Of the tasks that it counts. Under a limit for each repository or user without their own, the
    /// most that one of them has.
    pub running: u64,
}
