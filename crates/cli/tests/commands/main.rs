//! The commands, through the real binary, with a scripted model.
//!
//! One test program for all of them: each program more is linked for itself.

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
#[allow(
    dead_code,
    unused_imports,
    reason = "the tests of the dev agent use the rest"
)]
#[path = "../dev/repository.rs"]
mod repository;

mod acp;
mod acp_client;
mod acp_sessions;
mod agent_calls;
mod agent_collections;
mod agent_sdks;
mod agents;
mod apply;
mod auth;
mod authority;
mod changed_settings;
mod doctor;
mod editor_bridge;
mod edits;
mod egress;
mod familiar_tools;
mod fleet;
mod headless;
mod headless_commands;
mod hook_events;
mod hooks;
mod json_output;
mod lifecycle;
mod limits;
mod mcp;
mod mcp_conformance;
mod mcp_content;
mod mcp_login;
mod mcp_serve;
mod mcp_serve_client;
mod mcp_serve_http;
mod mcp_serve_tools;
mod other_tools;
mod progress;
mod prompts;
mod questions;
mod safety;
mod sdk;
mod sdk_context;
mod sdk_options;
mod sdk_results;
mod sdk_servers;
mod session_display;
mod sessions;
mod setting_sources;
mod tasks;
mod teams;
mod temporal_address;
mod text;
mod trust;
mod web_search;
mod workflows;
