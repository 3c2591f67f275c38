//! One task: what it is, what waits for an answer, its steps, its conversation, its output.
//!
//! Everything is read from the store when the page is loaded. Parts that change have an id and say
//! in `data-live` which events concern them; the script then fetches the page again and replaces
//! those parts alone, so what a reader has unfolded or typed elsewhere stays. A run of the dev
//! agent has a report, and the conversation shown with it is that of the agent that works for it.

use std::collections::HashMap;

use axum::{extract::State, response::Html};
use codespar_protocol::{
    AccessRole, Cost, Question, SessionId, TaskId, TaskRecord, TaskSpec, TaskStatus, Usage,
};
use codespar_store::TaskFilter;
use jiff::Timestamp;
use maud::{Markup, html};
use serde_json::Value;

use super::{
    board, commands, graph,
    layout::{self, View, may},
    question, steps, text,
    transcript::{self, TranscriptParams},
};
use crate::{
    access::Client,
    api::{Named, Params, output_tail},
    error::ApiError,
    scope::ProjectKey,
    state::Shared,
};

/// In bytes, from the end: what happened last is what is looked for. The API has the rest.
const OUTPUT: usize = 16 * 1024;

/// A task of another server does not exist here: the scope looks it up. The order of the parts is
/// that of their urgency, with open questions directly below the head.
pub(crate) async fn show(
    State(state): State<Shared>,
    client: Client,
    Named(id): Named<String>,
    Params(params): Params<TranscriptParams>,
) -> Result<Html<String>, ApiError> {
    let task = state.scope.task(&id).await?;
    let children = children(&state, &task.task_id).await?;
    let asked = open_questions(&state, &task, &children).await?;
    let standing = match asked.is_empty() || task.status.is_final() {
        true => text::status(task.status),
        false => text::waiting(),
    };
    let (cost, usage) = spent(&state, &task).await?;
    let recorded = recorded_steps(&state, &task.task_id).await?;
    let (output, is_cut) = output_tail(&state, &task, OUTPUT).await?;
    let output = text::clean(&state, &output);
    let graph = graph::dependencies(&state, &task).await;
    let (conversation, commands) = match session_of(&task, &children) {
        Some(session) => (
            Some(transcript::section(&state, session, &params).await?),
            commands::panel(&state, session).await?,
        ),
        None => (None, html! {}),
    };
    let times = state.store().step_times(&task.task_id).await?;
    let folding = match conversation.is_some() {
        true => Folding::Folded,
        false => Folding::Open,
    };
    let content = html! {
        (head(&state, &client, &task, &facts(&standing, cost, &usage)))
        div id="questions" data-live="question task" {
            @for one in &asked { (question::card(&state, &client, one)) }
        }
        div.columns {
            div {
                (report(&state, &task, &recorded))
                @if let Some(conversation) = conversation { (conversation) }
                (output_panel(&output, is_cut.then_some("The last part."), folding))
                (message(&client, &task))
            }
            aside { (instruction(&state, &task)) (steps_panel(&recorded, &took(&task, &times))) (commands) (related(&state, &client, &task, &children, &graph)) }
        }
    };
    let title = text::line(&state, &task.subject);
    layout::page(&state, &client, View::Board, &title, content).await
}

/// The agents that it started. Those of other projects are left out even where a record claims
/// them.
async fn children(state: &Shared, id: &TaskId) -> Result<Vec<TaskRecord>, ApiError> {
    let filter = TaskFilter {
        parent_task_id: Some(id.clone()),
        project_roots: state.scope.roots().to_vec(),
        limit: Some(100),
        ..TaskFilter::default()
    };
    Ok(state.store().tasks(filter).await?)
}

/// Its own conversation, or that of the agent that works for it.
fn session_of(task: &TaskRecord, children: &[TaskRecord]) -> Option<SessionId> {
    let latest = children.iter().rev().find_map(TaskRecord::agent);
    let agent = task.agent().or(latest)?;
    Some(agent.agent_session)
}

/// Redacted here, once for all parts of the page that show them.
async fn recorded_steps(state: &Shared, id: &TaskId) -> Result<Vec<(String, Value)>, ApiError> {
    let mut steps = state.store().steps(id).await?;
    for (_, result) in &mut steps {
        state.runtime.redactor().redact_json(result);
    }
    Ok(steps)
}

