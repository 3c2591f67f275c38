//! Workflows: steps from a file, each of which becomes a task.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A checked workflow: ids are unique, `needs` are known and without cycles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workflow {
    /// What it is called.
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its steps, in the order of the file.
    pub steps: Vec<WorkflowStep>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowStep {
    /// Its name within the workflow.
    pub id: String,
    /// Steps that must complete first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// How often it is made again when it fails or is lost.
    #[serde(default)]
    pub retry: u32,
    /// What it does.
    #[serde(flatten)]
    pub work: StepWork,
}

/// What a step does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum StepWork {
    /// Runs a shell command.
    Command { command: String },
    /// Runs an agent.
    Prompt {
        /// What the agent is to do.
        prompt: String,
        /// Its kind.
        agent: String,
        /// Its model, if not the kind's.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
}

impl Workflow {
    /// The shell commands of its steps.
    pub fn commands(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().filter_map(|step| match &step.work {
            StepWork::Command { command } => Some(command.as_str()),
            StepWork::Prompt { .. } => None,
        })
    }
}

/// A workflow to run. The steps are those of the file when the task was made: a later change of
/// the file does not change a run that is under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowSpec {
    /// Where it came from.
    pub file: PathBuf,
    /// What to do.
    pub workflow: Workflow,
    /// The project root.
    pub root: PathBuf,
    /// Where the steps start.
    pub cwd: PathBuf,
    /// How far below the user's agent its agents are.
    pub depth: u32,
}
