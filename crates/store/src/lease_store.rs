//! Leases: which process runs which task.
//!
//! A lease is not a matter of time. Each runner has a row with a count of its heartbeats, and holds
//! its tasks for as long as the row stands. Others may mark the row as silent or remove it, naming
//! the count that they saw: a runner that has shown a sign of life since is not touched. When to do
//! that is for the observer to decide, by its own count of heartbeats; no clock of one process is
//! compared with that of another, and no step of a clock ends a lease.
//!
//! A runner whose row was removed and that lives after all comes back with its next heartbeat, and
//! keeps what nobody has taken. For what was taken it holds an old epoch: its writes are refused.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use async_trait::async_trait;
use codespar_protocol::{Cost, Labels, TaskId, TaskRecord, TaskStatus, TaskType, Usage};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::StoreError;

/// How often in a row a task may be taken over from lost runners before it fails.
pub const MAX_TAKE_OVERS: u32 = 10;

/// [`RunnerAbout::engine`] of a process that looks for its tasks itself.
pub const LEASES: &str = "leases";

/// Names one process that runs tasks; fresh for each process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RunnerId(pub String);

/// Begins the names of processes that take agents meant for workers.
const WORKER: &str = "worker-";

impl RunnerId {
    /// The name of a process that takes agents meant for workers. `fresh` is unique.
    pub fn of_worker(fresh: impl std::fmt::Display) -> Self {
        Self(format!("{WORKER}{fresh}"))
    }

    /// Whether this process takes agents meant for workers.
    pub fn is_worker(&self) -> bool {
        self.0.starts_with(WORKER)
    }
}

/// How many more tasks of each type a runner can take.
#[derive(Debug, Clone, Default)]
pub struct Capacity {
    /// By type; a type that is absent is not taken.
    pub by_type: Vec<(TaskType, u32)>,
    /// In all.
    pub total: u32,
    /// Not these: their last attempt is still being wound up here, or they were put back a moment
    /// ago because their session is busy.
    pub skip: Vec<TaskId>,
    pub projects: Projects,
    /// What the runner offers: it takes tasks that require nothing else.
    pub labels: Labels,
    pub scope: ClaimScope,
}

/// Which tasks a runner looks for itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ClaimScope {
    /// All that it may run, and what lost runners left.
    #[default]
    Everything,
    /// Those that are reserved for it. An engine brings the others.
    Reserved,
}

/// The projects whose tasks a runner takes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Projects {
    /// Every project: a worker.
    #[default]
    All,
    /// Those with these roots.
    Only(BTreeSet<PathBuf>),
}

impl Projects {
    /// Whether tasks of the project with this root are taken.
    pub fn include(&self, root: &Path) -> bool {
        match self {
            Self::All => true,
            Self::Only(roots) => roots.contains(root),
        }
    }
}

/// A task taken under a lease.
#[derive(Debug, Clone)]
pub struct Claimed {
    /// Its record, now running.
    pub record: TaskRecord,
    /// The fencing number: what finishes it must show the same.
    pub epoch: u64,
    /// The runner it was taken over from, if its last one was lost.
    pub taken_from: Option<RunnerId>,
}

/// A runner as the store has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunnerSeen {
    pub id: RunnerId,
    /// How many signs of life it has shown.
    pub beats: u64,
    /// Marked by an observer: what another can continue may be taken from it.
    pub is_silent: bool,
}

/// What a process says of itself, for people to see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunnerAbout {
    pub host: String,
    /// Of the program.
    pub version: String,
    /// What it offers.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    pub started_at: Timestamp,
    /// How many agents it runs at most.
    pub agents: u32,
    /// How many shell commands it runs at most.
    pub shells: u32,
    /// What brings it its tasks: [`LEASES`], or the name of an engine.
    pub engine: String,
    /// Whether it reaches that.
    #[serde(default, skip_serializing_if = "EngineState::is_connected")]
    pub engine_state: EngineState,
}

/// Whether a process reaches its engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EngineState {
    #[default]
    Connected,
    Unreachable,
}

impl EngineState {
    fn is_connected(&self) -> bool {
        *self == Self::Connected
    }
}

/// A task that a runner works on, as it tells the store with its heartbeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldTask {
    pub id: TaskId,
    /// Its fencing number.
    pub epoch: u64,
    /// It has run here for so long that what happened to earlier runners no longer counts against
    /// it.
    pub is_stable: bool,
}

