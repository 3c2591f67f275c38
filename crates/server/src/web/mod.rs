//! The pages of a browser: which address shows which view.
//!
//! Every view is rendered here, on the server. The script fetches the address of the view again when
//! something has changed and replaces the parts that are marked as live; it has no templates of its
//! own. What a page does (answer, stop, merge) goes through the API, with its checks.
//!
//! ```text
//! gate.rs        who is signed in; errors as pages
//! layout.rs      head, navigation, footer
//! text.rs        text from outside: without secrets and without characters that mislead
//! markdown.rs    what models write, as HTML of our own making
//! diff.rs        changes in colour
//! ```

mod assets;
mod audit;
mod board;
mod chart;
mod chat;
mod commands;
mod diff;
mod fleet;
mod gate;
mod graph;
mod health;
mod inbox;
mod layout;
mod link;
mod markdown;
mod picture;
mod provider_sign_in;
mod pull;
mod pull_list;
mod question;
mod search;
mod sign_in;
mod steps;
mod task;
mod text;
mod tool_call;
mod transcript;
mod usage;

use axum::{
    Router,
    middleware::from_fn_with_state,
    routing::{get, post},
};

use crate::{access, state::Shared};

/// Everything that is not the API.
pub(crate) fn pages(state: &Shared) -> Router<Shared> {
    let for_admins = Router::new()
        .route("/audit", get(audit::show))
        .route_layer(from_fn_with_state(state.clone(), access::require_admin))
        .route_layer(axum::middleware::from_fn(gate::as_page));
    let views = Router::new()
        .route("/", get(inbox::show))
        .route("/board", get(board::show))
        .route("/chat", get(chat::show))
        .route("/tasks/{id}", get(task::show))
        .route("/sessions/{id}", get(transcript::show))
        .route("/sessions/{id}/chunks/{index}", get(transcript::chunk))
        .route("/pulls", get(pull_list::show))
        .route("/projects/{project}/pulls/{number}", get(pull::show))
        .route("/search", get(search::show))
        .route("/usage", get(usage::show))
        .route("/health", get(health::show))
        .route("/link", get(link::show).post(link::begin))
        .route("/link/confirm", post(link::confirm))
        .route_layer(from_fn_with_state(state.clone(), access::require_read))
        .route_layer(axum::middleware::from_fn(gate::as_page));
    let providers = Router::new()
        .route("/login/{provider}", get(provider_sign_in::begin))
        .route("/login/{provider}/callback", get(provider_sign_in::finish))
        .route_layer(axum::middleware::from_fn(gate::as_page));
    views
        .merge(for_admins)
        .merge(providers)
        .route("/login", get(sign_in::login).post(sign_in::sign_in))
        .route("/logout", post(sign_in::sign_out))
        .route("/assets/{name}", get(assets::show))
}
