//! A conversation in the browser: what was said in a thread, with buttons, and the box to say more.
//!
//! The same core as in chat channels decides what a line means and who may say it; this view only shows
//! the record of the thread. A button says its value in the thread, as a reply to its message.

use axum::{extract::State, response::Html};
use codespar_channels::{Verb, WEB};
use maud::{Markup, html};
use serde::Deserialize;

use super::{
    board,
    layout::{self, View},
    text,
};
use crate::{
    access::Client,
    api::{EntryAuthor, Params, ThreadEntry, is_name, thread_entries},
    error::ApiError,
    state::Shared,
};

const MOST_MESSAGES: u32 = 200;
/// Of so many messages of the conversation, the threads are listed.
const LOOKED_AT: u32 = 300;
const MOST_THREADS: usize = 20;
const FIRST_THREAD: &str = "main";

/// Where; kept in the address.
#[derive(Deserialize, Default)]
pub(crate) struct ChatParams {
    #[serde(default)]
    project: String,
    #[serde(default)]
    thread: String,
}

pub(crate) async fn show(
    State(state): State<Shared>,
    client: Client,
    Params(params): Params<ChatParams>,
) -> Result<Html<String>, ApiError> {
    let projects = board::projects(&state);
    let project = match (params.project.as_str(), projects.first()) {
        ("", Some((key, _))) => key.clone(),
        (key, _) => {
            state.scope.root_by_key(key)?;
            key.to_owned()
        }
    };
    let thread = match params.thread.as_str() {
        "" => FIRST_THREAD,
        name if is_name(name) => name,
        _ => return Err(ApiError::bad_request("there is no such thread")),
    };
    let messages = thread_entries(&state, &project, thread, MOST_MESSAGES).await?;
    let threads = threads(&state, &project).await?;
    let place = Place {
        project: &project,
        thread,
    };
    let content = html! {
        h1 { "Chat" }
        (filters(&projects, &place, &threads))
        section.panel aria-label="Conversation" {
            div id="conversation" data-live="message" {
                div.log.scrolled id="log" tabindex="0" role="region" aria-label="Messages" {
                    @if messages.is_empty() {
                        p.empty { "Say " code { "help" } " to see the commands, or what is to be done: "
                            code { "fix the typo in README.md" } }
                    }
                    @for one in &messages { (message(&state, &place, one)) }
                }
            }
            form data-api="/api/v1/commands?wait=1" data-stay data-done="Said" method="post" {
                label for="instruction" { "Message" }
                (hidden(&place))
                div.row {
                    (command_box("help"))
                    input.hidden id="images" name="images" type="file" multiple
                        accept="image/png,image/jpeg,image/gif,image/webp" aria-describedby="chosen";
                    label.button for="images" { "Picture" }
                    button.primary { "Send" }
                    p.note id="chosen" data-files="images" {}
                    p.problem role="alert" {}
                }
            }
        }
    };
    layout::page(&state, &client, View::Chat, "Chat", content).await
}

struct Place<'a> {
    project: &'a str,
    thread: &'a str,
}

fn hidden(place: &Place<'_>) -> Markup {
    html! {
        input type="hidden" name="project" value=(place.project);
        input type="hidden" name="thread" value=(place.thread);
    }
}

/// The box for a line of the chat grammar; verbs are completed.
pub(super) fn command_box(example: &str) -> Markup {
    html! {
        input.grow id="instruction" name="text" type="text" list="verbs" autocomplete="off" required
            maxlength="20000" placeholder=(example);
        datalist id="verbs" {
            @for verb in Verb::ALL { option value={ (verb) " " } { (verb.usage()) ": " (verb.description()) } }
        }
    }
}

/// Threads of a conversation, the one with the latest message first.
async fn threads(state: &Shared, project: &str) -> Result<Vec<String>, ApiError> {
    let sent = state.store().sent_to(WEB, project, LOOKED_AT).await?;
    let mut threads: Vec<String> = Vec::new();
    for row in sent.into_iter().rev() {
        if threads.len() < MOST_THREADS && !threads.contains(&row.at.thread) {
            threads.push(row.at.thread);
        }
    }
    Ok(threads)
}

fn filters(projects: &[(String, String)], place: &Place<'_>, threads: &[String]) -> Markup {
    let is_listed = threads.iter().any(|one| one == place.thread);
    html! {
        form.filters method="get" action="/chat" data-auto aria-label="Thread" {
            @if projects.len() > 1 {
                label { "Project"
                    select name="project" {
                        @for (key, name) in projects { option value=(key) selected[key == place.project] { (name) } }
                    }
                }
            }
            label { "Thread"
                select name="thread" {
                    @if !is_listed { option value=(place.thread) selected { (place.thread) } }
                    @for name in threads { option value=(name) selected[name == place.thread] { (name) } }
                }
            }
            noscript { button { "Show" } }
        }
    }
}

fn message(state: &Shared, place: &Place<'_>, one: &ThreadEntry) -> Markup {
    let (class, name) = match one.from {
        EntryAuthor::Person => ("entry user", one.name.as_deref().unwrap_or("somebody")),
        EntryAuthor::Codespar => ("entry", "CodeSpar"),
    };
    html! {
        article class=(class) data-state=(one.state) {
            header {
                b { (text::clean(state, name)) }
                span { (text::ago(one.created_at)) }
                @if one.revision > 1 { span { "edited" } }
                @if one.state == "queued" { span { "queued" } }
                @if let Some(task) = &one.task_id { a.mono href={ "/tasks/" (task) } { (task) } }
            }
            @for name in &one.images { p.note { "Picture: " (text::clean(state, name)) } }
            p.said { (linked(&text::clean(state, &one.text), place.project)) }
            @if !one.choices.is_empty() {
                div.row {
                    @for choice in &one.choices {
                        form data-api="/api/v1/commands?wait=1" data-done="Said" method="post" {
                            (hidden(place))
                            input type="hidden" name="reply_to" value=(one.id);
                            input type="hidden" name="text" value=(choice.value);
                            button { (text::clean(state, &choice.label)) }
                            p.problem role="alert" {}
                        }
                    }
                }
            }
        }
    }
}

/// `PR #3` leads to its page.
fn linked(said: &str, project: &str) -> Markup {
    let mut parts = said.split("PR #");
    let first = parts.next().unwrap_or_default();
    html! {
        (first)
        @for part in parts {
            @let digits = part.bytes().take_while(u8::is_ascii_digit).count();
            @let (number, rest) = part.split_at(digits);
            @if number.is_empty() || number.len() > 9 { "PR #" (part) }
            @else {
                a href={ "/projects/" (project) "/pulls/" (number) } { "PR #" (number) }
                (rest)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pull_requests_in_a_text_are_links_and_markup_is_not() {
        let shown = linked("<b>PR #12 is ready; PR #x", "k").into_string();
        assert_eq!(
            shown,
            "&lt;b&gt;<a href=\"/projects/k/pulls/12\">PR #12</a> is ready; PR #x"
        );
    }
}
