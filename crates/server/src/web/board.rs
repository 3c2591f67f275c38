//! All tasks by state, and the box for a new one.
//!
//! The board has a column for each state as people mean it, which is not quite that of the
//! scheduler: an agent that asks something is running for the scheduler and waiting for a person.
//! Filters are in the address, so that a view can be kept and sent to somebody. Selecting several
//! cards and stopping them is one request for each, checked one by one.

use std::collections::{BTreeSet, HashSet};

use axum::{extract::State, response::Html};
use codespar_protocol::{AccessRole, TaskId, TaskRecord, TaskSpec, TaskStatus, TaskType};
use codespar_store::TaskFilter;
use maud::{Markup, html};
use serde::Deserialize;

use super::{
    chat,
    layout::{self, View, may},
    text,
};
use crate::{access::Client, api::Params, error::ApiError, scope::ProjectKey, state::Shared};

const MOST_UNFINISHED: u32 = 100;
const FINISHED: u32 = 30;

/// Which tasks; kept in the address. Empty fields of the form choose nothing.
#[derive(Deserialize, Default)]
pub(crate) struct BoardParams {
    #[serde(default)]
    project: String,
    #[serde(default, rename = "type")]
    task_type: String,
    #[serde(default)]
    state: String,
    /// Who asked for it.
    #[serde(default)]
    person: String,
    /// Finished tasks before this one.
    #[serde(default)]
    before: String,
}

impl BoardParams {
    fn filter(&self, state: &Shared, status: TaskStatus) -> Result<TaskFilter, ApiError> {
        let project_roots = match self.project.as_str() {
            "" => state.scope.roots().to_vec(),
            key => vec![state.scope.root_by_key(key)?.to_path_buf()],
        };
        let wrong = |_| ApiError::bad_request("there is no such type of task");
        let task_type: Option<TaskType> = match self.task_type.as_str() {
            "" => None,
            word => Some(word.parse().map_err(wrong)?),
        };
        let wrong = |_| ApiError::bad_request("`before` is not the id of a task");
        let before: Option<TaskId> = match self.before.as_str() {
            "" => None,
            id => Some(id.parse().map_err(wrong)?),
        };
        Ok(TaskFilter {
            status: Some(status),
            task_type,
            project_roots,
            before: before.filter(|_| status.is_final()),
            limit: Some(if status.is_final() {
                FINISHED
            } else {
                MOST_UNFINISHED
            }),
            ..TaskFilter::default()
        })
    }

    fn is_wanted(&self, task: &TaskRecord) -> bool {
        self.person.is_empty() || person_of(task) == Some(self.person.as_str())
    }

    fn address(&self, before: &TaskId) -> String {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query
            .append_pair("project", &self.project)
            .append_pair("type", &self.task_type)
            .append_pair("state", &self.state)
            .append_pair("person", &self.person)
            .append_pair("before", before.as_str());
        format!("/board?{}", query.finish())
    }
}

struct Columns {
    running: Vec<TaskRecord>,
    waiting: Vec<TaskRecord>,
    queued: Vec<TaskRecord>,
    finished: Vec<TaskRecord>,
}

async fn columns(state: &Shared, params: &BoardParams) -> Result<Columns, ApiError> {
    let tasks = async |status| -> Result<Vec<TaskRecord>, ApiError> {
        let mut tasks = state.store().tasks(params.filter(state, status)?).await?;
        tasks.retain(|task| params.is_wanted(task));
        tasks.reverse();
        Ok(tasks)
    };
    let questions = layout::open_questions(state).await?;
    let asking: HashSet<TaskId> = questions
        .into_iter()
        .filter_map(|one| one.task_id)
        .collect();
    let waits = |task: &TaskRecord| asking.contains(&task.task_id) || !task.blocked_by.is_empty();
    let (mut waiting, running): (Vec<_>, Vec<_>) = tasks(TaskStatus::Running)
        .await?
        .into_iter()
        .partition(|task| asking.contains(&task.task_id));
    let (blocked, queued): (Vec<_>, Vec<_>) = tasks(TaskStatus::Pending)
        .await?
        .into_iter()
        .partition(waits);
    waiting.extend(blocked);
    let mut finished = Vec::new();
    for status in TaskStatus::ALL
        .into_iter()
        .filter(|status| status.is_final())
    {
        finished.extend(tasks(status).await?);
    }
    finished.sort_by_key(|task| std::cmp::Reverse(task.created_at));
    finished.truncate(FINISHED as usize);
    Ok(Columns {
        running,
        waiting,
        queued,
        finished,
    })
}

/// Who asked for a run of the dev agent.
fn person_of(task: &TaskRecord) -> Option<&str> {
    match &task.spec {
        Some(TaskSpec::Dev(order)) => Some(order.requested_by.as_str()),
        _ => None,
    }
}

impl Columns {
    /// Who asked for the tasks that are shown, each once.
    fn people(&self) -> Vec<&str> {
        let all = [&self.running, &self.waiting, &self.queued, &self.finished];
        let people: BTreeSet<&str> = all.into_iter().flatten().filter_map(person_of).collect();
        people.into_iter().collect()
    }
}

