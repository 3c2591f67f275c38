//! `local_workflow`: a pipeline of steps from a file, each step a task of its own.
//!
//! A file is read once, when the task is made (`find`, `file`, `check`, `template`); the parsed
//! workflow is part of the spec, and later changes of the file have no effect on it. The runner
//! (`runner`, `steps`, `progress`) makes a task for each step when it is due and waits; `log`
//! writes the transitions.

mod check;
mod file;
mod find;
mod log;
mod progress;
mod runner;
mod steps;
mod template;

pub use file::{MAX_WORKFLOW_BYTES, WorkflowGate, WorkflowProblem, load_workflow, parse_workflow};
pub use find::find_workflow;
pub use runner::WorkflowRunner;
