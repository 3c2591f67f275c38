//! Takes ready tasks, keeps their leases, tells them to stop, and records how they end.

use std::{
    collections::HashMap,
    panic::AssertUnwindSafe,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use codespar_protocol::{SessionId, TaskId, TaskRecord, TaskStatus, TaskType};
use codespar_store::{Capacity, Claimed, Projects, RunnerId, StoreError, TaskEnding, TaskStore};
use futures::FutureExt;
use parking_lot::{Mutex, RwLock};
use serde_json::json;
use tokio::sync::{Notify, broadcast};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    Notice,
    runner::{Control, Outcome, Runner, StopReason},
    vital,
};

/// How long a task stays ours without a sign of life.
const LEASE: Duration = Duration::from_secs(10);
/// How often leases are renewed and signals looked for.
const BEAT: Duration = Duration::from_secs(1);
/// How often the store is asked for work that other processes made.
const POLL: Duration = Duration::from_millis(500);
/// How long the end of an attempt is tried to be recorded.
const RECORD_TRIES: u32 = 20;
/// How many characters of a result go into a notification.
const RESULT_CHARS: usize = 2_000;

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

struct Held {
    epoch: u64,
    task_type: TaskType,
    cancel: CancellationToken,
    stop_reason: Arc<Mutex<Option<StopReason>>>,
    mail: Arc<Notify>,
}

/// One per process.
pub struct Scheduler {
    store: Arc<dyn TaskStore>,
    id: RunnerId,
    limits: RunnerLimits,
    /// Whose tasks are taken.
    projects: Projects,
    output_dir: PathBuf,
    runners: RwLock<HashMap<TaskType, Arc<dyn Runner>>>,
    held: Mutex<HashMap<TaskId, Held>>,
    wake: Notify,
    ended: broadcast::Sender<TaskId>,
    /// Who waits for the end of one task; each is woken by that end alone.
    waiters: Mutex<HashMap<TaskId, Arc<Notify>>>,
    leaving: CancellationToken,
    tracker: TaskTracker,
}

impl Scheduler {
    /// A scheduler for the tasks of one project; it runs nothing yet.
    pub fn new(
        store: Arc<dyn TaskStore>,
        output_dir: PathBuf,
        limits: RunnerLimits,
        project_root: PathBuf,
    ) -> Arc<Self> {
        let id = RunnerId(vital::name());
        let projects = Projects::Only(project_root);
        Self::named(id, store, output_dir, limits, projects)
    }

    /// The same for a `codespar worker`, which takes tasks of every project: others can tell that
    /// remote agents are taken.
    pub fn of_worker(
        store: Arc<dyn TaskStore>,
        output_dir: PathBuf,
        limits: RunnerLimits,
    ) -> Arc<Self> {
        let id = RunnerId::of_worker(vital::name());
        Self::named(id, store, output_dir, limits, Projects::All)
    }

    fn named(
        id: RunnerId,
        store: Arc<dyn TaskStore>,
        output_dir: PathBuf,
        limits: RunnerLimits,
        projects: Projects,
    ) -> Arc<Self> {
        Arc::new(Self {
            store,
            id,
            limits,
            projects,
            output_dir,
            runners: RwLock::default(),
            held: Mutex::default(),
            wake: Notify::new(),
            ended: broadcast::channel(256).0,
            waiters: Mutex::default(),
            leaving: CancellationToken::new(),
            tracker: TaskTracker::new(),
        })
    }

    /// Who we are.
    pub fn id(&self) -> &RunnerId {
        &self.id
    }

    /// How long a lease lasts.
    pub fn lease(&self) -> Duration {
        LEASE
    }

    /// Where a task's output goes: agents may read the directory of their own tree.
    pub fn output_file(&self, tree: SessionId, id: &TaskId) -> PathBuf {
        self.output_dir
            .join(tree.to_string())
            .join(format!("{id}.txt"))
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
        authority.is_some_and(|authority| self.projects.include(&authority.project_root))
    }

