//! What a server shows of all projects: counts, sums and pages.

use std::path::PathBuf;

use async_trait::async_trait;
use codespar_protocol::{Cost, Entry, SessionId, TaskId, TaskStatus, TaskType, Usage};
use jiff::Timestamp;

use crate::{FleetReport, SessionRecord, StoreError};

/// How many tasks of a type are in a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskCount {
    pub task_type: TaskType,
    pub status: TaskStatus,
    pub count: u64,
}

/// What the calls of one model cost on one day in one directory.
#[derive(Debug, Clone, PartialEq)]
pub struct DailyUsage {
    /// The beginning of the day, in UTC.
    pub day: Timestamp,
    /// Where the conversation worked, or the project of the run.
    pub directory: PathBuf,
    pub model: String,
    /// Calls of agents; for runs of the dev agent that ask the model themselves, the runs.
    pub calls: u64,
    pub usage: Usage,
    pub cost: Cost,
}

/// Which sessions, most recently used first.
#[derive(Debug, Clone)]
pub struct SessionPage {
    /// Only those that work in one of these directories or below.
    pub roots: Vec<PathBuf>,
    /// Only those last used before this one.
    pub before: Option<SessionId>,
    pub limit: u32,
}

/// Reports. All of it is read only.
#[async_trait]
pub trait ReportStore: Send + Sync {
    /// Tasks of all projects; combinations that do not occur are left out.
    async fn task_counts(&self) -> Result<Vec<TaskCount>, StoreError>;

    /// Since when the task is ready to run that has been so for longest.
    async fn oldest_ready(&self) -> Result<Option<Timestamp>, StoreError>;

    /// Who runs what, and what waits. Costs what runs and what is ready.
    async fn fleet(&self) -> Result<FleetReport, StoreError>;

    /// By day, directory and model, within `from` and `until`.
    ///
    /// Calls of agents count on the day of the call. A run of the dev agent keeps one sum; it counts
    /// on the day it ended, under the model that it was ordered with, without what the agents that
    /// it started have on record themselves.
    async fn daily_usage(
        &self,
        from: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<DailyUsage>, StoreError>;

    async fn sessions_page(&self, page: SessionPage) -> Result<Vec<SessionRecord>, StoreError>;

    /// Entries of a transcript from a place on, at most so many.
    async fn entries_page(
        &self,
        id: SessionId,
        from: u64,
        limit: u32,
    ) -> Result<Vec<Entry>, StoreError>;

    /// The last entries of a transcript that have a text in them, in any case of ASCII letters.
    async fn find_entries(
        &self,
        id: SessionId,
        text: &str,
        limit: u32,
    ) -> Result<Vec<Entry>, StoreError>;

    /// The task of the agent whose conversation this is.
    async fn task_of_session(&self, id: SessionId) -> Result<Option<TaskId>, StoreError>;
}
