//! The dev agent, through the real binary: real git, scripted model, real tests in the sandbox.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests"
)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/registry.rs"]
mod registry;

mod agent_engine;
mod calls;
mod changes;
mod checkout;
mod crash;
mod github;
mod hostile;
mod limits;
mod loose_answers;
mod network;
mod no_sandbox;
mod proof;
mod pulls;
mod questions;
mod repository;
mod requests;
mod resume;
mod secrets;
mod simulation;
mod start_and_end;
mod texts;
mod unreadable;
mod untrusted;