    /// Something may be ready.
    pub fn nudge(&self) {
        self.wake.notify_one();
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

    /// Takes tasks until `leave` is called. Errors of the store are survived: they are tried
    /// again at the next beat.
    pub async fn run(self: Arc<Self>) {
        let mut last_beat: Option<Instant> = None;
        while !self.leaving.is_cancelled() {
            if last_beat.is_none_or(|beat| beat.elapsed() >= BEAT) {
                last_beat = Some(Instant::now());
                let _ = self
                    .store
                    .announce_runner(&self.id, std::process::id(), LEASE)
                    .await;
                self.beat().await;
                self.bury_the_dead().await;
            }
            self.take().await;
            tokio::select! {
                () = self.wake.notified() => {}
                () = tokio::time::sleep(POLL) => {}
                () = self.leaving.cancelled() => {}
            }
        }
    }

    /// Tasks of processes that are certainly dead need not wait for their leases.
    async fn bury_the_dead(&self) {
        // Failing costs patience, no more: the lease runs out.
        let _ = vital::living_runners(&*self.store).await;
    }

    /// Renews leases and passes signals on.
    async fn beat(&self) {
        let held: Vec<(TaskId, u64)> = self
            .held
            .lock()
            .iter()
            .map(|(id, held)| (id.clone(), held.epoch))
            .collect();
        if held.is_empty() {
            return;
        }
        let Ok(renewal) = self.store.renew_leases(&self.id, &held, LEASE).await else {
            return;
        };
        for id in renewal.lost {
            self.signal(&id, StopReason::LeaseLost);
        }
        for (id, reason) in renewal.stop {
            self.signal(&id, StopReason::Asked(reason));
        }
        for id in renewal.mail {
            self.wake_for_mail(&id);
        }
    }

    /// Tells a task that runs here to stop. False if it does not.
    pub fn signal(&self, id: &TaskId, reason: StopReason) -> bool {
        let held = self.held.lock();
        let Some(task) = held.get(id) else {
            return false;
        };
        task.stop_reason.lock().get_or_insert(reason);
        task.cancel.cancel();
        true
    }

    /// Tells a task that runs here of its mail.
    pub fn wake_for_mail(&self, id: &TaskId) {
        if let Some(task) = self.held.lock().get(id) {
            task.mail.notify_one();
        }
    }

    async fn take(self: &Arc<Self>) {
        let capacity = self.capacity();
        if capacity.total == 0 {
            return;
        }
        // Members of teams that rest are woken for what is free on their lists.
        let _ = self.store.deal_items().await;
        if let Ok(claimed) = self.store.claim_tasks(&self.id, &capacity, LEASE).await {
            for task in claimed {
                self.start(task);
            }
        }
    }

    fn capacity(&self) -> Capacity {
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
        let agents = left(self.limits.agents, agents);
        let shells = left(self.limits.shells, shells);
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
        Capacity {
            by_type,
            total,
            projects: self.projects.clone(),
        }
    }

    /// Runs a claimed task on the runtime.
    pub fn start(self: &Arc<Self>, claimed: Claimed) {
        let Claimed {
            record,
            epoch,
            was_lost,
        } = claimed;
        let Some(runner) = self.runners.read().get(&record.task_type).cloned() else {
            return;
        };
        let control = Control {
            epoch,
            was_lost,
            cancel: CancellationToken::new(),
            stop_reason: Arc::default(),
            mail: Arc::new(Notify::new()),
            output: record.output_file.as_ref().map_or_else(
                || self.output_dir.join(format!("{}.txt", record.task_id)),
                PathBuf::from,
            ),
            store: self.store.clone(),
            record,
        };
        let id = control.record.task_id.clone();
        self.held.lock().insert(
            id.clone(),
            Held {
                epoch,
                task_type: control.record.task_type,
                cancel: control.cancel.clone(),
                stop_reason: control.stop_reason.clone(),
                mail: control.mail.clone(),
            },
        );
        let scheduler = self.clone();
        self.tracker.spawn(async move {
            let began = Instant::now();
            let stop_reason = control.stop_reason.clone();
            let record = control.record.clone();
            let outcome = AssertUnwindSafe(runner.run(control))
                .catch_unwind()
                .await
                .unwrap_or_else(|_| {
                    Outcome::failed("the runner failed inside: this is a defect of CodeSpar")
                });
            let reason = stop_reason.lock().clone();
            match reason {
                Some(StopReason::LeaseLost) => {}
                Some(StopReason::Leaving)
                    if can_go_on(record.task_type) && outcome.status != TaskStatus::Completed =>
                {
                    let _ = scheduler.store.release_task(&id, epoch).await;
                }
                _ => {
                    let took = began.elapsed();
                    scheduler.record(&record, epoch, outcome, took).await;
                }
            }
            scheduler.held.lock().remove(&id);
            if let Some(waiter) = scheduler.waiters.lock().remove(&id) {
                waiter.notify_waiters();
            }
            let _ = scheduler.ended.send(id);
            scheduler.wake.notify_one();
        });
    }

    /// The end of an attempt goes on record; a store that is busy is tried again.
    async fn record(&self, record: &TaskRecord, epoch: u64, outcome: Outcome, took: Duration) {
        let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let ending = ending(record, outcome, millis);
        for attempt in 0..RECORD_TRIES {
            match self
                .store
                .finish_task(&record.task_id, epoch, ending.clone())
                .await
            {
                Ok(_) => return,
                Err(
                    StoreError::Busy { .. } | StoreError::DiskFull { .. } | StoreError::Database(_),
                ) => {
                    tokio::time::sleep(Duration::from_millis(100 * u64::from(attempt + 1))).await;
                }
                // Someone else has it, or it is gone: nothing of ours to write.
                Err(_) => return,
            }
        }
    }

    /// Stops taking tasks; agents go back for others, commands are stopped. Returns when nothing
    /// runs any more.
    pub async fn leave(&self) {
        self.leaving.cancel();
        let ids: Vec<TaskId> = self.held.lock().keys().cloned().collect();
        for id in &ids {
            self.signal(id, StopReason::Leaving);
        }
        self.tracker.close();
        self.tracker.wait().await;
        let _ = self.store.withdraw_runner(&self.id).await;
    }
}

/// Another process can take it up where this one leaves it.
fn can_go_on(task_type: TaskType) -> bool {
    task_type.is_agent() || matches!(task_type, TaskType::LocalWorkflow | TaskType::MonitorMcp)
}

fn ending(record: &TaskRecord, outcome: Outcome, millis: u64) -> TaskEnding {
    let summary = match (&outcome.error, outcome.exit_code) {
        (Some(error), _) => format!("{}: {error}", record.subject),
        (None, Some(code)) => format!("{}: exit code {code}", record.subject),
        (None, None) => record.subject.clone(),
    };
    let result = outcome
        .result
        .as_deref()
        .map(|text| shortened(text, &record.output_file));
    let notice = Notice {
        task_id: record.task_id.clone(),
        status: outcome.status,
        summary,
        result,
        usage: record.task_type.is_agent().then_some((
            outcome.usage.total_tokens(),
            outcome.tool_uses,
            millis,
        )),
    };
    let mut metadata = outcome.metadata;
    metadata.insert("tool_uses".to_owned(), json!(outcome.tool_uses));
    metadata.insert("duration_ms".to_owned(), json!(millis));
    if let Some(text) = &notice.result {
        metadata.insert("result".to_owned(), json!(text));
    }
    TaskEnding {
        status: outcome.status,
        error: outcome.error,
        exit_code: outcome.exit_code,
        usage: outcome.usage,
        cost: outcome.cost,
        metadata,
        notification: match (record.task_type, outcome.status, &notice.result) {
            // A teammate that only came to wait has nothing to report.
            (TaskType::InProcessTeammate, TaskStatus::Completed, None) => String::new(),
            _ => notice.to_xml(),
        },
    }
}

/// The beginning of a long text, and where the rest is.
pub(crate) fn shortened(text: &str, output_file: &Option<String>) -> String {
    match text.char_indices().nth(RESULT_CHARS) {
        None => text.to_owned(),
        Some((at, _)) => {
            let rest = output_file.as_deref().unwrap_or("its output file");
            format!("{}\n[… the whole is in {rest}]", &text[..at])
        }
    }
}
