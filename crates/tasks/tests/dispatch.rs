//! Dispatch by an engine that delivers: twice, to the wrong process, or not at all.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests"
)]

use std::{
    collections::HashMap,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use async_trait::async_trait;
use codespar_policy::Redactor;
use codespar_protocol::{
    AgentSpec, Authority, Labels, OnDependencyFailure, SessionId, TaskId, TaskSpec, TaskStatus,
    TaskType,
};
use codespar_store::{
    ChangeFeed, ClaimScope, DispatchStore as _, NewTask, Notify, SqliteStore, TaskOffer,
    TaskStore as _,
};
use codespar_tasks::{
    Brought, Control, Dispatcher, LeaseEngine, OfferSink, Renewed, Runner, Scheduler,
    SchedulerKind, SchedulerSetup, TaskEngine, TaskOutcome,
};
use parking_lot::Mutex;
use tokio::sync::{Notify as Wake, watch};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// What an engine does with the offers that it gets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Delivery {
    /// To one process.
    Once,
    /// To every process at the same time.
    ToAll,
    /// The first offer of each task is lost.
    Late,
    /// All are lost.
    Never,
    /// It is cancelled by way of the engine before anybody gets it.
    Cancelled,
}

/// The part of the engine that all processes share.
struct Post {
    delivery: Delivery,
    /// What waits for each process.
    boxes: Mutex<Vec<Vec<TaskOffer>>>,
    offered: Mutex<HashMap<TaskId, usize>>,
    wake: Wake,
    next: AtomicUsize,
}

impl Post {
    fn new(delivery: Delivery) -> Arc<Self> {
        Arc::new(Self {
            delivery,
            boxes: Mutex::default(),
            offered: Mutex::default(),
            wake: Wake::new(),
            next: AtomicUsize::new(0),
        })
    }

    fn put(&self, place: usize, offer: TaskOffer) {
        if let Some(letters) = self.boxes.lock().get_mut(place) {
            letters.push(offer);
        }
        self.wake.notify_waiters();
    }

    /// To the next process in turn.
    fn deliver(&self, offer: &TaskOffer) {
        let processes = self.boxes.lock().len();
        match self.delivery {
            Delivery::ToAll => (0..processes).for_each(|place| self.put(place, offer.clone())),
            _ => {
                let place = self.next.fetch_add(1, Ordering::SeqCst) % processes;
                self.put(place, offer.clone());
            }
        }
    }
}

#[async_trait]
impl OfferSink for Post {
    async fn offer(&self, offer: &TaskOffer) -> Result<(), String> {
        let times = {
            let mut offered = self.offered.lock();
            let times = offered.entry(offer.task.clone()).or_default();
            *times += 1;
            *times
        };
        match self.delivery {
            Delivery::Once | Delivery::ToAll => self.deliver(offer),
            Delivery::Late if times > 1 => self.deliver(offer),
            Delivery::Late | Delivery::Never | Delivery::Cancelled => {}
        }
        Ok(())
    }
}

/// The way of one process to the engine.
struct PostSink {
    post: Arc<Post>,
    is_down: AtomicBool,
}

#[async_trait]
impl OfferSink for PostSink {
    async fn offer(&self, offer: &TaskOffer) -> Result<(), String> {
        match self.is_down.load(Ordering::SeqCst) {
            true => Err("out of reach".to_owned()),
            false => self.post.offer(offer).await,
        }
    }

    async fn renew(&self, offer: &TaskOffer) -> Result<Renewed, String> {
        match self.post.delivery {
            Delivery::Cancelled => Ok(Renewed::Cancelled("not wanted".to_owned())),
            _ => self.offer(offer).await.map(|()| Renewed::Offered),
        }
    }
}

/// The engine in one process.
struct PostEngine {
    post: Arc<Post>,
    sink: Arc<PostSink>,
    place: usize,
    store: Arc<SqliteStore>,
}

#[async_trait]
impl TaskEngine for PostEngine {
    fn name(&self) -> &'static str {
        "post"
    }

    async fn serve(&self, scheduler: Arc<Scheduler>) {
        let dispatcher = Arc::new(Dispatcher::new(self.store.clone(), scheduler.clone()));
        let claims = scheduler.claim_tasks(ClaimScope::Reserved);
        let take = self.take(&scheduler, &dispatcher);
        tokio::join!(claims, dispatcher.pump(&*self.sink), take);
    }
}

impl PostEngine {
    async fn take(&self, scheduler: &Arc<Scheduler>, dispatcher: &Arc<Dispatcher>) {
        let tracker = tokio_util::task::TaskTracker::new();
        while !scheduler.leaving().is_cancelled() {
            let next = self.post.boxes.lock()[self.place].pop();
            match next {
                Some(offer) => {
                    let (post, dispatcher) = (self.post.clone(), dispatcher.clone());
                    tracker.spawn(async move { bring(&post, &dispatcher, offer).await });
                }
                None => {
                    let pause = Duration::from_millis(20);
                    let _ = tokio::time::timeout(pause, self.post.wake.notified()).await;
                }
            }
        }
        tracker.close();
        tracker.wait().await;
    }
}

