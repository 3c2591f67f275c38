//! Pull requests of all projects.
//!
//! Projects are asked one after the other, each at its own forge, and a section is shown for each.
//! There is no page of all of them by date: numbers of pull requests mean something within one
//! repository only.

use axum::{extract::State, response::Html};
use codespar_protocol::PullRequestState;
use maud::{Markup, html};
use serde::Deserialize;

use super::{
    board,
    layout::{self, View},
    text,
};
use crate::{
    access::Client,
    api::{Params, reach_pulls},
    error::ApiError,
    state::Shared,
};

/// Shown for one project; a forge lists the latest first.
const MOST: usize = 100;

/// The filter, as the address has it. A word that is not known means the open ones, so that an old
/// bookmark still shows something.
#[derive(Deserialize, Default)]
pub(crate) struct PullParams {
    #[serde(default)]
    state: String,
}

pub(crate) async fn show(
    State(state): State<Shared>,
    client: Client,
    Params(params): Params<PullParams>,
) -> Result<Html<String>, ApiError> {
    let wanted = match params.state.as_str() {
        "merged" => Some(PullRequestState::Merged),
        "all" => None,
        _ => Some(PullRequestState::Open),
    };
    let mut sections = Vec::new();
    for (key, name) in board::projects(&state) {
        sections.push(project(&state, &key, &name, wanted).await);
    }
    let content = html! {
        h1 { "Pull requests" }
        form.filters method="get" action="/pulls" data-auto aria-label="Filters" {
            label { "State"
                select name="state" {
                    @for name in ["open", "merged", "all"] {
                        option value=(name) selected[name == params.state] { (name) }
                    }
                }
            }
            noscript { button { "Filter" } }
        }
        div id="pulls" data-live="task" { @for section in &sections { (section) } }
    };
    layout::page(&state, &client, View::Pulls, "Pull requests", content).await
}

/// A forge that cannot be reached does not hide those of other projects.
async fn project(
    state: &Shared,
    key: &str,
    name: &str,
    wanted: Option<PullRequestState>,
) -> Markup {
    let found = async {
        let pulls = reach_pulls(state, key).await?;
        Ok::<_, ApiError>(pulls.forge().pull_requests(wanted).await?)
    };
    html! {
        section.panel aria-labelledby={ "project-" (key) } {
            h2 id={ "project-" (key) } { (name) }
            @match found.await {
                Err(error) => p.problem { (text::clean(state, error.message())) },
                Ok(found) if found.is_empty() => p.empty { "None." },
                Ok(found) => ul.list {
                    @for pull in found.iter().take(MOST) {
                        @let word = if pull.draft && pull.state == PullRequestState::Open { "draft" } else { pull.state.as_str() };
                        li data-item {
                            span class={ "status " (word) } { (word) }
                            div.grow {
                                a href={ "/projects/" (key) "/pulls/" (pull.number) } {
                                    "#" (pull.number) " " (text::line(state, &pull.title))
                                }
                                div.note.mono { (text::line(state, &pull.head)) " → " (text::line(state, &pull.base)) }
                            }
                            span.note { (text::ago(pull.updated_at)) }
                        }
                    }
                },
            }
        }
    }
}
