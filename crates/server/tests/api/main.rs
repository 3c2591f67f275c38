//! The API over real HTTP: who may do what, what is refused, and what live events tell.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests"
)]

mod browser;
mod commands;
mod described;
mod events;
mod fleet;
mod images;
mod input;
mod link;
mod proxy;
mod resources;
mod roles;
mod sign_in;
mod stage;
mod views;
mod web;