async fn bring(post: &Arc<Post>, dispatcher: &Dispatcher, offer: TaskOffer) {
    let brought = dispatcher
        .bring(&offer.task, offer.number, offer.task_type)
        .await;
    if let Brought::Again(pause) = brought {
        let post = post.clone();
        tokio::spawn(async move {
            tokio::time::sleep(pause).await;
            post.deliver(&offer);
        });
    }
}

/// What ran, and when it may end.
struct Work {
    started: Mutex<Vec<(String, TaskId, u64)>>,
    gate: watch::Sender<bool>,
}

struct WorkRunner {
    process: String,
    work: Arc<Work>,
}

#[async_trait]
impl Runner for WorkRunner {
    async fn run(&self, control: Control) -> TaskOutcome {
        let id = control.record.task_id.clone();
        let start = (self.process.clone(), id, control.epoch);
        self.work.started.lock().push(start);
        let mut gate = self.work.gate.subscribe();
        let stopped = tokio::select! {
            _ = gate.wait_for(|open| *open) => false,
            () = control.cancel.cancelled() => true,
            () = control.hand_over.soon.cancelled() => true,
        };
        match stopped {
            true => TaskOutcome::put_back("handed over"),
            false => TaskOutcome {
                status: TaskStatus::Completed,
                error: None,
                ..TaskOutcome::failed("")
            },
        }
    }
}

/// Two processes on one database, with an engine between them.
struct Bench {
    store: Arc<SqliteStore>,
    processes: Vec<Arc<Scheduler>>,
    sinks: Vec<Arc<PostSink>>,
    work: Arc<Work>,
    post: Arc<Post>,
    dir: tempfile::TempDir,
}

