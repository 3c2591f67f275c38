//! Tasks: list, one, its steps and its output.

use axum::{Json, extract::State};
use codespar_protocol::{TaskId, TaskRecord, TaskSpec, TaskStatus, TaskType};
use codespar_store::TaskFilter;
use codespar_tasks::OutputPart;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

use super::{
    extract::{Named, Params, page_size},
    schema::{ApiUsage, StatusSchema, TypeSchema},
};
use crate::{error::ApiError, scope::ProjectKey, state::Shared};

const PAGE: u32 = 50;
const MOST_TASKS: u32 = 200;
const MOST_OUTPUT: u32 = 1 << 20;

/// A task. Fields may be added, never renamed or removed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ApiTask {
    /// The letter of its type, `-` and eight digits.
    task_id: String,
    #[schema(value_type = TypeSchema)]
    task_type: TaskType,
    #[schema(value_type = StatusSchema)]
    status: TaskStatus,
    /// What it runs: `shell`, `agent`, `dev`, `workflow` and others.
    kind: Option<String>,
    /// One line.
    subject: String,
    description: String,
    active_form: Option<String>,
    owner: Option<String>,
    /// The key of its project.
    project: Option<String>,
    /// What an agent or the dev agent was told.
    instruction: Option<String>,
    /// Tasks that wait for this one.
    blocks: Vec<String>,
    /// Tasks this one waits for.
    blocked_by: Vec<String>,
    created_at: Timestamp,
    updated_at: Timestamp,
    started_at: Option<Timestamp>,
    ended_at: Option<Timestamp>,
    /// Why it failed or was stopped.
    error: Option<String>,
    exit_code: Option<i32>,
    attempt: u32,
    usage: ApiUsage,
    /// Absent while a price is unknown.
    cost_usd: Option<f64>,
    /// The session that made it.
    session_id: Option<String>,
    /// The conversation of its agent.
    agent_session: Option<String>,
    parent_task_id: Option<String>,
    /// What callers keep with it, and what its runner told of its end.
    metadata: Map<String, Value>,
    /// The page on which Temporal shows it, if that dispatches tasks and its pages are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    engine_url: Option<String>,
}

impl ApiTask {
    pub(crate) fn of(task: TaskRecord) -> Self {
        let ids = |ids: &[TaskId]| ids.iter().map(ToString::to_string).collect();
        let agent_session = task.agent().map(|agent| agent.agent_session.to_string());
        let instruction = match &task.spec {
            Some(TaskSpec::Dev(order)) => Some(order.instruction.clone()),
            _ => task.agent().map(|agent| agent.prompt.clone()),
        };
        let authority = task.authority.as_ref();
        Self {
            task_id: task.task_id.to_string(),
            task_type: task.task_type,
            status: task.status,
            kind: task.spec.as_ref().and_then(kind_of),
            subject: task.subject,
            description: task.description,
            active_form: task.active_form,
            owner: task.owner,
            project: authority.map(|by| ProjectKey::of(&by.project_root).as_str().to_owned()),
            instruction,
            blocks: ids(&task.blocks),
            blocked_by: ids(&task.blocked_by),
            created_at: task.created_at,
            updated_at: task.updated_at,
            started_at: task.started_at,
            ended_at: task.ended_at,
            error: task.error,
            exit_code: task.exit_code,
            attempt: task.attempt,
            usage: task.usage.into(),
            cost_usd: task.cost_usd.known().map(|usd| usd.dollars()),
            session_id: task.session_id.map(|id| id.to_string()),
            agent_session,
            parent_task_id: task.parent_task_id.map(|id| id.to_string()),
            metadata: task.metadata,
            engine_url: None,
        }
    }
}

impl ApiTask {
    /// Without secrets: the instruction and what callers keep with a task are on record as they
    /// were given.
    pub(super) fn shown(task: TaskRecord, state: &Shared) -> Self {
        let engine_url = state.runtime.engine_page(&task.task_id);
        let mut shown = Self {
            engine_url,
            ..Self::of(task)
        };
        let redactor = state.runtime.redactor();
        let texts = [&mut shown.subject, &mut shown.description];
        let maybe = [&mut shown.instruction, &mut shown.error];
        for text in texts.into_iter().chain(maybe.into_iter().flatten()) {
            *text = redactor.redact(text).into_owned();
        }
        let values = shown.metadata.iter_mut();
        values.for_each(|(_, value)| redactor.redact_json(value));
        shown
    }
}

