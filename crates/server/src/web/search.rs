//! Search in conversations: the latest ones, by a text.
//!
//! What is found is compared again without its secrets: a search tells nobody whether a secret that
//! they guess is in a conversation.

use axum::{extract::State, response::Html};
use codespar_protocol::SessionId;
use codespar_store::{SessionPage, TaskFilter};
use jiff::Timestamp;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::{
    layout::{self, View},
    text,
};
use crate::{access::Client, api::Params, error::ApiError, state::Shared};

/// Conversations that are looked at.
const SESSIONS: u32 = 100;
const HITS: usize = 50;
const HITS_OF_SESSION: u32 = 3;
const SHORTEST: usize = 2;
const LONGEST: usize = 200;
/// Characters before and after what was found.
const AROUND: usize = 90;

#[derive(Deserialize, Default)]
pub(crate) struct SearchParams {
    #[serde(default)]
    q: String,
}

/// A place where the text is.
struct Hit {
    /// The page of the conversation.
    address: String,
    seq: u64,
    at: Timestamp,
    before: String,
    found: String,
    after: String,
}

pub(crate) async fn show(
    State(state): State<Shared>,
    client: Client,
    Params(params): Params<SearchParams>,
) -> Result<Html<String>, ApiError> {
    let wanted = params.q.trim();
    let length = wanted.chars().count();
    let hits = match length {
        SHORTEST..=LONGEST => search(&state, wanted).await?,
        _ => Vec::new(),
    };
    let content = html! {
        h1 { "Search" }
        form.filters method="get" action="/search" role="search" {
            label for="search" { "In the latest conversations" }
            input type="text" id="search" name="q" value=(wanted) minlength=(SHORTEST) maxlength=(LONGEST) required;
            button.primary { "Search" }
        }
        @if !wanted.is_empty() {
            section.panel aria-label="Results" {
                @if hits.is_empty() { p.empty { "Nothing was found in the latest conversations." } }
                ul.list { @for hit in &hits { (result(hit)) } }
                @if hits.len() == HITS { p.note { "There may be more; a longer text finds fewer." } }
            }
        }
    };
    layout::page(&state, &client, View::Board, "Search", content).await
}

fn result(hit: &Hit) -> Markup {
    html! {
        li data-item {
            div.grow {
                a href=(hit.address) { "Entry " (hit.seq) }
                p.said { (hit.before) mark { (hit.found) } (hit.after) }
            }
            span.note { (text::ago(hit.at)) }
        }
    }
}

/// In the latest conversations, a few hits of each, so that one long conversation does not hide the
/// others. How much is read is bounded, whatever is searched for.
async fn search(state: &Shared, wanted: &str) -> Result<Vec<Hit>, ApiError> {
    let mut hits = Vec::new();
    for (session, page) in sessions(state).await? {
        let found = state.store().find_entries(session, wanted, HITS_OF_SESSION);
        for entry in found.await? {
            let mut body = serde_json::to_value(&entry.body).unwrap_or_default();
            state.runtime.redactor().redact_json(&mut body);
            let mut said = String::new();
            collect(&body, &mut said);
            let Some((before, found, after)) = around(&said, wanted) else {
                continue;
            };
            let clean = |part: &str| codespar_runtime::printable(part).into_owned();
            hits.push(Hit {
                address: format!("{page}#e-{}", entry.seq),
                seq: entry.seq,
                at: entry.at,
                before: clean(before),
                found: clean(found),
                after: clean(after),
            });
            if hits.len() == HITS {
                return Ok(hits);
            }
        }
    }
    Ok(hits)
}

/// The latest conversations of the projects, those of agents too, each with its page.
async fn sessions(state: &Shared) -> Result<Vec<(SessionId, String)>, ApiError> {
    let filter = TaskFilter {
        project_roots: state.scope.roots().to_vec(),
        limit: Some(SESSIONS),
        ..TaskFilter::default()
    };
    let mut found: Vec<(SessionId, String)> = Vec::new();
    for task in state.store().tasks(filter).await?.iter().rev() {
        if let Some(agent) = task.agent() {
            found.push((agent.agent_session, format!("/tasks/{}", task.task_id)));
        }
    }
    let page = SessionPage {
        roots: state.scope.roots().to_vec(),
        before: None,
        limit: SESSIONS,
    };
    for session in state.store().sessions_page(page).await? {
        if found.iter().all(|(known, _)| *known != session.id) {
            found.push((session.id, format!("/sessions/{}", session.id)));
        }
    }
    Ok(found)
}

/// All texts of an entry.
fn collect(value: &Value, said: &mut String) {
    match value {
        Value::String(text) => {
            said.push_str(text);
            said.push('\n');
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, said)),
        Value::Object(fields) => fields.values().for_each(|item| collect(item, said)),
        _ => {}
    }
}

/// The text that was found, whatever its case, with some of what is around it.
fn around<'a>(said: &'a str, wanted: &str) -> Option<(&'a str, &'a str, &'a str)> {
    let starts = |(at, _): &(usize, char)| {
        let rest = said[*at..].chars().flat_map(char::to_lowercase);
        let mut wanted = wanted.chars().flat_map(char::to_lowercase);
        let mut rest = rest.take(LONGEST * 3);
        wanted.all(|c| rest.next() == Some(c))
    };
    let (at, _) = said.char_indices().find(starts)?;
    let length = |count: usize, text: &str| {
        text.char_indices()
            .nth(count)
            .map_or(text.len(), |(at, _)| at)
    };
    let end = at + length(wanted.chars().count(), &said[at..]);
    let before = said[..at].char_indices().rev().take(AROUND).last();
    let from = before.map_or(at, |(at, _)| at);
    let until = end + length(AROUND, &said[end..]);
    Some((&said[from..at], &said[at..end], &said[end..until]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_in_any_case_and_cut_between_characters() {
        assert_eq!(around("der Größte", "GRÖß"), Some(("der ", "Größ", "te")));
        assert_eq!(around("abc", "x"), None);
        let long = format!("{}needle{}", "ä".repeat(500), "ö".repeat(500));
        let (before, found, after) = around(&long, "needle").unwrap_or_default();
        assert_eq!(
            (before.chars().count(), found, after.chars().count()),
            (AROUND, "needle", AROUND)
        );
    }
}