/// Those of the task and of the agents that work for it.
async fn open_questions(
    state: &Shared,
    task: &TaskRecord,
    children: &[TaskRecord],
) -> Result<Vec<Question>, ApiError> {
    let mut open = layout::open_questions(state).await?;
    open.retain(|question| {
        question.task_id.as_ref().is_some_and(|id| {
            *id == task.task_id || children.iter().any(|child| child.task_id == *id)
        })
    });
    Ok(open)
}

/// The record has the sum of an agent when it is over; until then its conversation has.
async fn spent(state: &Shared, task: &TaskRecord) -> Result<(Cost, Usage), ApiError> {
    match task.agent() {
        Some(agent) if !task.status.is_final() => {
            let session = state.store().session(agent.agent_session).await?;
            Ok((session.cost, session.usage))
        }
        _ => Ok((task.cost_usd, task.usage)),
    }
}

/// What changes most often, in one place: it is replaced at each event.
fn facts(standing: &Markup, cost: Cost, usage: &Usage) -> Markup {
    html! { (standing) span { (text::cost(cost)) } span { (text::tokens(usage)) } }
}

/// Stop is offered while there is something to stop. Retry is offered for runs of the dev agent
/// alone, because only they take over the steps of the attempt before.
fn head(state: &Shared, client: &Client, task: &TaskRecord, facts: &Markup) -> Markup {
    let subject = task.subject.strip_prefix("dev: ").unwrap_or(&task.subject);
    let authority = task.authority.as_ref();
    let project = authority.map(|by| (ProjectKey::of(&by.project_root), by.project_root.clone()));
    let is_dev = matches!(task.spec, Some(TaskSpec::Dev(_)));
    let can_retry = is_dev && matches!(task.status, TaskStatus::Failed | TaskStatus::Killed);
    html! {
        div.head id="head" data-live="task question entry" {
            div {
                h1 { (text::line(state, subject)) }
                p.facts {
                    (facts)
                    span.mono { (task.task_id) }
                    span { (text::type_name(task.task_type)) }
                    @if let Some((key, root)) = &project {
                        a href={ "/board?project=" (key.as_str()) } {
                            (text::clean(state, &root.file_name().unwrap_or_default().to_string_lossy()))
                        }
                    }
                    @if let Some(took) = text::elapsed(task.started_at, task.ended_at) { span { (took) } }
                    @if task.attempt > 1 { span { "attempt " (task.attempt) } }
                    @if let Some(code) = task.exit_code { span { "exit code " (code) } }
                    span { "created " (text::ago(task.created_at)) }
                    @if let Some(page) = state.runtime.engine_page(&task.task_id) {
                        a href=(page) rel="noreferrer" { "in Temporal" }
                    }
                }
                @if let Some(error) = &task.error { p.problem { (text::clean(state, error)) } }
            }
            @if may(client, AccessRole::Write) {
                @if !task.status.is_final() { (board::stop(&task.task_id)) }
                @if can_retry {
                    form data-api={ "/api/v1/tasks/" (task.task_id) "/retry" }
                        data-then="/tasks/{task_id}" method="post" {
                        button { "Retry" } p.problem role="alert" {}
                    }
                }
            }
        }
    }
}

/// What a run came to: its pull request and how it was verified.
fn report(state: &Shared, task: &TaskRecord, recorded: &[(String, Value)]) -> Markup {
    let report = recorded.iter().find(|(name, _)| name == "report");
    let pull = report.map(|(_, report)| &report["pull_request"]);
    let number = pull.and_then(|pull| pull["number"].as_u64());
    let root = task.authority.as_ref().map(|by| &by.project_root);
    html! {
        div id="report" data-live="task" {
            @if let (Some((_, report)), Some(pull), Some(number), Some(root)) = (report, pull, number, root) {
                section.panel aria-labelledby="report-title" {
                    h2 id="report-title" {
                        a href={ "/projects/" (ProjectKey::of(root).as_str()) "/pulls/" (number) } {
                            "Pull request #" (number)
                        }
                        " " (text::line(state, &steps::shown(&pull["title"])))
                    }
                    p.facts {
                        @if pull["draft"] == true { span.status.draft { "draft" } }
                        span.mono { (steps::shown(&report["branch"])) " → " (steps::shown(&report["base"])) }
                        span { (codespar_protocol::counted(report["files"].as_array().map_or(0, Vec::len), "file")) }
                    }
                    (super::markdown::render(report["summary"].as_str().unwrap_or_default()))
                    (steps::verification(report))
                }
            }
        }
    }
}

