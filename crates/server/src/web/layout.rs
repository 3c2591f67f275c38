//! What all pages have in common: head, navigation, keys.

use axum::response::Html;
use codespar_protocol::{AccessRole, Question};
use codespar_store::QuestionFilter;
use jiff::Timestamp;
use maud::{DOCTYPE, Markup, html};

use super::assets;
use crate::{access::Client, error::ApiError, providers::shown_name, state::Shared};

/// The views of the navigation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum View {
    Inbox,
    Board,
    Chat,
    Pulls,
    Usage,
    Health,
    Audit,
    /// Not in the navigation.
    Link,
}

impl View {
    /// The role that it needs.
    fn role(self) -> AccessRole {
        match self {
            Self::Audit => AccessRole::Admin,
            _ => AccessRole::Read,
        }
    }

    /// Address, name, key.
    const ALL: [(Self, &'static str, &'static str, char); 7] = [
        (Self::Inbox, "/", "Inbox", 'i'),
        (Self::Board, "/board", "Board", 'b'),
        (Self::Chat, "/chat", "Chat", 'c'),
        (Self::Pulls, "/pulls", "Pull requests", 'p'),
        (Self::Usage, "/usage", "Usage", 'u'),
        (Self::Health, "/health", "Health", 'h'),
        (Self::Audit, "/audit", "Audit", 'a'),
    ];
}

/// Open questions of the projects of this server, oldest first. Those whose time is up count as
/// answered.
pub(super) async fn open_questions(state: &Shared) -> Result<Vec<Question>, ApiError> {
    let now = Timestamp::now();
    let mut questions = state.store().questions(QuestionFilter::Open).await?;
    questions.retain(|question| {
        question.expires_at > now && state.scope.roots().contains(&question.project_root)
    });
    Ok(questions)
}

/// Whether the client may do what needs a role. The API checks again.
pub(super) fn may(client: &Client, role: AccessRole) -> bool {
    client.token.role.allows(role)
}

/// A whole page of somebody who is signed in.
pub(super) async fn page(
    state: &Shared,
    client: &Client,
    view: View,
    title: &str,
    content: Markup,
) -> Result<Html<String>, ApiError> {
    let waiting = open_questions(state).await?.len();
    let whole = html! {
        (DOCTYPE)
        html lang="en" {
            (head(title))
            body {
                a.skip href="#main" { "Skip to content" }
                (header(client, view, waiting))
                main id="main" tabindex="-1" { (content) }
                (keys())
                div id="announce" class="hidden" role="status" aria-live="polite" {}
            }
        }
    };
    Ok(Html(whole.into_string()))
}

fn head(title: &str) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            title { (title) " · CodeSpar" }
            link rel="icon" type="image/svg+xml" href=(assets::address("icon.svg"));
            link rel="stylesheet" href=(assets::address("style.css"));
            // Before the first paint, so that the chosen colours are there from the start.
            script src=(assets::address("theme.js")) {}
            script type="module" src=(assets::address("app.js")) {}
        }
    }
}

fn header(client: &Client, view: View, waiting: usize) -> Markup {
    html! {
        header.top {
            a.brand href="/" { img src=(assets::address("icon.svg")) alt="" width="20" height="20"; "CodeSpar" }
            nav aria-label="Views" {
                @for (one, address, name, key) in View::ALL.into_iter().filter(|(one, ..)| may(client, one.role())) {
                    a href=(address) data-key=(key) aria-current=[(one == view).then_some("page")] {
                        (name)
                        @if one == View::Inbox {
                            span id="badge" class={ "badge" @if waiting == 0 { " none" } }
                                data-live="question" {
                                (waiting) span.hidden { " waiting" }
                            }
                        }
                    }
                }
            }
            div.who {
                span id="connection" class="connection" role="status" { }
                button.plain type="button" data-notify hidden title="Tell me when something waits" { "Notify" }
                button.plain type="button" data-theme-switch title="Light or dark (t)" { "Theme" }
                button.plain type="button" data-show-keys title="Keys (?)" { "?" span.hidden { " Keys" } }
                span.role title={ "Role " (client.token.role) } { (codespar_runtime::printable(&shown_name(&client.token.name))) }
                form method="post" action="/logout" { button.plain { "Sign out" } }
            }
        }
    }
}

fn keys() -> Markup {
    html! {
        dialog id="keys" aria-labelledby="keys-title" {
            h2 id="keys-title" { "Keys" }
            dl {
                @for (_, _, name, key) in View::ALL { dt { kbd { (key) } } dd { (name) } }
                dt { kbd { "n" } } dd { "New task" }
                dt { kbd { "/" } } dd { "Search" }
                dt { kbd { "j" } " " kbd { "k" } } dd { "Next and previous item" }
                dt { kbd { "x" } } dd { "Select the item" }
                dt { kbd { "Enter" } } dd { "Open the item" }
                dt { kbd { "t" } } dd { "Light or dark" }
                dt { kbd { "?" } } dd { "This list" }
            }
            form method="dialog" { button { "Close" } }
        }
    }
}

/// A page without navigation: signing in, errors.
pub(super) fn bare(title: &str, content: &Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            (head(title))
            body.bare { main id="main" { (content) } }
        }
    }
}