pub(crate) async fn show(
    State(state): State<Shared>,
    client: Client,
    Params(params): Params<BoardParams>,
) -> Result<Html<String>, ApiError> {
    let columns = columns(&state, &params).await?;
    let wants = |name: &str| params.state.is_empty() || params.state == name;
    let content = html! {
        h1 { "Board" }
        @if may(&client, AccessRole::Write) { (new_task(&state, &params)) }
        form.filters method="get" action="/search" role="search" {
            label { "Search in conversations" input type="text" id="search" name="q" minlength="2" maxlength="200" required; }
            button { "Search" }
        }
        (filters(&state, &params, &columns.people()))
        @if may(&client, AccessRole::Write) { (bulk_stop()) }
        div.board id="tasks" data-live="task question" {
            @for (name, title, tasks) in [
                ("running", "Running", &columns.running),
                ("waiting", "Waiting", &columns.waiting),
                ("queued", "Queued", &columns.queued),
                ("finished", "Finished", &columns.finished),
            ] {
                @if wants(name) {
                    section.column aria-labelledby={ "column-" (name) } {
                        h2 id={ "column-" (name) } { (title) span.quiet { (tasks.len()) } }
                        @if tasks.is_empty() { p.note { "None." } }
                        ul.cards { @for task in tasks { (card(&state, &client, task, &standing(name, task))) } }
                        @if name == "finished" && tasks.len() == FINISHED as usize
                            && let Some(last) = tasks.last() {
                            a.more href=(params.address(&last.task_id)) { "Older" }
                        }
                    }
                }
            }
        }
    };
    layout::page(&state, &client, View::Board, "Board", content).await
}

/// The projects of the server: key and name.
pub(super) fn projects(state: &Shared) -> Vec<(String, String)> {
    let roots = state.scope.roots().iter();
    roots
        .map(|root| {
            let name = root.file_name().unwrap_or(root.as_os_str());
            let key = ProjectKey::of(root).as_str().to_owned();
            (key, text::clean(state, &name.to_string_lossy()))
        })
        .collect()
}

/// A line of the chat grammar in a thread of its own. What becomes a task leads to it; what is
/// answered at once is shown below the box.
fn new_task(state: &Shared, params: &BoardParams) -> Markup {
    let projects = projects(state);
    html! {
        section.panel aria-label="New task" {
            form data-api="/api/v1/commands?wait=10" data-then="/tasks/{task_id}" method="post" {
                label for="instruction" { "New task, or another command" }
                div.row {
                    (chat::command_box("fix the auth timeout in login.ts"))
                    @if projects.len() > 1 {
                        label for="project" { "Project" }
                        select id="project" name="project" {
                            @for (key, name) in &projects {
                                option value=(key) selected[*key == params.project] { (name) }
                            }
                        }
                    }
                    button.primary { "Start" }
                    p.problem role="alert" {}
                }
                p.said data-replies role="status" {}
            }
        }
    }
}

/// Stops the tasks that are selected on their cards.
fn bulk_stop() -> Markup {
    html! {
        form.row data-bulk id="bulk" hidden {
            button.danger data-confirm="Stop all selected tasks?" { "Stop selected" }
            p.problem role="alert" {}
        }
    }
}

fn filters(state: &Shared, params: &BoardParams, people: &[&str]) -> Markup {
    let is_listed = params.person.is_empty() || people.contains(&params.person.as_str());
    let projects = projects(state);
    html! {
        form.filters method="get" action="/board" data-auto aria-label="Filters" {
            label { "Project"
                select name="project" {
                    option value="" { "All" }
                    @for (key, name) in &projects {
                        option value=(key) selected[*key == params.project] { (name) }
                    }
                }
            }
            label { "Type"
                select name="type" {
                    option value="" { "All" }
                    @for kind in TaskType::ALL {
                        option value=(kind.as_str()) selected[kind.as_str() == params.task_type] {
                            (text::type_name(kind))
                        }
                    }
                }
            }
            label { "State"
                select name="state" {
                    option value="" { "All" }
                    @for name in ["running", "waiting", "queued", "finished"] {
                        option value=(name) selected[name == params.state] { (name) }
                    }
                }
            }
            label { "Person"
                select name="person" {
                    option value="" { "All" }
                    @if !is_listed { option value=(params.person) selected { (text::line(state, &params.person)) } }
                    @for name in people {
                        option value=(name) selected[*name == params.person] { (text::line(state, name)) }
                    }
                }
            }
            noscript { button { "Filter" } }
        }
    }
}

/// An agent that asks something is running for the scheduler and waiting for people.
fn standing(column: &str, task: &TaskRecord) -> Markup {
    match (column, task.status) {
        ("waiting", TaskStatus::Running) => text::waiting(),
        (_, status) => text::status(status),
    }
}

/// A task in a list, with how it stands.
pub(super) fn card(
    state: &Shared,
    client: &Client,
    task: &TaskRecord,
    standing: &Markup,
) -> Markup {
    let subject = text::line(
        state,
        task.subject.strip_prefix("dev: ").unwrap_or(&task.subject),
    );
    html! {
        li.card data-item {
            a href={ "/tasks/" (task.task_id) } { (subject) }
            p.facts {
                (standing)
                span { (text::type_name(task.task_type)) }
                @if let Some(took) = text::elapsed(task.started_at, task.ended_at) { span { (took) } }
                @if task.usage.total_tokens() > 0 { span { (text::cost(task.cost_usd)) } }
                span { (text::ago(task.created_at)) }
            }
            @if !task.status.is_final() && may(client, AccessRole::Write) {
                div.row {
                    label { input type="checkbox" data-select=(task.task_id) aria-label={ "Select " (task.task_id) }; }
                    (stop(&task.task_id))
                }
            }
        }
    }
}

/// Without a reason: the record names who stopped it.
pub(super) fn stop(id: &TaskId) -> Markup {
    html! {
        form data-api={ "/api/v1/tasks/" (id) "/stop" } data-done="Stopped" method="post" {
            button.danger aria-label={ "Stop " (id) } { "Stop" }
            p.problem role="alert" {}
        }
    }
}
