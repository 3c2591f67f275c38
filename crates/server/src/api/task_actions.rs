//! Tasks: start, stop, write to.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::IntoResponse,
};
use codespar_protocol::{Consent, RepositoryRef, TaskId, TaskType, Usd};
use codespar_runtime::{DevRequest, Project, is_model, which};
use serde::Deserialize;
use utoipa::ToSchema;

use super::{
    extract::{Body, Named, checked_text},
    tasks::ApiTask,
};
use crate::{access::Client, error::ApiError, state::Shared};

const MOST_TEXT: usize = 100_000;
const MOST_NAME: usize = 200;

/// A run of the dev agent: an instruction that becomes a pull request.
///
/// How it is tested, confined and permitted is decided by the settings of its project.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewTask {
    /// What is to be done.
    #[schema(min_length = 1, max_length = 100_000)]
    instruction: String,
    /// The key of the project; may be left out on a server with one.
    project: Option<String>,
    /// The project by its repository on GitHub, `owner/name`, instead of its key.
    repository: Option<String>,
    /// The branch that the change is for; the default branch otherwise.
    base: Option<String>,
    /// Add to the branch of this open pull request.
    pull_request: Option<u64>,
    /// Open the pull request as a draft.
    #[serde(default)]
    draft: bool,
    /// The model that writes: an alias or an id that the server knows.
    model: Option<String>,
    /// The most that it may cost.
    max_budget_usd: Option<f64>,
}

/// Start a run of the dev agent.
#[utoipa::path(
    post, path = "/api/v1/tasks", tag = "tasks", request_body = NewTask,
    responses((status = 201, body = ApiTask))
)]
pub(super) async fn create(
    State(state): State<Shared>,
    client: Client,
    Body(new): Body<NewTask>,
) -> Result<impl IntoResponse, ApiError> {
    checked_text("instruction", &new.instruction, MOST_TEXT)?;
    let project = project_of(&state, &new)?;
    let repository = which(&project.dir, &project.settings, None)?;
    let mut request = DevRequest::new(new.instruction, repository);
    request.requested_by = Some(client.token.name.clone());
    if let Some(base) = new.base {
        checked_branch(&base)?;
        request.base = Some(base);
    }
    if request.base.is_some() && new.pull_request.is_some() {
        return Err(ApiError::unprocessable(
            "`base` and `pull_request` exclude each other: a pull request has its base",
        ));
    }
    request.pull_request = new.pull_request;
    request.draft = consent(new.draft);
    if let Some(model) = &new.model {
        checked_text("model", model, MOST_NAME)?;
        if !is_model(&project.dir, model) {
            return Err(ApiError::unprocessable(
                "this server does not know that model",
            ));
        }
    }
    request.model = new.model;
    request.max_budget = new.max_budget_usd.map(budget).transpose()?;
    let id = TaskId::new(TaskType::LocalWorkflow);
    let task = project.start_dev(&id, request).await?;
    tracing::info!(task = %task.task_id, by = client.name(), "started over the API");
    let place = format!("/api/v1/tasks/{}", task.task_id);
    let place = HeaderValue::try_from(place).map_err(ApiError::internal)?;
    let headers = [(header::LOCATION, place)];
    Ok((
        StatusCode::CREATED,
        headers,
        Json(ApiTask::shown(task, &state)),
    ))
}

fn consent(given: bool) -> Consent {
    match given {
        true => Consent::Granted,
        false => Consent::Withheld,
    }
}

/// Only projects of this server, by key or by their own repository. A request cannot name a
/// directory or a repository of its own.
fn project_of(state: &Shared, new: &NewTask) -> Result<Arc<Project>, ApiError> {
    match (&new.project, &new.repository) {
        (Some(_), Some(_)) => Err(ApiError::unprocessable(
            "give `project` or `repository`, not both",
        )),
        (Some(key), None) => state
            .scope
            .project(key)
            .map_err(|error| match error.status() {
                StatusCode::NOT_FOUND => ApiError::unprocessable(error.message()),
                _ => error,
            }),
        (None, Some(name)) => by_repository(state, name),
        (None, None) => state.scope.only_project(),
    }
}

