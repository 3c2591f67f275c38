//! Linking a chat account with the account at GitHub that somebody signed in with.
//!
//! Whoever opens the page links accounts with their own; the last step shows which one, and is theirs.

use axum::{
    Form,
    extract::State,
    response::{Html, IntoResponse, Redirect, Response},
};
use codespar_channels::{ClaimedAccount, LinkOwner, PendingLink};
use codespar_runtime::SignedIn;
use codespar_store::ChannelPerson;
use maud::{Markup, html};
use serde::Deserialize;

use super::{
    layout::{self, View},
    text,
};
use crate::{access::Client, error::ApiError, providers::SignInProvider, state::Shared};

/// The account at GitHub of somebody who signed in there.
fn owner(state: &Shared, client: &Client) -> Option<LinkOwner> {
    let (provider, person) = SignedIn::of_token(&client.token.name)?;
    let provider = state.providers.named(provider)?;
    provider.is_github().then(|| LinkOwner {
        token: client.token.id.clone(),
        name: client.token.name.clone(),
        login: person.shown().to_owned(),
    })
}

/// Signing in there is what makes the page useful; without it there is none.
fn github(state: &Shared) -> Result<&SignInProvider, ApiError> {
    let mut all = state.providers.all().iter();
    all.find(|one| one.is_github())
        .ok_or_else(|| ApiError::not_found("nobody signs in at GitHub here"))
}

pub(crate) async fn show(
    State(state): State<Shared>,
    client: Client,
) -> Result<Html<String>, ApiError> {
    let provider = github(&state)?;
    let content = match owner(&state, &client) {
        None => html! {
            h1 { "Link a chat account" }
            p { "Sign in with " (provider.label) " to link a chat account with yours there." }
            p { a.button.primary href=(state.providers.start_address(provider, "/link")) { "Sign in with " (provider.label) } }
        },
        Some(owner) => {
            let people = state.store().people().await?;
            let is_own = |one: &ChannelPerson| {
                let login = one.forge_login.as_deref().unwrap_or_default();
                login.eq_ignore_ascii_case(&owner.login)
            };
            let linked: Vec<ChannelPerson> = people.into_iter().filter(is_own).collect();
            let pending = state.core.pending_link(&owner.token);
            html! {
                h1 { "Link a chat account" }
                (accounts(&state, &owner, &linked))
                section.panel aria-label="Link an account" { (step(&state, &owner, pending.as_ref())) }
            }
        }
    };
    layout::page(&state, &client, View::Link, "Link a chat account", content).await
}

fn accounts(state: &Shared, owner: &LinkOwner, linked: &[ChannelPerson]) -> Markup {
    html! {
        p { "You are " b { (owner.login) } " at GitHub. A linked chat account may do what you may do there." }
        @if !linked.is_empty() {
            ul { @for one in linked { li { (one.channel) " " code { (text::clean(state, &one.user_id)) } } } }
        }
    }
}

/// What is to be done next.
fn step(state: &Shared, owner: &LinkOwner, pending: Option<&PendingLink>) -> Markup {
    match pending {
        None => html! {
            p { "Get a code and write it in the chat, from your own account." }
            form method="post" action="/link" { button.primary { "Get a code" } }
        },
        Some(PendingLink { code, claim: None }) => html! {
            p { "Write this in the chat, from your own account, within ten minutes:" }
            pre { "@codespar whoami " (code) }
            p.note { "Give the code to nobody: whoever writes it asks for your rights." }
            p { a.button href="/link" { "I have written it" } }
        },
        Some(PendingLink {
            code,
            claim: Some(account),
        }) => html! {
            p { "This account wrote the code:" }
            p { b { (text::clean(state, &account.name)) } " " code { (text::clean(state, &account.user)) } " in " (account.channel) }
            p { "Is it yours? It will be able to do what " b { (owner.login) } " can do." }
            div.row {
                form method="post" action="/link/confirm" {
                    input type="hidden" name="code" value=(code);
                    input type="hidden" name="channel" value=(account.channel);
                    input type="hidden" name="user" value=(account.user);
                    button.primary { "It is mine: link it" }
                }
                form method="post" action="/link" { button { "No: get another code" } }
            }
        },
    }
}

/// Gives a code; one before ends.
pub(crate) async fn begin(
    State(state): State<Shared>,
    client: Client,
) -> Result<Response, ApiError> {
    let owner = owner(&state, &client).ok_or_else(not_signed_in)?;
    state.core.begin_link(owner).map_err(ApiError::internal)?;
    Ok(Redirect::to("/link").into_response())
}

/// The account that the person saw.
#[derive(Deserialize)]
pub(crate) struct ConfirmForm {
    code: String,
    channel: String,
    user: String,
}

/// Links it.
pub(crate) async fn confirm(
    State(state): State<Shared>,
    client: Client,
    Form(form): Form<ConfirmForm>,
) -> Result<Response, ApiError> {
    let owner = owner(&state, &client).ok_or_else(not_signed_in)?;
    let shown = ClaimedAccount {
        channel: form.channel,
        user: form.user,
        name: String::new(),
    };
    let is_linked = state.core.confirm_link(&owner.token, &form.code, &shown);
    match is_linked.await? {
        true => Ok(Redirect::to("/link").into_response()),
        false => Err(ApiError::conflict(
            "link",
            "this code is too old, or another account wrote it; get a new one",
        )),
    }
}

fn not_signed_in() -> ApiError {
    ApiError::forbidden("sign_in", "sign in with GitHub to link a chat account")
}
