//! The server, spoken to over real HTTP by a client that is not our own.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod anthropic_wire;
mod capture;
mod client;
mod conversations;
mod faults;
mod openai_wire;
mod process;
mod rules;
mod scripts;
