//! `local_workflow`: a pipeline of steps from a file, each step a task of its own.

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