/// The word that records have for what a task runs.
fn kind_of(spec: &TaskSpec) -> Option<String> {
    let value = serde_json::to_value(spec).ok()?;
    value["kind"].as_str().map(str::to_owned)
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ListParams {
    /// Only those in this state.
    #[param(value_type = Option<StatusSchema>, inline)]
    status: Option<TaskStatus>,
    /// Only those of this type.
    #[serde(rename = "type")]
    #[param(value_type = Option<TypeSchema>, inline)]
    task_type: Option<TaskType>,
    /// Only those of the project with this key.
    project: Option<String>,
    /// The `next` of the page before.
    cursor: Option<String>,
    /// At most so many, 50 by default.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct TaskPage {
    /// Latest first.
    tasks: Vec<ApiTask>,
    /// The `cursor` of the next page; absent on the last.
    next: Option<String>,
}

/// List tasks, latest first.
#[utoipa::path(
    get, path = "/api/v1/tasks", tag = "tasks", params(ListParams),
    responses((status = 200, body = TaskPage))
)]
pub(super) async fn list(
    State(state): State<Shared>,
    Params(params): Params<ListParams>,
) -> Result<Json<TaskPage>, ApiError> {
    let limit = page_size(params.limit, PAGE, MOST_TASKS)?;
    let project_roots = match &params.project {
        Some(key) => vec![state.scope.root_by_key(key)?.to_path_buf()],
        None => state.scope.roots().to_vec(),
    };
    let before = match &params.cursor {
        Some(text) => Some(cursor(text)?),
        None => None,
    };
    let filter = TaskFilter {
        status: params.status,
        task_type: params.task_type,
        project_roots,
        before,
        // One more tells whether there is another page.
        limit: Some(limit + 1),
        ..TaskFilter::default()
    };
    let mut tasks = state.store().tasks(filter).await?;
    tasks.reverse();
    let is_last = tasks.len() <= limit as usize;
    tasks.truncate(limit as usize);
    let next = tasks.last().filter(|_| !is_last);
    Ok(Json(TaskPage {
        next: next.map(|task| task.task_id.to_string()),
        tasks: tasks
            .into_iter()
            .map(|task| ApiTask::shown(task, &state))
            .collect(),
    }))
}

fn cursor(text: &str) -> Result<TaskId, ApiError> {
    let read = text.parse();
    read.map_err(|_| ApiError::bad_request("`cursor` is not the `next` of a page"))
}

/// Show a task.
#[utoipa::path(
    get, path = "/api/v1/tasks/{id}", tag = "tasks", params(("id" = String, Path)),
    responses((status = 200, body = ApiTask))
)]
pub(super) async fn get(
    State(state): State<Shared>,
    Named(id): Named<String>,
) -> Result<Json<ApiTask>, ApiError> {
    Ok(Json(ApiTask::shown(state.scope.task(&id).await?, &state)))
}

#[derive(Serialize, ToSchema)]
pub(super) struct TaskSteps {
    steps: Vec<TaskStep>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct TaskStep {
    name: String,
    /// What it gave; its form depends on the step.
    #[schema(value_type = Object)]
    result: Value,
}

/// Show the recorded steps of a task, in order: those of a run of the dev agent or of a workflow.
#[utoipa::path(
    get, path = "/api/v1/tasks/{id}/steps", tag = "tasks", params(("id" = String, Path)),
    responses((status = 200, body = TaskSteps))
)]
pub(super) async fn steps(
    State(state): State<Shared>,
    Named(id): Named<String>,
) -> Result<Json<TaskSteps>, ApiError> {
    let task = state.scope.task(&id).await?;
    let steps = state.store().steps(&task.task_id).await?;
    let redactor = state.runtime.redactor();
    let step = |(name, mut result): (String, Value)| {
        redactor.redact_json(&mut result);
        // Always an object, so that a client can rely on it.
        let result = match result {
            Value::Object(_) => result,
            other => serde_json::json!({ "value": other }),
        };
        TaskStep { name, result }
    };
    Ok(Json(TaskSteps {
        steps: steps.into_iter().map(step).collect(),
    }))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct OutputParams {
    /// Start at this byte.
    offset: Option<u64>,
    /// At most so many bytes.
    #[param(minimum = 1, maximum = 1_048_576)]
    limit: Option<u32>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct TaskOutput {
    task_id: String,
    #[schema(value_type = StatusSchema)]
    status: TaskStatus,
    output: String,
    /// Where the output goes on.
    next_offset: u64,
}

/// Read a part of a task's output, by bytes.
#[utoipa::path(
    get, path = "/api/v1/tasks/{id}/output", tag = "tasks",
    params(("id" = String, Path), OutputParams),
    responses((status = 200, body = TaskOutput))
)]
pub(super) async fn output(
    State(state): State<Shared>,
    Named(id): Named<String>,
    Params(params): Params<OutputParams>,
) -> Result<Json<TaskOutput>, ApiError> {
    let limit = page_size(params.limit, MOST_OUTPUT, MOST_OUTPUT)?;
    let offset = params.offset.unwrap_or(0);
    if i64::try_from(offset).is_err() {
        return Err(ApiError::bad_request("`offset` is too large"));
    }
    let task = state.scope.task(&id).await?;
    let part = match has_own_output(&state, &task) {
        true => {
            let outputs = state.runtime.outputs();
            outputs.read(&task, offset, limit as usize).await?
        }
        false => OutputPart {
            text: String::new(),
            next: offset,
        },
    };
    Ok(Json(TaskOutput {
        task_id: task.task_id.to_string(),
        status: task.status,
        output: part.text,
        next_offset: part.next,
    }))
}

/// The last bytes of a task's output, and whether there is more before them.
pub(crate) async fn output_tail(
    state: &Shared,
    task: &TaskRecord,
    limit: usize,
) -> Result<(String, bool), ApiError> {
    if !has_own_output(state, task) {
        return Ok((String::new(), false));
    }
    let tail = state.runtime.outputs().tail(task, limit).await?;
    Ok((tail.text, tail.length > limit as u64))
}

/// Only outputs of tasks are read, whatever a record says. Where hosts share them, the file is not
/// the one that the record names.
fn has_own_output(state: &Shared, task: &TaskRecord) -> bool {
    let outputs = state.runtime.outputs();
    outputs.is_shared() || is_inside(&outputs.file(task), outputs.dir())
}

fn is_inside(file: &std::path::Path, dir: &std::path::Path) -> bool {
    match (file.canonicalize(), dir.canonicalize()) {
        (Ok(file), Ok(dir)) => file.starts_with(dir),
        _ => false,
    }
}
