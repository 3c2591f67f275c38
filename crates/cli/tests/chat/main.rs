//! The chat channel of the terminal, through the real binary: real git, scripted model, real tests
//! in the sandbox.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests"
)]

#[path = "../common/mod.rs"]
mod common;

mod commands;
mod crash;
mod people;
mod room;
mod story;
