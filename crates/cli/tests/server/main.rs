//! `codespar serve` and `codespar token`, through the real binary.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests"
)]

mod client;
#[path = "../common/mod.rs"]
mod common;
mod crash;
mod demo;
mod deploy;
mod discord;
mod github;
mod lifecycle;
mod pages;
mod remote;
#[allow(
    dead_code,
    unused_imports,
    reason = "the tests of the dev agent use the rest"
)]
#[path = "../dev/repository.rs"]
mod repository;
#[allow(
    dead_code,
    unused_imports,
    reason = "the tests of the terminal channel use the rest"
)]
#[path = "../chat/room.rs"]
mod room;
mod sign_in;
mod slack;
mod stage;
mod story;
mod telegram;
mod tokens;
mod whatsapp;
