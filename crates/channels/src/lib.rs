//! Commands as people write them, the same on every surface.
//!
//! `@codespar merge PR #1 squash` means the same in a terminal session, in a chat thread and in a
//! comment. This crate reads the text; it does nothing. Who may do what, and the doing, belong to
//! the surface.

pub mod grammar;

pub use grammar::{
    ChatCommand, ChatRequest, Names, NotACommand, PullRef, RequestOptions, StateFilter, Verb,
    mentioned, parse,
};
