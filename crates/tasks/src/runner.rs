//! What a runner is given and what it gives back.

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use codespar_agent::HandOver;
use codespar_policy::Redactor;
use codespar_protocol::{Authority, Cost, TaskRecord, TaskSpec, TaskStatus, Usage};
use codespar_store::{Afterwards, RunnerId, TaskLease, TaskStore};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The error of a task whose process left in good order and took it along.
pub(crate) const PROCESS_ENDED: &str = "the process that ran it ended";

/// A task under way, as its runner sees it. Made by the scheduler for each attempt. Its `record`
/// does not change afterwards: what others write meanwhile (a stop, a message) comes by `cancel`
/// and `mail`.
#[derive(Clone)]
pub struct Control {
    /// Its record when it was claimed.
    pub record: TaskRecord,
    /// Its fencing number.
    pub epoch: u64,
    /// The runner it was taken over from, if its last one was lost.
    pub taken_from: Option<RunnerId>,
    /// Cancelled when it is to stop.
    pub cancel: CancellationToken,
    /// Told when another process is to go on with it.
    pub hand_over: HandOver,
    /// Why, once it is.
    pub stop_reason: Arc<Mutex<Option<TaskStopReason>>>,
    /// Woken when its mailbox has something.
    pub mail: Arc<Notify>,
    /// Where its output goes.
    pub output: PathBuf,
    /// Takes secrets out of that.
    pub redactor: Arc<Redactor>,
    pub store: Arc<dyn TaskStore>,
}

impl Control {
    /// What writes of this attempt are made under.
    pub fn lease(&self) -> TaskLease {
        TaskLease {
            task: self.record.task_id.clone(),
            epoch: self.epoch,
        }
    }

    /// What the task runs.
    pub fn spec(&self) -> Result<&TaskSpec, String> {
        self.record.spec.as_ref().ok_or_else(|| {
            "it was made by an earlier version, which did not write down all it runs; make it again"
                .to_owned()
        })
    }

    /// By whose authority it runs.
    pub fn authority(&self) -> Result<&Authority, String> {
        self.record.authority.as_ref().ok_or_else(|| {
            "it was made by an earlier version, which did not write down for which project; make it \
             again"
                .to_owned()
        })
    }

    /// The error of a runner that was handed a task of another kind.
    pub fn wrong_kind(&self) -> String {
        format!(
            "{} is a {} task that runs something else",
            self.record.task_id, self.record.task_type
        )
    }

    /// Its last runner was lost with it.
    pub fn was_lost(&self) -> bool {
        self.taken_from.is_some()
    }

    /// Why it is to end for good, if someone asked for that; otherwise what to write when nobody
    /// can go on with it.
    pub fn reason_to_end(&self) -> String {
        match &*self.stop_reason.lock() {
            Some(TaskStopReason::Asked(reason)) => reason.clone(),
            _ => PROCESS_ENDED.to_owned(),
        }
    }
}

/// Why a running task is told to stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TaskStopReason {
    /// Someone asked for it.
    Asked(String),
    /// This process is leaving; the task goes back for others.
    Leaving,
    /// Another runner has it now.
    LeaseLost,
}

impl TaskStopReason {
    /// Another process goes on with it.
    pub fn is_hand_over(&self) -> bool {
        matches!(self, Self::Leaving | Self::LeaseLost)
    }
}

/// Whether a result is all there is to tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Completeness {
    Whole,
    /// A limit ended the work: the result is what was found until then.
    Partial,
}

/// How an attempt ended.
#[derive(Debug, Clone)]
pub struct TaskOutcome {
    /// `Completed`, `Failed` or `Killed`; `Pending` puts the task back, to be tried again.
    pub status: TaskStatus,
    /// The final text, for the session.
    pub result: Option<String>,
    /// Whether `result` is all that it was to find.
    pub completeness: Completeness,
    /// Why it failed or was stopped.
    pub error: Option<String>,
    /// Of a shell command.
    pub exit_code: Option<i32>,
    /// Tokens.
    pub usage: Usage,
    pub cost: Cost,
    /// What becomes of it if it has completed.
    pub afterwards: Afterwards,
    /// Tools used.
    pub tool_uses: u32,
    /// More for the record.
    pub metadata: Map<String, Value>,
}

impl TaskOutcome {
    /// A failure with nothing else to tell.
    pub fn failed(error: impl Into<String>) -> Self {
        Self {
            status: TaskStatus::Failed,
            result: None,
            completeness: Completeness::Whole,
            error: Some(error.into()),
            exit_code: None,
            usage: Usage::default(),
            cost: Cost::default(),
            afterwards: Afterwards::Over,
            tool_uses: 0,
            metadata: Map::new(),
        }
    }

    /// Not over: the task goes back to where it was claimed from.
    pub fn put_back(reason: impl Into<String>) -> Self {
        Self {
            status: TaskStatus::Pending,
            ..Self::failed(reason)
        }
    }
}

impl TaskOutcome {
    /// Without secrets, as it is recorded and told. Done by the scheduler for every runner, so that
    /// no runner can forget it.
    pub(crate) fn redacted(mut self, redactor: &Redactor) -> Self {
        for text in [&mut self.result, &mut self.error].into_iter().flatten() {
            *text = redactor.redact(text).into_owned();
        }
        for value in self.metadata.values_mut() {
            redactor.redact_json(value);
        }
        self
    }
}

/// Runs tasks of one type.
#[async_trait]
pub trait Runner: Send + Sync {
    /// Runs an attempt to its end, or until it is told to stop. Returns when nothing of it is
    /// left running.
    ///
    /// The scheduler never drops the future. A runner stops when `control.cancel` is cancelled;
    /// until it returns the task counts as running here, and its place is not given to another.
    async fn run(&self, control: Control) -> TaskOutcome;
}