/// What a runner learns by its heartbeat.
#[derive(Debug, Clone, Default)]
pub struct Beat {
    /// Tasks it no longer holds: stop working on them, write nothing.
    pub lost: Vec<TaskId>,
    /// Tasks that someone wants stopped, with the reason.
    pub stop: Vec<(TaskId, String)>,
    /// Tasks with unread messages in their mailbox.
    pub mail: Vec<TaskId>,
    /// Tasks the store says it holds, with their epochs, that it did not name.
    pub unknown: Vec<(TaskId, u64)>,
    pub others: Vec<RunnerSeen>,
    pub elsewhere: WorkElsewhere,
}

/// Whether there are tasks that other runners hold, or that are ready and not taken: while there are,
/// somebody must look after those runners.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WorkElsewhere {
    #[default]
    Possible,
    None,
}

/// How an attempt ended.
#[derive(Debug, Clone)]
pub struct TaskEnding {
    /// `Completed`, `Failed` or `Killed`.
    pub status: TaskStatus,
    /// Why it failed or was stopped.
    pub error: Option<String>,
    /// Of a shell command.
    pub exit_code: Option<i32>,
    /// Tokens of this attempt.
    pub usage: Usage,
    /// Cost of this attempt.
    pub cost: Cost,
    /// Merged into the metadata (final text, counts).
    pub metadata: Map<String, Value>,
    /// The body of the notification, if the session is told; empty when there is nothing to say.
    pub notification: String,
    /// What becomes of a completed task.
    pub afterwards: Afterwards,
}

/// What becomes of a task that has completed an attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Afterwards {
    #[default]
    Over,
    /// It is pending again at once, as its next attempt, unless a stop was asked for.
    Again,
}

/// Leases. Every state change is a transaction that checks the state it leaves from.
#[async_trait]
pub trait LeaseStore: Send + Sync {
    /// A sign of life: the runner is there, not silent, and its count goes up by one.
    async fn beat(
        &self,
        runner: &RunnerId,
        about: &RunnerAbout,
        held: &[HeldTask],
    ) -> Result<Beat, StoreError>;

    /// The runners that have neither withdrawn nor been removed.
    async fn runners(&self) -> Result<Vec<RunnerSeen>, StoreError>;

    /// Frees what another can continue (all but shell commands) of a runner that has shown no sign
    /// of life since it was seen. Its name reserves nothing any more.
    async fn mark_silent(&self, seen: &RunnerSeen) -> Result<(), StoreError>;

    /// Frees all tasks of a runner that has shown no sign of life since it was seen, and forgets
    /// it.
    async fn reap_runner(&self, seen: &RunnerSeen) -> Result<(), StoreError>;

    /// Says that this runner is gone.
    async fn withdraw_runner(&self, runner: &RunnerId) -> Result<(), StoreError>;

    /// Takes tasks within capacity: first running ones whose runner is lost, in order of creation,
    /// then pending ones that wait for nothing, within the limits (`LimitStore`); of the projects
    /// that `capacity` names, with no labels but those it offers, and never one that this runner
    /// holds. Pending ones of one repository are taken in order of creation. Repositories take
    /// turns: the next is of the one that has least running. A task that was taken over `MAX_TAKE_OVERS` times in a row
    /// fails instead. Costs what it takes, not what there is.
    async fn claim_tasks(
        &self,
        runner: &RunnerId,
        capacity: &Capacity,
    ) -> Result<Vec<Claimed>, StoreError>;

    /// Ends an attempt, if the epoch still holds. Dependents that waited for nothing else become
    /// ready; if the task did not complete they fail with that reason, and so on down, unless
    /// they were made with `OnDependencyFailure::Run`. Notifications are written in the same
    /// transaction. Gives the ids of dependents that failed with it. Path claims are let go. An
    /// agent that completed while a message reached its mailbox is pending again at once. What a
    /// teammate that did not complete had taken goes back to its team's list.
    async fn finish_task(
        &self,
        id: &TaskId,
        epoch: u64,
        ending: TaskEnding,
    ) -> Result<Vec<TaskId>, StoreError>;

    /// Puts a task back, as it was before it was claimed: an orderly shutdown. One that was asked
    /// to stop meanwhile is killed instead.
    async fn release_task(&self, id: &TaskId, epoch: u64) -> Result<(), StoreError>;

    /// Those of these tasks that are not over, by whomever they are run.
    async fn unfinished(&self, ids: &[TaskId]) -> Result<Vec<TaskId>, StoreError>;

    /// Gives what is free on the lists of teams (pending, waiting for nothing, owned by nobody) to
    /// members who have come to their end: each gets one, as a message, and runs again. Gives the
    /// members that were woken. Costs what is free.
    async fn assign_items(&self) -> Result<Vec<TaskId>, StoreError>;
}
