//! The engine: offers go to Temporal, workers take them from there.
//!
//! A worker has one worker of the SDK for each queue (`queues.rs`). Their slots are the limits of the
//! process, each for itself: a worker with several sets of labels may be brought more than it has room
//! for, and sends what does not fit back for a second (`Dispatcher::bring`).
//!
//! Every worker offers what is ready, so no process is more important than another, and servers and
//! sessions need no connection to Temporal.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use codespar_protocol::Backoff;
use codespar_store::{ClaimScope, DispatchStore, EngineState, TaskClass, TaskOffer};
use codespar_tasks::{Dispatcher, EngineWorker, OfferSink, Renewed, Scheduler, TaskEngine};
use temporalio_client::{
    ActivityIdConflictPolicy, ActivityIdReusePolicy, ActivityStartOptions, Client,
    NamespacedClient as _, tonic::IntoRequest,
};
use temporalio_common::{
    ActivityCloseTimeouts, RetryPolicy,
    protos::temporal::api::{
        enums::v1::TaskQueueType, taskqueue::v1::TaskQueue as WireQueue,
        workflowservice::v1::DescribeTaskQueueRequest,
    },
    worker::WorkerDeploymentOptions,
};
use temporalio_sdk::{
    Runtime, Worker, WorkerOptions,
    runtime::{
        PollerBehavior, RuntimeOptions,
        worker_tuner::{FixedSizeSlotSupplier, TunerHolder},
    },
};
use tokio::sync::oneshot;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    TemporalOptions,
    activity::{ActivityHost, Asked, OfferInput, RunTask, SharedHost, cancellation},
    connection::connect,
    queues::{TaskQueue, taken_by},
};

/// How long an attempt may take at most: longer than anybody waits for one. Lost workers are noticed
/// by their heartbeats.
const LONGEST_ATTEMPT: Duration = Duration::from_secs(90 * 24 * 3_600);
/// The least that Temporal waits between two heartbeats that it sends on.
const HEARTBEAT_THROTTLE: Duration = Duration::from_millis(500);
/// After this an SDK worker that shuts down cancels its activities; they end by themselves before.
const GRACE: Duration = Duration::from_secs(10);
/// How many workflows and monitors one worker takes from a queue.
const WAITING_AT_ONCE: usize = 256;
/// Between two looks for sets of labels that are new.
const LOOK_FOR_LABELS: Duration = Duration::from_secs(2);
/// Between tries to connect, and to start a worker again that ended.
const RETRY: Backoff = Backoff {
    first: Duration::from_millis(500),
    longest: Duration::from_secs(5),
};

/// Dispatch by a Temporal server.
pub struct TemporalEngine {
    options: TemporalOptions,
    store: Arc<dyn DispatchStore>,
}

impl TemporalEngine {
    /// Nothing is connected yet: a process that runs no tasks for others never is.
    pub fn new(options: TemporalOptions, store: Arc<dyn DispatchStore>) -> Self {
        Self { options, store }
    }

    /// Tries until it is connected or the process leaves. Attempts that are under way need no server.
    async fn connect(&self, scheduler: &Scheduler) -> Option<Client> {
        let mut failures = 0;
        scheduler.set_engine_state(EngineState::Unreachable);
        loop {
            match connect(&self.options, &scheduler.id().0).await {
                Ok(client) => {
                    scheduler.set_engine_state(EngineState::Connected);
                    return Some(client);
                }
                Err(error) => {
                    failures += 1;
                    tracing::warn!("{error}; trying again");
                    tokio::select! {
                        () = tokio::time::sleep(RETRY.delay(failures)) => {}
                        () = scheduler.leaving().cancelled() => return None,
                    }
                }
            }
        }
    }

    async fn dispatch(&self, scheduler: Arc<Scheduler>) {
        let Some(client) = self.connect(&scheduler).await else {
            return;
        };
        let dispatcher = Arc::new(Dispatcher::new(self.store.clone(), scheduler.clone()));
        let sink = TemporalSink {
            client: client.clone(),
            heartbeat_timeout: self.options.heartbeat_timeout,
        };
        let host = Arc::new(ActivityHost {
            client,
            scheduler,
            dispatcher: dispatcher.clone(),
        });
        tokio::join!(dispatcher.pump(&sink), self.take(host));
    }