/// What was asked for, by a person or by the agent that started this one, without secrets.
fn instruction(state: &Shared, task: &TaskRecord) -> Markup {
    let told = match &task.spec {
        Some(TaskSpec::Dev(order)) => Some(order.instruction.as_str()),
        _ => task.agent().map(|agent| agent.prompt.as_str()),
    };
    html! {
        @if let Some(told) = told {
            section.panel aria-labelledby="told-title" {
                h2 id="told-title" { "Instruction" }
                (super::markdown::render(&state.runtime.redactor().redact(told)))
            }
        }
    }
}

/// How long each step took: from the one before it, or from the start.
fn took(task: &TaskRecord, times: &[(String, Timestamp)]) -> HashMap<String, String> {
    let mut before = task.started_at;
    let mut took = HashMap::new();
    for (name, at) in times {
        if let Some(before) = before {
            let millis = at.as_millisecond() - before.as_millisecond();
            took.insert(name.clone(), text::short_time(millis));
        }
        before = Some(*at);
    }
    took
}

/// Marks of the scheduler are on the same record and are not shown.
fn steps_panel(recorded: &[(String, Value)], took: &HashMap<String, String>) -> Markup {
    html! {
        div id="steps" data-live="task output" {
            @if recorded.iter().any(steps::is_shown) {
                section.panel aria-labelledby="steps-title" {
                    h2 id="steps-title" { "Steps" }
                    (steps::list(recorded, took))
                }
            }
        }
    }
}

/// Whether the output is shown at once: a conversation says the same in a better way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Folding {
    Folded,
    Open,
}

/// Empty for a task that has written nothing, with its place on the page kept for when it does.
fn output_panel(output: &str, note: Option<&str>, folding: Folding) -> Markup {
    html! {
        div id="output-part" data-live="task output" {
            @if !output.is_empty() {
                section.panel aria-labelledby="output-title" {
                    details id="output-details" open[folding == Folding::Open] {
                        summary { h2.inline id="output-title" { "Output" } }
                        @if let Some(note) = note { p.note { (note) } }
                        pre.output id="output" tabindex="0" aria-labelledby="output-title" role="region" { (output) }
                    }
                }
            }
        }
    }
}

/// Only a task that runs an agent can be written to; a message to one that has ended makes it run
/// again.
fn message(client: &Client, task: &TaskRecord) -> Markup {
    html! {
        @if may(client, AccessRole::Write) && task.runs_agent() {
            section.panel aria-label="Message" {
                form data-api={ "/api/v1/tasks/" (task.task_id) "/messages" } data-done="Sent" method="post" {
                    label for="message" { "Message to the agent" }
                    textarea id="message" name="message" required maxlength="100000" {}
                    div.row { button.primary { "Send" } }
                    p.problem role="alert" {}
                }
            }
        }
    }
}

/// Absent where the task stands alone, which most do.
fn related(
    state: &Shared,
    client: &Client,
    task: &TaskRecord,
    children: &[TaskRecord],
    graph: &Markup,
) -> Markup {
    let ids = |title: &str, ids: &[TaskId]| {
        html! {
            @if !ids.is_empty() {
                p { (title) " " @for id in ids { a.mono href={ "/tasks/" (id) } { (id) } " " } }
            }
        }
    };
    let is_alone = children.is_empty()
        && task.blocks.is_empty()
        && task.blocked_by.is_empty()
        && task.parent_task_id.is_none();
    html! {
        div id="related" data-live="task" {
            @if !is_alone {
                section.panel aria-labelledby="related-title" {
                    h2 id="related-title" { "Related tasks" }
                    (graph)
                    @if let Some(parent) = &task.parent_task_id { (ids("Started by", std::slice::from_ref(parent))) }
                    (ids("Waits for", &task.blocked_by))
                    (ids("Needed by", &task.blocks))
                    ul.cards { @for child in children { (board::card(state, client, child, &text::status(child.status))) } }
                }
            }
        }
    }
}
