//! The local forge on real repositories.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod collection;
mod commits;
mod content;
mod environment;
mod hostile;
mod merges;
mod pulls;
mod repository;
