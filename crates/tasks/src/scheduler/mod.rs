//! Runs what its engine brings: keeps leases, tells tasks to stop, and records how they end.
//!
//! A lease holds while this process shows signs of life (`heartbeat`) and nobody has found it lost
//! (`watch`). A process never takes what it holds itself, and takes nothing when its own last sign
//! of life is not recent. Whoever has lost a task learns it with the next heartbeat: the work ends
//! at once, nothing more is written of it, and what it would write is refused by the store.

mod attempt;
mod brought;
mod clock;
mod ending;
mod heartbeat;
mod leave;
mod resting;
mod setup;
#[cfg(test)]
mod tests;
mod watch;
mod workload;

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use codespar_agent::{EventBus, HandOver};
use codespar_policy::Redactor;
use codespar_protocol::{Labels, SessionId, TaskId, TaskRecord, TaskStatus, TaskType};
use codespar_store::{
    Capacity, ChangeFeed, ChangeKind, ClaimScope, EngineState, LeaseStore, Projects, RunnerId,
    StoreChange, TaskClass, TaskStore,
};
use jiff::Timestamp;
use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, broadcast};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    engine::TaskEngine,
    outputs::TaskOutputs,
    runner::{Runner, TaskStopReason},
    vital::Presence,
};
pub use brought::RunnerSlot;
use clock::Clock;
use resting::RestingTasks;
pub use setup::{RunnerLimits, SchedulerKind, SchedulerSetup};
pub use workload::Workload;

/// Nothing is taken when our last sign of life is older.
const RECENT: Duration = Duration::from_secs(5);
/// A scheduler whose last sign of life is older is not at work: the database or the process hangs.
const ALIVE: Duration = Duration::from_secs(15);

/// An attempt that runs here: what is needed to signal it. Removed when its end is recorded.
struct Held {
    epoch: u64,
    task_type: TaskType,
    /// Heartbeats since it was taken.
    beats: u32,
    since: Instant,
    cancel: CancellationToken,
    hand_over: HandOver,
    stop_reason: Arc<Mutex<Option<TaskStopReason>>>,
    mail: Arc<Notify>,
    /// Told once, when this attempt is over here.
    end: tokio::sync::watch::Sender<Option<AttemptEnd>>,
}

/// What became of an attempt that ran here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptEnd {
    /// Its end is on record, or somebody else has the task.
    Over,
    /// It goes on elsewhere, at once.
    HandedBack,
    /// It could not run yet and was put back; to be tried after this time.
    Later(Duration),
}

/// Something can be claimed that could not before.
fn is_new_work(change: &StoreChange) -> bool {
    match change.kind {
        // The end of a task lets others begin.
        ChangeKind::Task { status } => status != TaskStatus::Running,
        ChangeKind::Mail => true,
        _ => false,
    }
}

/// One per process.
pub struct Scheduler {
    engine: Arc<dyn TaskEngine>,
    store: Arc<dyn TaskStore>,
    leases: Arc<dyn LeaseStore>,
    clock: Arc<dyn Clock>,
    /// Looks for the process of another runner.
    presence: Box<dyn Fn(&RunnerId) -> Presence + Send + Sync>,
    id: RunnerId,
    limits: RunnerLimits,
    /// What this process offers: tasks that require more are left to others.
    labels: RwLock<Labels>,
    started_at: Timestamp,
    /// Whose tasks are taken.
    projects: RwLock<Projects>,
    outputs: TaskOutputs,
    /// For all that is written of a task: its output and its end.
    redactor: Arc<Redactor>,
    runners: RwLock<HashMap<TaskType, Arc<dyn Runner>>>,
    held: Mutex<HashMap<TaskId, Held>>,
    workload: tokio::sync::watch::Sender<Workload>,
    wake: Notify,
    /// Something other than the end of a command has happened since items were last given out. The
    /// query for free items is left out while it is false.
    lists_may_have_changed: AtomicBool,
    ended: broadcast::Sender<TaskId>,
    /// Who waits for the end of one task; each is woken by that end alone.
    waiters: Mutex<HashMap<TaskId, Arc<Notify>>>,
    /// Who hears what tasks do, until they are over.
    pub(crate) events: EventBus,
    /// Places of tasks that are about to begin.
    reserved: Mutex<HashMap<TaskClass, u32>>,
    /// Whether the engine is reached.
    engine_state: Mutex<EngineState>,
    /// A process that was there is not any more.
    runner_left: Notify,
    /// Tasks that were put back and are left alone for a while.
    resting: Mutex<RestingTasks>,
    /// Changes of other processes are followed.
    is_told: AtomicBool,
    /// Heartbeats pause, or will after the next.
    is_pausing: AtomicBool,
    /// Ends the pause.
    work_to_do: Notify,
    /// Something about a task that runs here was changed by somebody, who may be far away.
    news: Notify,
    /// When our last sign of life was recorded.
    last_beat: Mutex<Option<Duration>>,
    /// Held while tasks are being claimed.
    taking: tokio::sync::Mutex<()>,
    /// Tells of work that other processes make; without it each heartbeat looks for some.
    changes: OnceLock<ChangeFeed>,
    is_started: AtomicBool,
    /// Nothing is ever taken: another process runs the tasks that are made here.
    abstains: AtomicBool,
    lease_losses: AtomicU64,
    /// Nothing new is taken.
    leaving: CancellationToken,
    /// The engine brings nothing more, and knows what became of all it brought.
    served: CancellationToken,
    /// All work is recorded or handed back.
    over: CancellationToken,
    tracker: TaskTracker,
}

