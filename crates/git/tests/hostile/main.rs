//! Hostile repositories: what plain git runs in them, and that we run nothing.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod attacks;
mod lfs;
mod limits;
mod objects;
mod scene;
mod snapshots;
mod trees;
