//! `GitHubForge` against a fake GitHub: real HTTP, a real git repository.

#![allow(clippy::unwrap_used, clippy::panic)]

mod app;
mod committing;
mod interruptions;
mod limits;
mod merging;
mod openapi;
mod pulls;
mod reading;
mod reviewing;
mod schema;
mod world;