impl Scheduler {
    /// Who we are.
    pub fn id(&self) -> &RunnerId {
        &self.id
    }

    /// Where a task's output goes.
    pub fn output_file(&self, tree: SessionId, id: &TaskId) -> PathBuf {
        self.outputs.new_file(tree, id)
    }

    /// What tasks write.
    pub fn outputs(&self) -> &TaskOutputs {
        &self.outputs
    }

    /// From now on tasks of this project are taken.
    pub fn add_project(&self, root: PathBuf) {
        if let Projects::Only(roots) = &mut *self.projects.write() {
            roots.insert(root);
        }
        self.wake.notify_one();
    }

    /// From now on tasks that require these labels are taken too.
    pub fn offer_labels(&self, labels: Labels) {
        *self.labels.write() = labels;
        self.wake.notify_one();
    }

    /// From now on tasks of this type are taken.
    pub fn serve(&self, task_type: TaskType, runner: Arc<dyn Runner>) {
        self.runners.write().insert(task_type, runner);
        self.wake.notify_one();
    }

    /// Whether tasks of this type can run here.
    pub fn serves(&self, task_type: TaskType) -> bool {
        self.runners.read().contains_key(&task_type)
    }

    /// Whether this process may run a task, by its project.
    pub fn may_run(&self, task: &TaskRecord) -> bool {
        let authority = task.authority.as_ref();
        authority.is_some_and(|authority| self.projects.read().include(&authority.project_root))
    }

    /// Something may be ready.
    pub fn nudge(&self) {
        self.lists_may_have_changed.store(true, Ordering::Relaxed);
        self.wake.notify_one();
    }

    /// A task of this type was made. A command that finds all places taken is left for the end of
    /// one that runs, which looks for the next anyway: a thousand of them would ask the store a
    /// thousand times for nothing.
    pub(crate) fn made(&self, task_type: TaskType) {
        match task_type {
            TaskType::LocalBash if self.room().1 == 0 => {}
            TaskType::LocalBash => self.wake.notify_one(),
            _ => self.nudge(),
        }
    }

    /// What the agents and tasks of this process do.
    pub fn events(&self) -> &EventBus {
        &self.events
    }

    /// Hears of tasks that end in this process.
    pub fn endings(&self) -> broadcast::Receiver<TaskId> {
        self.ended.subscribe()
    }

    /// Woken when this task's attempt ends in this process.
    pub(crate) fn end_of(&self, id: &TaskId) -> Arc<Notify> {
        self.waiters.lock().entry(id.clone()).or_default().clone()
    }

    /// Nobody waits for it any more.
    pub(crate) fn forget_end_of(&self, id: &TaskId) {
        self.waiters.lock().remove(id);
    }

    /// How many tasks run here.
    pub fn running(&self) -> usize {
        self.held.lock().len()
    }

    /// Begins to take tasks, if it has not yet: a process that makes none does without.
    pub fn ensure_running(self: &Arc<Self>) {
        if self.abstains.load(Ordering::SeqCst) {
            return;
        }
        if !self.is_started.swap(true, Ordering::SeqCst) {
            tokio::spawn(self.clone().run());
        }
    }

    /// From now on it does not begin to take tasks.
    pub fn abstain(&self) {
        self.abstains.store(true, Ordering::SeqCst);
    }

    /// Whether it takes tasks and its last sign of life is recent. A process without anything to do
    /// may pause, a worker never does.
    pub fn is_alive(&self) -> bool {
        let last = *self.last_beat.lock();
        let age = last.map(|last| self.clock.now().saturating_sub(last));
        self.is_running() && !self.leaving.is_cancelled() && age.is_some_and(|age| age < ALIVE)
    }

    /// How many tasks were taken over from this process.
    pub fn lease_losses(&self) -> u64 {
        self.lease_losses.load(Ordering::Relaxed)
    }

    /// Whether it takes tasks. While it does not, this process has made none.
    pub fn is_running(&self) -> bool {
        self.is_started.load(Ordering::SeqCst)
    }

    /// Hears at once of work that other processes make. The first call counts.
    pub fn follow(&self, changes: ChangeFeed) {
        let _ = self.changes.set(changes);
    }

    /// Runs what the engine brings until `leave` is called, and shows signs of life until that has
    /// come to its end. Errors of the store are survived: what failed is tried again.
    pub async fn run(self: Arc<Self>) {
        self.is_started.store(true, Ordering::SeqCst);
        tokio::spawn(self.clone().keep_beating());
        self.engine.serve(self.clone()).await;
        self.served.cancel();
    }

