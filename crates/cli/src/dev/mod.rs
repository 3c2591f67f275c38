//! The dev agent at a terminal: its question and its progress.

mod person;
mod progress;

pub(crate) use person::AtTerminal;
pub(crate) use progress::Progress;