    /// Takes from the queues of all labels that this process offers. A queue is taken from once
    /// something is in it. Returns when all activities have told Temporal how they ended.
    async fn take(&self, host: Arc<ActivityHost>) {
        let Ok(runtime) = Runtime::from_current_tokio(RuntimeOptions::default()) else {
            tracing::error!("the worker of Temporal's SDK cannot be made");
            return;
        };
        let runtime = Arc::new(runtime);
        let leaving = host.scheduler.leaving().clone();
        let (tracker, mut taken) = (TaskTracker::new(), BTreeSet::new());
        while !leaving.is_cancelled() {
            let in_use = self.store.label_sets().await.unwrap_or_else(|error| {
                tracing::warn!("labels of waiting tasks are not known: {error}; trying again");
                Vec::new()
            });
            for queue in taken_by(&host.scheduler.labels(), in_use) {
                if taken.insert(queue.clone()) {
                    tracker.spawn(keep_taking(queue, runtime.clone(), host.clone()));
                }
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK_FOR_LABELS) => {}
                () = leaving.cancelled() => {}
            }
        }
        tracker.close();
        tracker.wait().await;
    }
}

#[async_trait]
impl TaskEngine for TemporalEngine {
    fn name(&self) -> &'static str {
        "temporal"
    }

    /// A session runs what is reserved for it, and leaves the rest to workers.
    async fn serve(&self, scheduler: Arc<Scheduler>) {
        let is_worker = scheduler.id().is_worker();
        let claims = scheduler.claim_tasks(ClaimScope::Reserved);
        match is_worker {
            true => drop(tokio::join!(claims, self.dispatch(scheduler.clone()))),
            false => claims.await,
        }
    }

    async fn workers(&self) -> Result<Vec<EngineWorker>, String> {
        let client = connect(&self.options, "codespar").await?;
        let in_use = self.store.label_sets().await;
        let in_use = in_use.map_err(|error| error.to_string())?;
        let mut names: BTreeMap<String, ()> = BTreeMap::new();
        for labels in in_use.into_iter().chain([Default::default()]) {
            for class in TaskClass::ALL {
                let labels = labels.clone();
                names.insert(TaskQueue { labels, class }.name(), ());
            }
        }
        let mut workers = Vec::new();
        for queue in names.into_keys() {
            for identity in pollers(&client, &queue).await? {
                let queue = queue.clone();
                workers.push(EngineWorker { queue, identity });
            }
        }
        Ok(workers)
    }
}

async fn pollers(client: &Client, queue: &str) -> Result<Vec<String>, String> {
    let request = DescribeTaskQueueRequest {
        namespace: client.namespace(),
        task_queue: Some(WireQueue {
            name: queue.to_owned(),
            ..WireQueue::default()
        }),
        task_queue_type: TaskQueueType::Activity as i32,
        ..DescribeTaskQueueRequest::default()
    };
    let mut service = client.connection().workflow_service();
    let answer = service.describe_task_queue(request.into_request()).await;
    let answer = answer.map_err(|status| status.message().to_owned())?;
    let pollers = answer.into_inner().pollers;
    Ok(pollers.into_iter().map(|poller| poller.identity).collect())
}

/// Takes from one queue until the process leaves. The SDK's worker ends by itself only where the
/// server cannot be asked about the namespace; then it is started again.
async fn keep_taking(queue: TaskQueue, runtime: Arc<Runtime>, host: Arc<ActivityHost>) {
    let leaving = host.scheduler.leaving().clone();
    let mut failures = 0;
    while !leaving.is_cancelled() {
        let ended = take_once(&queue, &runtime, &host, &leaving).await;
        if let Err(error) = ended {
            failures += 1;
            tracing::warn!(
                "the queue {} of Temporal: {error}; trying again",
                queue.name()
            );
            tokio::select! {
                () = tokio::time::sleep(RETRY.delay(failures)) => {}
                () = leaving.cancelled() => {}
            }
        }
    }
}

