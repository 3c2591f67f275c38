//! The dev agent, through the real binary: real git, scripted model, real tests in the sandbox.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests"
)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/file_server.rs"]
mod file_server;
#[path = "../common/registry.rs"]
mod registry;

mod action;
mod agent_engine;
mod calls;
mod changes;
mod checkout;
mod commit_rules;
mod context;
mod crash;
mod dependencies;
mod dependency_attacks;
mod github;
mod github_access;
mod hooks;
mod hostile;
mod limits;
mod loose_answers;
mod more;
mod network;
mod new_tests;
mod no_sandbox;
mod package_managers;
mod packaging;
mod proof;
mod pulls;
mod questions;
mod repair;
mod repository;
mod requests;
mod resume;
mod secrets;
mod simulation;
mod start_and_end;
mod submodules;
mod texts;
mod unreadable;
mod untrusted;
mod verify_setup;
