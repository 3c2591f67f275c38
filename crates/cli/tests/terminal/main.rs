//! The session at a terminal: the binary in a pseudo-terminal, its screen on an emulator.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests"
)]

#[path = "../common/mod.rs"]
mod common;

mod clipboard;
mod commands;
mod harness;
mod input;
mod questions;
mod reflowing;
mod resize;
mod session;
mod signals;
mod tasks;
mod tmux;
mod transcript;