impl Bench {
    async fn new(delivery: Delivery) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (post, work) = (
            Post::new(delivery),
            Arc::new(Work {
                started: Mutex::default(),
                gate: watch::Sender::new(false),
            }),
        );
        post.boxes.lock().resize(2, Vec::new());
        let (mut processes, mut sinks) = (Vec::new(), Vec::new());
        for place in 0..2 {
            let sink = Arc::new(PostSink {
                post: post.clone(),
                is_down: AtomicBool::new(false),
            });
            processes.push(process(dir.path(), place, &sink, &work).await);
            sinks.push(sink);
        }
        let store = Arc::new(SqliteStore::open(dir.path()).await.unwrap());
        Self {
            store,
            processes,
            sinks,
            work,
            post,
            dir,
        }
    }

    async fn make(&self, count: usize) -> Vec<TaskId> {
        let new: Vec<NewTask> = (0..count).map(|_| agent()).collect();
        let made = self.store.create_tasks(new).await.unwrap();
        made.into_iter().map(|task| task.task_id).collect()
    }

    async fn status(&self, id: &TaskId) -> TaskStatus {
        self.store.task(id).await.unwrap().status
    }

    async fn completed(&self, ids: &[TaskId]) {
        self.are(TaskStatus::Completed, ids).await;
    }

    async fn are(&self, status: TaskStatus, ids: &[TaskId]) {
        for id in ids {
            let deadline = Instant::now() + PATIENCE;
            while self.status(id).await != status {
                assert!(Instant::now() < deadline, "{id} is not {status}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }

    async fn started(&self, count: usize) -> Vec<(String, TaskId, u64)> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let started = self.work.started.lock().clone();
            if started.len() >= count {
                return started;
            }
            assert!(
                Instant::now() < deadline,
                "{} of {count} start",
                started.len()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn open_gate(&self) {
        self.work.gate.send_replace(true);
    }
}

async fn process(
    dir: &Path,
    place: usize,
    sink: &Arc<PostSink>,
    work: &Arc<Work>,
) -> Arc<Scheduler> {
    let store = Arc::new(SqliteStore::open(dir).await.unwrap());
    let engine = PostEngine {
        post: sink.post.clone(),
        sink: sink.clone(),
        place,
        store: store.clone(),
    };
    start(dir, store, Arc::new(engine), work)
}

/// A worker.
fn start(
    dir: &Path,
    store: Arc<SqliteStore>,
    engine: Arc<dyn TaskEngine>,
    work: &Arc<Work>,
) -> Arc<Scheduler> {
    let redactor = Arc::new(Redactor::by_shape());
    let scheduler = Scheduler::new(SchedulerSetup {
        kind: SchedulerKind::Worker,
        engine,
        ..SchedulerSetup::with_leases(store.clone(), dir.join("out"), redactor)
    });
    let runner = WorkRunner {
        process: scheduler.id().0.clone(),
        work: work.clone(),
    };
    scheduler.serve(TaskType::RemoteAgent, Arc::new(runner));
    scheduler.follow(ChangeFeed::new(store));
    scheduler.ensure_running();
    scheduler
}

fn agent() -> NewTask {
    let spec = AgentSpec {
        prompt: "go".to_owned(),
        subagent_type: "worker".to_owned(),
        model: None,
        max_turns: None,
        max_wall_seconds: None,
        max_budget_usd: None,
        name: None,
        isolation: None,
        root: "/work".into(),
        cwd: "/work".into(),
        agent_session: SessionId::new(),
        depth: 1,
        tool_use_id: None,
    };
    NewTask {
        id: TaskId::new(TaskType::RemoteAgent),
        spec: TaskSpec::RemoteAgent(spec),
        authority: Authority {
            session: None,
            tree: SessionId::new(),
            project_root: "/work".into(),
            mode: "default".to_owned(),
            rules: Vec::new(),
            extra_dirs: Vec::new(),
            max_budget_usd: None,
            repository: None,
            remote: None,
            user: None,
            trace: None,
        },
        reserved_for: None,
        labels: Labels::default(),
        on_dependency_failure: OnDependencyFailure::Fail,
        subject: "try it".to_owned(),
        description: None,
        active_form: None,
        metadata: serde_json::Map::new(),
        blocked_by: Vec::new(),
        output_file: None,
        session_id: None,
        parent_task_id: None,
        notify: Notify::Nobody,
        made_under: None,
        start_here: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_tasks_run_once_each() {
    let bench = Bench::new(Delivery::Once).await;
    bench.open_gate();
    let ids = bench.make(100).await;
    bench.completed(&ids).await;
    let mut ran: Vec<TaskId> = bench
        .started(100)
        .await
        .into_iter()
        .map(|run| run.1)
        .collect();
    ran.sort();
    let mut made = ids;
    made.sort();
    assert_eq!(ran, made);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_brought_to_two_processes_runs_in_one() {
    let bench = Bench::new(Delivery::ToAll).await;
    let ids = bench.make(10).await;
    bench.started(10).await;
    // The other process was told meanwhile that somebody has them, and is told again and again.
    tokio::time::sleep(Duration::from_secs(3)).await;
    bench.open_gate();
    bench.completed(&ids).await;
    assert_eq!(bench.started(10).await.len(), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offer_that_the_engine_lost_is_made_again() {
    let bench = Bench::new(Delivery::Late).await;
    bench.open_gate();
    let ids = bench.make(3).await;
    bench.completed(&ids).await;
    assert!(bench.post.offered.lock().values().all(|times| *times > 1));
    assert_eq!(bench.started(3).await.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_leaving_process_hands_back_goes_on_in_the_other() {
    let bench = Bench::new(Delivery::Once).await;
    let ids = bench.make(4).await;
    let first = bench.started(4).await;
    let leaver = &bench.processes[0];
    let had = first.iter().filter(|run| run.0 == leaver.id().0).count();
    assert!(had > 0, "both have some: {first:?}");
    leaver.leave().await;
    bench.post.boxes.lock().remove(0);
    bench.post.boxes.lock().insert(0, Vec::new());
    let all = bench.started(4 + had).await;
    let other = &bench.processes[1].id().0;
    assert!(all[4..].iter().all(|run| run.0 == *other), "{all:?}");
    bench.open_gate();
    bench.completed(&ids).await;
}

/// Only one looks after what the engine lost; it must be one that reaches the engine.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_cannot_reach_the_engine_keeps_no_other_from_mending_it() {
    let bench = Bench::new(Delivery::Late).await;
    bench.open_gate();
    let names = bench.processes.iter().map(|one| one.id().0.clone());
    let first = names.enumerate().min_by_key(|(_, name)| name.clone());
    let first = first.unwrap().0;
    bench.sinks[first].is_down.store(true, Ordering::SeqCst);
    let ids = bench.make(5).await;
    bench.completed(&ids).await;
    // And takes its turn again when it reaches it.
    bench.sinks[first].is_down.store(false, Ordering::SeqCst);
    bench.sinks[1 - first].is_down.store(true, Ordering::SeqCst);
    let ids = bench.make(5).await;
    bench.completed(&ids).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_cancelled_in_the_engine_before_anybody_has_it_is_stopped() {
    let bench = Bench::new(Delivery::Cancelled).await;
    let ids = bench.make(2).await;
    bench.are(TaskStatus::Killed, &ids).await;
    let record = bench.store.task(&ids[0]).await.unwrap();
    assert_eq!(record.error.as_deref(), Some("not wanted"));
    assert_eq!(bench.started(0).await.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn offers_are_taken_back_when_the_last_who_uses_the_engine_leaves() {
    let bench = Bench::new(Delivery::Never).await;
    bench.open_gate();
    let ids = bench.make(3).await;
    let deadline = Instant::now() + PATIENCE;
    while bench.store.open_offers().await.unwrap().len() < 3 {
        assert!(Instant::now() < deadline, "they are not offered");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Before, it would have claimed what nobody had offered yet.
    let dir = bench.dir.path();
    let store = Arc::new(SqliteStore::open(dir).await.unwrap());
    let by_leases = Arc::new(LeaseEngine(store.clone()));
    let other = start(dir, store, by_leases, &bench.work);
    for process in &bench.processes {
        process.leave().await;
    }
    bench.completed(&ids).await;
    let ran = bench.started(3).await;
    assert!(ran.iter().all(|run| run.0 == other.id().0), "{ran:?}");
}
