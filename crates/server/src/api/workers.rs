//! Who runs tasks, and how much there is to do.
//!
//! The figures are of the whole state directory and not of the projects of this server alone:
//! whoever runs tasks runs those of all projects, and a queue that is full holds up everybody.

use axum::{Json, extract::State};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    error::ApiError,
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
    /// Processes that run tasks of this state directory.
    runners: Vec<ApiRunner>,
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
    /// It has shown no sign of life for a while.
    silent: bool,
}

/// Show who runs tasks, and how much there is to do.
#[utoipa::path(
    get, path = "/api/v1/workers", tag = "health",
    responses((status = 200, body = ServerHealth))
)]
pub(super) async fn show(State(state): State<Shared>) -> Result<Json<ServerHealth>, ApiError> {
    let left = state.store().outstanding().await?;
    let runners = state.store().runners().await?;
    let runner = |seen: codespar_store::RunnerSeen| ApiRunner {
        worker: seen.id.is_worker(),
        silent: seen.is_silent,
        id: seen.id.0,
    };
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
        runners: runners.into_iter().map(runner).collect(),
    }))
}
