//! Tasks: run one again that came to nothing.
//!
//! A run that failed is not begun again under its own id: its record says how it ended, and stays.
//! The new task names the old one and takes its steps over.

use axum::{Json, extract::State, http::StatusCode, response::IntoResponse};
use codespar_protocol::{TaskId, TaskType};
use codespar_runtime::RuntimeError;

use super::{extract::Named, tasks::ApiTask};
use crate::{access::Client, error::ApiError, state::Shared};

/// Start a run of the dev agent again that failed or was stopped. The new task takes over the steps
/// that are on record.
#[utoipa::path(
    post, path = "/api/v1/tasks/{id}/retry", tag = "tasks", params(("id" = String, Path)),
    responses((status = 201, body = ApiTask))
)]
pub(super) async fn retry(
    State(state): State<Shared>,
    client: Client,
    Named(id): Named<String>,
) -> Result<impl IntoResponse, ApiError> {
    let earlier = state.scope.task(&id).await?;
    let authority = earlier.authority.as_ref();
    let root = authority.map(|authority| &authority.project_root);
    let root = root.ok_or_else(|| ApiError::not_found("there is no such task on this server"))?;
    let project = state.runtime.project_at(root)?;
    let id = TaskId::new(TaskType::LocalWorkflow);
    let task = match project.retry_dev(&earlier.task_id, &id).await {
        // The request is well formed; the task is of another kind, or not over.
        Err(RuntimeError::Usage(why)) => return Err(ApiError::conflict("state", why)),
        other => other?,
    };
    tracing::info!(task = %task.task_id, by = client.name(), "run again over the API");
    Ok((StatusCode::CREATED, Json(ApiTask::shown(task, &state))))
}
