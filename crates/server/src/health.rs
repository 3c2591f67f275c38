//! Whether the server lives, and whether it can do its work.
//!
//! Two questions for two readers. What supervises the process restarts one that is not alive; what
//! distributes requests sends none to one that is not ready. A database that is away makes the
//! server unready and not dead: starting it again would not bring the database back.

use axum::{extract::State, http::StatusCode};

use crate::state::{Shared, WorkerState};

/// The process answers.
pub(crate) async fn alive() -> &'static str {
    "ok\n"
}

/// The store answers, and tasks are run where this server runs them.
pub(crate) async fn ready(State(state): State<Shared>) -> (StatusCode, &'static str) {
    if state.stopping.is_cancelled() {
        return (StatusCode::SERVICE_UNAVAILABLE, "stopping\n");
    }
    if let Err(error) = state.store().outstanding().await {
        tracing::warn!(%error, "not ready");
        return (
            StatusCode::SERVICE_UNAVAILABLE,
            "the database does not answer\n",
        );
    }
    if state.worker == WorkerState::Here && !state.runtime.runs_tasks() {
        return (StatusCode::SERVICE_UNAVAILABLE, "no tasks are run\n");
    }
    (StatusCode::OK, "ready\n")
}
