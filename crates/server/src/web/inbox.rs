//! What waits for a person, across projects: questions, drafts, runs that failed.
//!
//! The inbox is what a person looks at first, so nothing on it may hold it up: forges are asked for
//! a limited time, all together, and one that does not answer is left out. A failed run leaves the
//! inbox when it is begun again, or after a week.

use std::time::Duration;

use axum::{extract::State, response::Html};
use codespar_protocol::{
    AccessRole, PullRequest, PullRequestState, TaskRecord, TaskSpec, TaskStatus, TaskType,
};
use codespar_store::TaskFilter;
use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use maud::{Markup, html};

use super::{
    layout::{self, View, may},
    question, text,
};
use crate::{access::Client, api::reach_pulls, error::ApiError, scope::ProjectKey, state::Shared};

/// Older failures are history.
const DAYS: i64 = 7;
/// A page of failures is read by nobody; the board has the others.
const MOST_FAILED: usize = 20;
/// A forge that does not answer does not hold up the page.
const FORGE_TIME: Duration = Duration::from_secs(2);

/// The number of questions is in the title, where a tab in the background shows it.
pub(crate) async fn show(
    State(state): State<Shared>,
    client: Client,
) -> Result<Html<String>, ApiError> {
    let questions = layout::open_questions(&state).await?;
    let failed = failed_runs(&state).await?;
    let pulls = open_pulls(&state).await;
    let is_empty = questions.is_empty() && failed.is_empty() && pulls.is_empty();
    let content = html! {
        h1 { "Inbox" }
        div id="waiting" data-live="question task" {
            @if is_empty { p.panel.empty { "Nothing waits for you." } }
            @for one in &questions { (question::card(&state, &client, one)) }
            @if !failed.is_empty() {
                section.panel aria-labelledby="failed-title" {
                    h2 id="failed-title" { "Failed runs" }
                    ul.list { @for task in &failed { (failed_run(&state, &client, task)) } }
                }
            }
            @if !pulls.is_empty() {
                section.panel aria-labelledby="pulls-title" {
                    h2 id="pulls-title" { "Pull requests to look at" }
                    ul.list { @for (key, pull) in &pulls { (open_pull(&state, key, pull)) } }
                }
            }
        }
    };
    let title = match questions.len() {
        0 => "Inbox".to_owned(),
        count => format!("({count}) Inbox"),
    };
    layout::page(&state, &client, View::Inbox, &title, content).await
}

/// Runs of the last days that failed and were not begun again since.
async fn failed_runs(state: &Shared) -> Result<Vec<TaskRecord>, ApiError> {
    let filter = |status| TaskFilter {
        status,
        task_type: Some(TaskType::LocalWorkflow),
        project_roots: state.scope.roots().to_vec(),
        limit: Some(200),
        ..TaskFilter::default()
    };
    let latest = state.store().tasks(filter(None)).await?;
    let resumed: Vec<_> = latest
        .iter()
        .filter_map(|task| match &task.spec {
            Some(TaskSpec::Dev(order)) => Some(order.resumes.clone()),
            _ => None,
        })
        .flatten()
        .collect();
    let since = Timestamp::now() - SignedDuration::from_hours(24 * DAYS);
    let mut failed = state
        .store()
        .tasks(filter(Some(TaskStatus::Failed)))
        .await?;
    failed.retain(|task| {
        task.updated_at > since && task.parent_task_id.is_none() && !resumed.contains(&task.task_id)
    });
    failed.reverse();
    failed.truncate(MOST_FAILED);
    Ok(failed)
}

/// A retry leads to the page of the new task.
fn failed_run(state: &Shared, client: &Client, task: &TaskRecord) -> Markup {
    html! {
        li data-item {
            (text::status(task.status))
            div.grow {
                a href={ "/tasks/" (task.task_id) } { (text::line(state, &task.subject)) }
                @if let Some(error) = &task.error { div.note { (text::line(state, error)) } }
            }
            span.note { (text::ago(task.updated_at)) }
            @if may(client, AccessRole::Write) && matches!(task.spec, Some(TaskSpec::Dev(_))) {
                form data-api={ "/api/v1/tasks/" (task.task_id) "/retry" } data-then="/tasks/{task_id}"
                    method="post" { button { "Retry" } p.problem role="alert" {} }
            }
        }
    }
}

/// Open pull requests of all projects, as far as their forges answer.
async fn open_pulls(state: &Shared) -> Vec<(String, PullRequest)> {
    let of_project = async |key: String| {
        let pulls = reach_pulls(state, &key).await.ok()?;
        let listed = pulls.forge().pull_requests(Some(PullRequestState::Open));
        let listed = listed.await.ok()?;
        Some(listed.into_iter().map(move |pull| (key.clone(), pull)))
    };
    let all = state.scope.roots().iter().map(|root| {
        let key = ProjectKey::of(root).as_str().to_owned();
        tokio::time::timeout(FORGE_TIME, of_project(key))
    });
    let found = join_all(all).await.into_iter();
    found.filter_map(Result::ok).flatten().flatten().collect()
}

fn open_pull(state: &Shared, key: &str, pull: &PullRequest) -> Markup {
    html! {
        li data-item {
            span class={ "status " (if pull.draft { "draft" } else { "open" }) } {
                (if pull.draft { "draft" } else { "open" })
            }
            div.grow {
                a href={ "/projects/" (key) "/pulls/" (pull.number) } {
                    "#" (pull.number) " " (text::line(state, &pull.title))
                }
                div.note.mono { (text::line(state, &pull.head)) }
            }
            span.note { (text::ago(pull.updated_at)) }
        }
    }
}
