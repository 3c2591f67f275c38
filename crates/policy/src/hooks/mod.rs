//! Hooks: what people let run at events of an agent, which of them an event concerns, and what
//! their answers come to. Pure: running them is done elsewhere.
//!
//! ```text
//! settings -- read_hooks --> HookSet -- matching(event, subjects) --> hooks to run
//! output of each -- HookAnswer::of_output --> HookAnswer::merge --> one answer
//! ```
//!
//! The format is the one that Claude Code reads, so that scripts and settings written for it work.
//! An answer can make a decision stricter; what it allows counts like an allow rule and never
//! against a rule that denies or asks.

mod answer;
mod event;
mod matcher;
mod read;
mod set;

pub use answer::{HookAnswer, HookFailure, HookOutput, HookVerdict};
pub use event::HookEventKind;
pub use matcher::{HookMatcher, HookMatcherError};
pub use read::{HookConfigError, read_hooks};
pub use set::{Hook, HookAction, HookOrigin, HookSet, HookSource};
