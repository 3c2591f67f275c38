//! The local forge on real repositories.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod checkouts;
mod commits;
mod content;
mod environment;
mod merges;
mod pulls;
mod repository;
