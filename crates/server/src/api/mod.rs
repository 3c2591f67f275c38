//! The resources of the API, one file each.
//!
//! A route is listed below under the role that it needs, and nowhere else: the router, the
//! description at `/api/openapi.json` and the test that tries every route with every role are made
//! from these lists, so a new route cannot be served without a check.
//!
//! Handlers get typed input and give typed output. What a request names must belong to a project of
//! this server (`scope.rs`); what does not is answered as if it did not exist, so that an id tells
//! nothing about other projects.

mod audit;
mod commands;
mod extract;
mod live;
mod me;
mod projects;
mod pulls;
mod questions;
mod retry;
mod schema;
mod sessions;
mod task_actions;
mod tasks;
mod tokens;
mod usage;
mod workers;

pub(crate) use self::{
    audit::page as audit_page,
    commands::{
        COMMANDS, EntryAuthor, MOST_COMMAND_BYTES, ThreadEntry, entries as thread_entries, is_name,
    },
    extract::{Named, Params},
    pulls::{ApiReviewed, reach as reach_pulls},
    questions::ApiQuestion,
    sessions::entry_json,
    tasks::{ApiTask, output_tail},
};

use axum::extract::DefaultBodyLimit;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::state::Shared;

/// What a token with the role `read` may do.
pub(crate) fn reading() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(me::show))
        .routes(routes!(tasks::list))
        .routes(routes!(tasks::get))
        .routes(routes!(tasks::steps))
        .routes(routes!(tasks::output))
        .routes(routes!(sessions::list))
        .routes(routes!(sessions::get))
        .routes(routes!(sessions::entries))
        .routes(routes!(questions::list))
        .routes(routes!(questions::get))
        .routes(routes!(projects::list))
        .routes(routes!(pulls::list))
        .routes(routes!(pulls::get))
        .routes(routes!(pulls::diff))
        .routes(routes!(usage::show))
        .routes(routes!(workers::show))
        .routes(routes!(live::events))
        .routes(routes!(commands::thread))
        .merge(with_pictures())
}

/// Bodies that have pictures in them. Whoever sends one is known before it is read.
fn with_pictures() -> OpenApiRouter<Shared> {
    let limit = DefaultBodyLimit::max(commands::MOST_COMMAND_BYTES);
    OpenApiRouter::new()
        .routes(routes!(commands::say))
        .layer(limit)
}

/// What needs the role `write`.
pub(crate) fn writing() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(task_actions::create))
        .routes(routes!(task_actions::stop))
        .routes(routes!(task_actions::message))
        .routes(routes!(retry::retry))
        .routes(routes!(questions::answer))
        .routes(routes!(pulls::review))
        .routes(routes!(pulls::ready))
}

/// What needs the role `merge`.
pub(crate) fn merging() -> OpenApiRouter<Shared> {
    OpenApiRouter::new().routes(routes!(pulls::merge))
}

/// What needs the role `admin`.
pub(crate) fn administering() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(audit::list))
        .routes(routes!(audit::export))
        .routes(routes!(tokens::list))
        .routes(routes!(tokens::create))
        .routes(routes!(tokens::revoke))
}
