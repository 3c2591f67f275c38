//! Who runs what, what waits, and how much there is to do.

use axum::{Json, extract::State};
use codespar_protocol::TaskType;
use codespar_store::{EngineState, FleetTask, LimitScope, LimitUse, RunnerId, RunnerState};
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::schema::{LimitScopeSchema, RunnerStateSchema, TypeSchema};
use crate::{
    error::ApiError,
    fleet::{VisibleFleet, VisibleQueue, VisibleRunner},
    state::{Shared, WorkerState},
};

#[derive(Serialize, ToSchema)]
pub(super) struct ServerHealth {
    version: String,
    uptime_seconds: u64,
    /// This server runs tasks itself.
    runs_tasks: bool,
    /// Tasks that run in this process.
    running_here: u64,
    /// Clients that follow events.
    event_streams: u64,
    queue: Queue,
    /// All processes that run tasks of this database, by id.
    runners: Vec<ApiRunner>,
    /// Tasks that wait for nothing but a process.
    queues: Vec<ApiQueue>,
    /// Limits of what runs at once, without those of other repositories.
    limits: Vec<ApiLimit>,
}

/// Work left to do, of all projects of the state directory.
#[derive(Serialize, ToSchema)]
pub(super) struct Queue {
    /// Waiting for something or someone.
    pending: u64,
    /// Pending and ready to be run now.
    ready: u64,
    running: u64,
}

#[derive(Serialize, ToSchema)]
pub(super) struct ApiRunner {
    id: String,
    /// It takes agents that are meant for workers.
    worker: bool,
    /// It has shown no sign of life for a while, or is gone.
    silent: bool,
    /// `silent` where others may take its tasks over, `gone` where it left tasks behind that nobody
    /// has taken yet.
    #[schema(value_type = RunnerStateSchema)]
    state: RunnerState,
    /// This and what follows is absent until the first heartbeat.
    host: Option<String>,
    version: Option<String>,
    /// What brings it its tasks: `leases` or `temporal`.
    engine: Option<String>,
    /// It reaches that.
    engine_reached: Option<bool>,
    /// What it offers.
    labels: Vec<String>,
    started_at: Option<Timestamp>,
    /// What it runs of the projects of this server, in order of creation.
    running: Vec<ApiRunning>,
    /// How many tasks of other projects it runs.
    running_others: u64,
}

#[derive(Serialize, ToSchema)]
pub(super) struct ApiRunning {
    task_id: String,
    #[schema(value_type = TypeSchema)]
    task_type: TaskType,
    /// One line.
    subject: String,
    /// The name of its remote, or of the directory of its project.
    repository: String,
    started_at: Option<Timestamp>,
    attempt: u32,
    /// How often in a row it was taken over from a lost process.
    take_overs: u32,
    /// The page on which Temporal shows it, if that dispatches tasks and its pages are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    engine_url: Option<String>,
}

/// Tasks of one type, set of labels and repository.
#[derive(Serialize, ToSchema)]
pub(super) struct ApiQueue {
    #[schema(value_type = TypeSchema)]
    task_type: TaskType,
    /// What a process must offer to run them.
    labels: Vec<String>,
    /// Absent for all repositories together that are not of this server.
    repository: Option<String>,
    ready: u64,
    /// Since when the oldest of them has waited.
    oldest_ready_at: Timestamp,
}

#[derive(Serialize, ToSchema)]
pub(super) struct ApiLimit {
    #[schema(value_type = LimitScopeSchema)]
    scope: LimitScope,
    /// Which repository, user or labels; empty for each repository or user that has no limit of its
    /// own, and for the limit of all.
    name: String,
    /// How many may run at once.
    limit: u32,
    /// How many run, of those that it counts; of a limit for each without their own, the most that
    /// one has.
    running: u64,
}

impl ApiRunner {
    fn shown(visible: VisibleRunner, state: &Shared) -> Self {
        let VisibleRunner { runner, others } = visible;
        let standing = runner.state();
        let about = runner.about.as_ref();
        Self {
            worker: RunnerId(runner.id.clone()).is_worker(),
            silent: standing != RunnerState::Alive,
            state: standing,
            host: about.map(|about| about.host.clone()),
            version: about.map(|about| about.version.clone()),
            engine: about.map(|about| about.engine.clone()),
            engine_reached: about.map(|about| about.engine_state == EngineState::Connected),
            labels: about.map_or_else(Vec::new, |about| words(about.labels.iter())),
            started_at: about.map(|about| about.started_at),
            running: shown_tasks(runner.running, state),
            running_others: others,
            id: runner.id,
        }
    }
}

/// Without secrets.
fn shown_tasks(tasks: Vec<FleetTask>, state: &Shared) -> Vec<ApiRunning> {
    let redactor = state.runtime.redactor();
    let shown = |task: FleetTask| ApiRunning {
        engine_url: state.runtime.engine_page(&task.task_id),
        task_id: task.task_id.to_string(),
        task_type: task.task_type,
        subject: redactor.redact(&task.subject).into_owned(),
        repository: redactor.redact(&task.repository).into_owned(),
        started_at: task.started_at,
        attempt: task.attempt,
        take_overs: task.take_overs,
    };
    tasks.into_iter().map(shown).collect()
}

impl From<VisibleQueue> for ApiQueue {
    fn from(queue: VisibleQueue) -> Self {
        Self {
            task_type: queue.task_type,
            labels: words(queue.labels.iter()),
            repository: queue.repository,
            ready: queue.ready,
            oldest_ready_at: queue.oldest_ready_at,
        }
    }
}

impl From<LimitUse> for ApiLimit {
    fn from(one: LimitUse) -> Self {
        Self {
            scope: one.limit.scope,
            name: one.limit.name,
            limit: one.limit.limit,
            running: one.running,
        }
    }
}

fn words<'a>(labels: impl Iterator<Item = &'a str>) -> Vec<String> {
    labels.map(str::to_owned).collect()
}

/// Show who runs what, what waits for a process, the limits, and how much there is to do.
///
/// Tasks of projects that are not of this server are counted and not named.
#[utoipa::path(
    get, path = "/api/v1/workers", tag = "health",
    responses((status = 200, body = ServerHealth))
)]
pub(super) async fn show(State(state): State<Shared>) -> Result<Json<ServerHealth>, ApiError> {
    let left = state.store().outstanding().await?;
    let fleet = VisibleFleet::now(&state).await?;
    let runners = fleet.runners.into_iter();
    Ok(Json(ServerHealth {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        uptime_seconds: state.began.elapsed().as_secs(),
        runs_tasks: state.worker == WorkerState::Here,
        running_here: state.runtime.workload().borrow().tasks as u64,
        event_streams: state.events.clients() as u64,
        queue: Queue {
            pending: left.pending,
            ready: left.ready,
            running: left.running,
        },
        runners: runners.map(|one| ApiRunner::shown(one, &state)).collect(),
        queues: fleet.queues.into_iter().map(ApiQueue::from).collect(),
        limits: fleet.limits.into_iter().map(ApiLimit::from).collect(),
    }))
}
