//! The dev agent at a terminal: its question, what it starts from and its end.

mod conclusion;
mod person;
pub(crate) mod simulation;
mod working_tree;

pub(crate) use conclusion::{Conclusion, EndedRun, hint};
pub(crate) use person::AtTerminal;
pub(crate) use working_tree::WorkingTree;
