//! What a scheduler is made of, and making one.
//!
//! Everything here is decided before the first sign of life, so that nobody sees a process that is
//! half described. What comes later (projects, runners, labels) is added by calls of its own.

use std::{
    collections::BTreeSet,
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64},
    },
};

use codespar_agent::EventBus;
use codespar_policy::Redactor;
use codespar_store::{DispatchStore, LeaseStore, Projects, RunnerId, TaskStore};
use jiff::Timestamp;
use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, broadcast};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Scheduler,
    clock::{Clock, Monotonic},
};
use crate::{
    engine::{LeaseEngine, TaskEngine},
    outputs::TaskOutputs,
    vital,
};

/// How much runs at once in this process.
#[derive(Debug, Clone, Copy)]
pub struct RunnerLimits {
    /// Agents of all kinds.
    pub agents: u32,
    /// Shell commands.
    pub shells: u32,
}

impl Default for RunnerLimits {
    fn default() -> Self {
        Self {
            agents: 20,
            shells: 8,
        }
    }
}

/// Whose tasks a scheduler takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchedulerKind {
    Session,
    Worker,
}

/// What a scheduler is made of.
pub struct SchedulerSetup {
    pub kind: SchedulerKind,
    pub engine: Arc<dyn TaskEngine>,
    pub store: Arc<dyn TaskStore>,
    /// Where outputs of tasks go.
    pub output_dir: PathBuf,
    pub limits: RunnerLimits,
    /// For all that is written of a task: its output and its end.
    pub redactor: Arc<Redactor>,
}

impl SchedulerSetup {
    /// A session that looks for its tasks itself, with the usual limits.
    pub fn with_leases<S>(store: Arc<S>, output_dir: PathBuf, redactor: Arc<Redactor>) -> Self
    where
        S: TaskStore + DispatchStore + 'static,
    {
        Self {
            kind: SchedulerKind::Session,
            engine: Arc::new(LeaseEngine(store.clone())),
            store,
            output_dir,
            limits: RunnerLimits::default(),
            redactor,
        }
    }
}

impl Scheduler {
    /// A scheduler that runs nothing yet. A session takes tasks of the projects that are added to it,
    /// a worker those of every project: others can tell by its name that remote agents are taken.
    pub fn new(setup: SchedulerSetup) -> Arc<Self> {
        let (id, projects) = match setup.kind {
            SchedulerKind::Session => (RunnerId(vital::name()), Projects::Only(BTreeSet::new())),
            SchedulerKind::Worker => (RunnerId::of_worker(vital::name()), Projects::All),
        };
        let clock = Arc::new(Monotonic::default());
        let leases = setup.store.clone();
        Arc::new(Self {
            projects: RwLock::new(projects),
            ..Self::over(id, leases, clock, setup)
        })
    }

    pub(super) fn over(
        id: RunnerId,
        leases: Arc<dyn LeaseStore>,
        clock: Arc<dyn Clock>,
        setup: SchedulerSetup,
    ) -> Self {
        Self {
            engine: setup.engine,
            store: setup.store,
            leases,
            clock,
            presence: Box::new(vital::presence),
            id,
            limits: setup.limits,
            labels: RwLock::default(),
            started_at: Timestamp::now(),
            projects: RwLock::default(),
            outputs: TaskOutputs::new(setup.output_dir),
            redactor: setup.redactor,
            runners: RwLock::default(),
            held: Mutex::default(),
            workload: tokio::sync::watch::Sender::default(),
            wake: Notify::new(),
            lists_may_have_changed: AtomicBool::new(true),
            ended: broadcast::channel(256).0,
            waiters: Mutex::default(),
            events: EventBus::default(),
            reserved: Mutex::default(),
            engine_state: Mutex::default(),
            runner_left: Notify::new(),
            resting: Mutex::default(),
            is_told: AtomicBool::new(false),
            is_pausing: AtomicBool::new(false),
            work_to_do: Notify::new(),
            news: Notify::new(),
            last_beat: Mutex::default(),
            taking: tokio::sync::Mutex::default(),
            changes: OnceLock::new(),
            is_started: AtomicBool::new(false),
            abstains: AtomicBool::new(false),
            lease_losses: AtomicU64::new(0),
            leaving: CancellationToken::new(),
            served: CancellationToken::new(),
            over: CancellationToken::new(),
            tracker: TaskTracker::new(),
        }
    }
}
