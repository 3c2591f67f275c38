//! Dispatch: tasks that an engine brings to their runners, in place of runners that look for them.
//!
//! The engine (`codespar_tasks::Engine`) delivers and notices lost processes; the database stays the
//! truth. An *offer* is a ready task that was admitted within the limits and handed to the engine.
//! It may be handed over any number of times, may be lost there, and may reach two runners: whoever
//! begins it gets a lease with a fencing number, as by a claim, and everyone else is told that there
//! is nothing to do.
//!
//! ```text
//! ready ── admit ──► offered ── begin ──► running ── end ──► over
//!            ▲           ▲                   │
//!            │           └── release, begin by another when its runner is lost
//!            └── withdraw_offers
//! ```
//!
//! A task that is offered is claimed by nobody (`LeaseStore::claim_tasks`), and limits count it as
//! running.

use std::fmt;

use async_trait::async_trait;
use codespar_protocol::{Labels, TaskId, TaskType};

use crate::{Claimed, RunnerId, StoreError};

/// A task in the hands of an engine, which knows it as `<task>.<number>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskOffer {
    pub task: TaskId,
    /// Grows with each attempt: an old offer begins nothing.
    pub number: u64,
    pub task_type: TaskType,
    /// What the runner must offer.
    pub labels: Labels,
}

impl fmt::Display for TaskOffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.task, self.number)
    }
}

/// What types of tasks take from a process. Room is counted by it, and engines have a queue for
/// each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TaskClass {
    Agents,
    Commands,
    /// Workflows and monitors, which only wait for others.
    Waiting,
}

impl TaskClass {
    pub const ALL: [Self; 3] = [Self::Agents, Self::Commands, Self::Waiting];

    pub fn of(task_type: TaskType) -> Self {
        match task_type {
            TaskType::LocalBash => Self::Commands,
            kind if kind.is_agent() => Self::Agents,
            _ => Self::Waiting,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agents => "agents",
            Self::Commands => "commands",
            Self::Waiting => "waiting",
        }
    }
}

/// What became of an offer that a runner wanted to begin.
#[derive(Debug, Clone)]
pub enum Begun {
    Claimed(Box<Claimed>),
    /// The task is over, was offered again since, or is not offered any more.
    Nothing,
    /// This runner has it, and shows signs of life; it may be the one that asks.
    Held(RunnerId),
}

/// Dispatch by an engine. Every state change is a transaction that checks the state it leaves from.
#[async_trait]
pub trait DispatchStore: Send + Sync {
    /// Admits ready tasks of these types: in turns between repositories and within the limits, and
    /// until `window` tasks of each class and set of labels are offered and not begun. Where there are
    /// limits, no more than the workers that are there can begin at once, because a limit counts what
    /// is offered. Those that are
    /// reserved for a process that lives are left to it. What lies behind the window stays here, so
    /// that it can still take turns.
    async fn admit_tasks(
        &self,
        types: &[TaskType],
        window: u32,
    ) -> Result<Vec<TaskOffer>, StoreError>;

    /// Offers that nobody works on: not begun, or begun by a runner that is lost. Offering them again
    /// is harmless, and mends whatever was lost on the way.
    async fn open_offers(&self) -> Result<Vec<TaskOffer>, StoreError>;

    /// The sets of labels of tasks that are ready or offered, and of those that a lost runner had;
    /// each is a queue of the engine.
    async fn label_sets(&self) -> Result<Vec<Labels>, StoreError>;

    /// Takes an offered task under a lease: one that waits, or one whose runner is lost. A task that
    /// was taken over `MAX_TAKE_OVERS` times in a row fails instead.
    async fn begin_task(
        &self,
        runner: &RunnerId,
        task: &TaskId,
        number: u64,
    ) -> Result<Begun, StoreError>;

    /// The workers that show signs of life and reach this engine, in an order that is the same for
    /// all.
    async fn dispatchers(&self, engine: &str) -> Result<Vec<RunnerId>, StoreError>;

    /// Takes offers that were not begun back, if no worker that shows signs of life uses an engine:
    /// runners look for these tasks themselves again. Gives how many.
    async fn withdraw_offers(&self) -> Result<u64, StoreError>;
}