fn by_repository(state: &Shared, wanted: &str) -> Result<Arc<Project>, ApiError> {
    for root in state.scope.roots() {
        let project = state.runtime.project_at(root)?;
        let repository = which(&project.dir, &project.settings, None)?;
        if let RepositoryRef::GitHub { owner, name } = repository
            && wanted.eq_ignore_ascii_case(&format!("{owner}/{name}"))
        {
            return Ok(project);
        }
    }
    Err(ApiError::unprocessable(
        "no project of this server has that repository",
    ))
}

/// The name of a branch reaches git; what git would not take as one is refused here.
fn checked_branch(name: &str) -> Result<(), ApiError> {
    checked_text("base", name, MOST_NAME)?;
    let is_bad = |c: char| c.is_control() || c.is_whitespace() || "~^:?*[\\".contains(c);
    if name.starts_with('-') || name.contains("..") || name.contains(is_bad) {
        return Err(ApiError::unprocessable(
            "`base` is not the name of a branch",
        ));
    }
    Ok(())
}

pub(super) fn budget(dollars: f64) -> Result<Usd, ApiError> {
    Usd::from_dollars(dollars)
        .filter(|usd| *usd > Usd::ZERO)
        .ok_or_else(|| ApiError::unprocessable("`max_budget_usd` is an amount above zero"))
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct StopTask {
    /// For the record.
    reason: Option<String>,
}

/// Stop a task with all its processes. One that runs elsewhere may still be `running` in the answer.
#[utoipa::path(
    post, path = "/api/v1/tasks/{id}/stop", tag = "tasks", params(("id" = String, Path)),
    request_body = StopTask, responses((status = 200, body = ApiTask))
)]
pub(super) async fn stop(
    State(state): State<Shared>,
    client: Client,
    Named(id): Named<String>,
    Body(body): Body<StopTask>,
) -> Result<Json<ApiTask>, ApiError> {
    let task = state.scope.task(&id).await?;
    let mut reason = format!("stopped by {}", client.name());
    if let Some(said) = &body.reason {
        checked_text("reason", said, MOST_NAME)?;
        reason = format!("{reason}: {said}");
    }
    let hub = hub_of(&state, &task)?;
    let task = hub.stop(&task.task_id, &reason).await?;
    Ok(Json(ApiTask::shown(task, &state)))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewMessage {
    #[schema(min_length = 1, max_length = 100_000)]
    message: String,
}

/// Send a message to an agent. One that has ended runs again.
#[utoipa::path(
    post, path = "/api/v1/tasks/{id}/messages", tag = "tasks", params(("id" = String, Path)),
    request_body = NewMessage, responses((status = 202, body = ApiTask))
)]
pub(super) async fn message(
    State(state): State<Shared>,
    Named(id): Named<String>,
    Body(body): Body<NewMessage>,
) -> Result<impl IntoResponse, ApiError> {
    checked_text("message", &body.message, MOST_TEXT)?;
    let task = state.scope.task(&id).await?;
    if !task.runs_agent() {
        return Err(ApiError::conflict(
            "not_an_agent",
            format!("{} runs no agent that could read a message", task.task_id),
        ));
    }
    let hub = hub_of(&state, &task)?;
    let task = hub.send_by_user(&task.task_id, &body.message).await?;
    Ok((StatusCode::ACCEPTED, Json(ApiTask::shown(task, &state))))
}

fn hub_of(
    state: &Shared,
    task: &codespar_protocol::TaskRecord,
) -> Result<Arc<codespar_tasks::TaskHub>, ApiError> {
    let authority = task.authority.as_ref();
    let root = authority.map(|authority| &authority.project_root);
    let root = root.ok_or_else(|| ApiError::not_found("there is no such task on this server"))?;
    Ok(state.runtime.project_at(root)?.hub.clone())
}
