//! The dev agent at a terminal: its question, its progress, what it starts from and its end.

mod conclusion;
mod person;
mod progress;
pub(crate) mod simulation;
mod working_tree;

pub(crate) use conclusion::{Conclusion, hint};
pub(crate) use person::AtTerminal;
pub(crate) use progress::Progress;
pub(crate) use working_tree::WorkingTree;
