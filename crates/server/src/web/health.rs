//! How much there is to do, who does it, versions, projects.
//!
//! The page is for whoever asks why nothing happens: it tells tasks that are ready, and that a worker
//! could take now, from those that wait for something else, and names each process with its signs of
//! life. It reads the store and starts nothing.

use axum::{extract::State, response::Html};
use maud::{Markup, html};

use super::{
    board, fleet,
    layout::{self, View},
    text,
};
use crate::{
    access::Client,
    error::ApiError,
    fleet::VisibleFleet,
    state::{Shared, WorkerState},
};

pub(crate) async fn show(
    State(state): State<Shared>,
    client: Client,
) -> Result<Html<String>, ApiError> {
    let left = state.store().outstanding().await?;
    let oldest = state.store().oldest_ready().await?;
    let visible = VisibleFleet::now(&state).await?;
    let here = state.runtime.workload().borrow().tasks;
    let content = html! {
        h1 { "Health" }
        div id="health" data-live="task" {
            div.tiles {
                div.tile { b { (left.running) } span { "running" } }
                div.tile { b { (left.ready) } span { "ready to run" } }
                div.tile { b { (left.pending) } span { "not begun" } }
                div.tile { b { (state.events.clients()) } span { "event streams" } }
            }
            @if let Some(at) = oldest { p.note { "The task that has waited for longest became ready " (text::ago(at)) "." } }
            section.panel aria-labelledby="server-title" {
                h2 id="server-title" { "Server" }
                table { tbody {
                    (fact("Version", env!("CARGO_PKG_VERSION")))
                    (fact("Running for", &text::duration(state.began.elapsed().as_secs() as i64)))
                    (fact("Runs tasks", match state.worker { WorkerState::Here => "yes", WorkerState::Elsewhere => "no, a worker does" }))
                    (fact("Tasks in this process", &here.to_string()))
                } }
            }
            (fleet::panels(&state, &visible))
            (projects(&state))
        }
    };
    layout::page(&state, &client, View::Health, "Health", content).await
}

fn fact(name: &str, value: &str) -> Markup {
    html! { tr { th { (name) } td { (value) } } }
}

/// In the order of the scope, which the keys are made from as well, so each root goes with its own
/// key.
fn projects(state: &Shared) -> Markup {
    let roots = state.scope.roots().iter();
    html! {
        section.panel aria-labelledby="projects-title" {
            h2 id="projects-title" { "Projects" }
            ul.list {
                @for ((key, name), root) in board::projects(state).iter().zip(roots) {
                    li {
                        a.grow href={ "/board?project=" (key) } { (name) }
                        @match state.runtime.project_at(root) {
                            Ok(project) => {
                                span.note.mono { (text::clean(state, &project.provider.choice.id)) }
                                @if project.provider.is_simulated() { span.status.waiting { "simulated" } }
                            }
                            Err(error) => span.problem { (text::clean(state, &error.to_string())) },
                        }
                    }
                }
            }
        }
    }
}