/// The future of an SDK worker stays on one thread, so it has one of its own: threads for blocking work
/// are for what ends soon.
async fn take_once(
    queue: &TaskQueue,
    runtime: &Runtime,
    host: &Arc<ActivityHost>,
    leaving: &CancellationToken,
) -> Result<(), String> {
    let options = worker_options(queue, host);
    let worker = Worker::new(runtime, host.client.clone(), options);
    let mut worker = worker.map_err(|error| error.to_string())?;
    let shut_down = worker.shutdown_handle();
    let handle = tokio::runtime::Handle::current();
    let (tell, mut told) = oneshot::channel();
    let run = move || {
        let ended = handle.block_on(worker.run());
        let _ = tell.send(ended.map_err(|error| error.to_string()));
    };
    let thread = std::thread::Builder::new().name("temporal".to_owned());
    thread.spawn(run).map_err(|error| error.to_string())?;
    let ended = tokio::select! {
        ended = &mut told => ended,
        () = leaving.cancelled() => {
            shut_down();
            told.await
        }
    };
    ended.map_err(|_| "its worker ended without a word".to_owned())?
}

fn worker_options(queue: &TaskQueue, host: &Arc<ActivityHost>) -> WorkerOptions {
    let limits = host.scheduler.limits();
    let at_once = match queue.class {
        TaskClass::Agents => limits.agents as usize,
        TaskClass::Commands => limits.shells as usize,
        TaskClass::Waiting => WAITING_AT_ONCE,
    };
    let slots = FixedSizeSlotSupplier::new;
    let tuner = TunerHolder::builder()
        .workflow_task_slot_supplier(slots(1))
        .activity_task_slot_supplier(slots(at_once.max(1)))
        .local_activity_task_slot_supplier(slots(1))
        .nexus_task_slot_supplier(slots(1))
        .build();
    WorkerOptions::new(queue.name())
        .deployment_options(WorkerDeploymentOptions::from_build_id(
            env!("CARGO_PKG_VERSION").to_owned(),
        ))
        .register_activities(SharedHost(host.clone()))
        .tuner(tuner)
        .activity_task_poller_behavior(PollerBehavior::SimpleMaximum(2))
        .max_heartbeat_throttle_interval(HEARTBEAT_THROTTLE)
        .graceful_shutdown_period(GRACE)
        .build()
}

/// Starts an activity for each offer.
struct TemporalSink {
    client: Client,
    heartbeat_timeout: Duration,
}

#[async_trait]
impl OfferSink for TemporalSink {
    /// One that is there already stays as it is; one that is over begins anew, and finds nothing to do
    /// if it was over in the database, too.
    async fn offer(&self, offer: &TaskOffer) -> Result<(), String> {
        let queue = TaskQueue::of(offer).name();
        let timeouts = ActivityCloseTimeouts::StartToClose(LONGEST_ATTEMPT);
        let retries = RetryPolicy::builder()
            .initial_interval(Duration::from_millis(200))
            .backoff_coefficient(2.0)
            .maximum_interval(Duration::from_secs(5))
            .maximum_attempts(0)
            .build();
        let options = ActivityStartOptions::new(queue, offer.to_string(), timeouts)
            .heartbeat_timeout(self.heartbeat_timeout)
            .retry_policy(retries)
            .id_reuse_policy(ActivityIdReusePolicy::AllowDuplicate)
            .id_conflict_policy(ActivityIdConflictPolicy::UseExisting)
            .build();
        let input = OfferInput::from(offer);
        let started = self.client.start_activity(RunTask, input, options).await;
        started.map(drop).map_err(|error| error.to_string())
    }

    /// No worker hears of the cancellation of an activity that none has: it waits, or is to be tried
    /// again later.
    async fn renew(&self, offer: &TaskOffer) -> Result<Renewed, String> {
        match cancellation(&self.client, &offer.to_string()).await {
            Ok(Asked::Cancelled(reason)) => Ok(Renewed::Cancelled(reason)),
            Ok(Asked::Open) => Ok(Renewed::Offered),
            // Temporal does not know it, or cannot be asked, which the offer shows.
            Ok(Asked::Over) | Err(_) => self.offer(offer).await.map(|()| Renewed::Offered),
        }
    }
}