    /// Claims tasks under leases of this process until it leaves. Every engine does this for what is
    /// reserved for this process.
    pub async fn claim_tasks(self: &Arc<Self>, scope: ClaimScope) {
        let mut changes = match self.changes.get() {
            // A feed that fails costs the time between two heartbeats.
            Some(feed) => feed.follow().await.ok(),
            None => None,
        };
        self.is_told.store(changes.is_some(), Ordering::SeqCst);
        let matters = |change: &StoreChange| {
            self.hear(change);
            let is_pausing = self.is_pausing.load(Ordering::SeqCst);
            is_new_work(change) || is_pausing && matches!(change.kind, ChangeKind::Task { .. })
        };
        while !self.leaving.is_cancelled() {
            if self.is_pausing.load(Ordering::SeqCst) {
                self.work_to_do.notify_one();
            }
            self.take(scope).await;
            let new_work = async {
                match &mut changes {
                    Some(changes) => changes.until(matters).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.wake.notified() => {}
                () = new_work => self.lists_may_have_changed.store(true, Ordering::Relaxed),
                () = self.leaving.cancelled() => {}
            }
        }
    }

    /// Tells a task that runs here to stop. False if it does not. The first reason stays: a task
    /// that someone stopped does not become handed over because the process leaves a moment later.
    pub fn signal(&self, id: &TaskId, reason: TaskStopReason) -> bool {
        let held = self.held.lock();
        let Some(task) = held.get(id) else {
            return false;
        };
        let is_hand_over = task.stop_reason.lock().get_or_insert(reason).is_hand_over();
        if is_hand_over {
            task.hand_over.now.cancel();
        }
        task.cancel.cancel();
        true
    }

    /// Tells a task that runs here of its mail.
    pub fn wake_for_mail(&self, id: &TaskId) {
        if let Some(task) = self.held.lock().get(id) {
            task.mail.notify_one();
        }
    }

    /// Claims what there is room for and starts it. One call at a time, so that two do not fill the
    /// same room twice. Nothing is claimed without a recent heartbeat: others could find us lost
    /// before we have begun.
    async fn take(self: &Arc<Self>, scope: ClaimScope) {
        let _taking = self.taking.lock().await;
        let is_recent = |beat: Duration| self.clock.now().saturating_sub(beat) < RECENT;
        if self.leaving.is_cancelled() || !self.last_beat.lock().is_some_and(is_recent) {
            return;
        }
        let capacity = self.capacity(scope);
        if capacity.total == 0 {
            return;
        }
        // Members of teams that rest are woken for what is free on their lists. The end of a
        // command changes nothing about that.
        if self.lists_may_have_changed.swap(false, Ordering::Relaxed) {
            let _ = self.leases.assign_items().await;
        }
        if let Ok(claimed) = self.leases.claim_tasks(&self.id, &capacity).await {
            for task in claimed {
                self.start(task);
            }
        }
    }

    /// How many more agents and how many more commands may run here.
    fn room(&self) -> (u32, u32) {
        self.room_beside(&self.reserved.lock())
    }

    fn room_beside(&self, reserved: &HashMap<TaskClass, u32>) -> (u32, u32) {
        let about_to_begin = |class| reserved.get(&class).copied().unwrap_or_default();
        let held = self.held.lock();
        let shells = held
            .values()
            .filter(|task| task.task_type == TaskType::LocalBash)
            .count();
        let agents = held
            .values()
            .filter(|task| task.task_type.is_agent())
            .count();
        let left =
            |limit: u32, used: usize| limit.saturating_sub(u32::try_from(used).unwrap_or(u32::MAX));
        (
            left(self.limits.agents, agents).saturating_sub(about_to_begin(TaskClass::Agents)),
            left(self.limits.shells, shells).saturating_sub(about_to_begin(TaskClass::Commands)),
        )
    }

    /// Workflows and monitors have no limit of their own: they only wait. The 16 beyond the two
    /// limits bound how many of them one claim brings.
    fn capacity(&self, scope: ClaimScope) -> Capacity {
        let (agents, shells) = self.room();
        let by_type: Vec<(TaskType, u32)> = self
            .runners
            .read()
            .keys()
            .map(|kind| match kind {
                TaskType::LocalBash => (*kind, shells),
                kind if kind.is_agent() => (*kind, agents),
                kind => (*kind, u32::MAX),
            })
            .filter(|(_, room)| *room > 0)
            .collect();
        let total = if by_type.is_empty() {
            0
        } else {
            agents + shells + 16
        };
        let mut skip: Vec<TaskId> = self.held.lock().keys().cloned().collect();
        skip.extend(self.resting.lock().resting(self.clock.now()));
        Capacity {
            by_type,
            total,
            skip,
            projects: self.projects.read().clone(),
            labels: self.labels.read().clone(),
            scope,
        }
    }
}
