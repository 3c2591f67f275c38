//! What the dev agent is asked to do.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{TaskId, Usd};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RepositoryRef {
    /// A git repository on this machine; pull requests are records in the store.
    Local {
        /// Its directory.
        path: PathBuf,
    },
    /// One on GitHub.
    GitHub {
        /// Who it belongs to.
        owner: String,
        name: String,
    },
}

/// How the change is proved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerifyChoice {
    /// By the project's own test command, found by its files.
    Detect,
    /// By this command.
    Command(String),
    /// Not at all.
    Skip,
}

/// What happens to a change whose tests still fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// It becomes a draft that says so.
    Draft,
    /// Nothing is published.
    Nothing,
}

/// Who writes the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// One answer of the model, with repairs.
    Generate,
    /// The agent loop with tools, in a worktree.
    Agent,
    /// One answer for small changes; the agent where that is not enough.
    Auto,
}

/// Whether something may be done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Consent {
    /// It may.
    Granted,
    /// It may not.
    #[default]
    Withheld,
}

/// The limits of one run, all of them settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DevLimits {
    /// Files that are read; as many as the budget holds where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_files: Option<usize>,
    /// Bytes of each; as many as the budget holds where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_file_bytes: Option<usize>,
    /// Bytes of all files that are shown together.
    #[serde(default = "context_bytes")]
    pub context_bytes: usize,
    /// Tokens of one answer.
    pub max_tokens: u32,
    /// How often an answer that was cut is continued.
    pub max_rounds: u32,
    /// How often a change that does not apply, or fails its tests, goes back to the model.
    pub repairs: u32,
    /// How long the tests may take.
    pub verify_seconds: u64,
    /// How long one attempt may take in all; no limit where it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_wall_seconds: Option<u64>,
}

fn context_bytes() -> usize {
    80 * 1024
}

impl Default for DevLimits {
    fn default() -> Self {
        Self {
            max_files: None,
            max_file_bytes: None,
            context_bytes: context_bytes(),
            max_tokens: 4_096,
            max_rounds: 16,
            repairs: 2,
            verify_seconds: 15 * 60,
            max_wall_seconds: None,
        }
    }
}

/// A picture that goes with the instruction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageRef {
    /// Where it was copied to.
    pub path: PathBuf,
    pub media_type: String,
}

/// What a run of the dev agent is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DevPurpose {
    /// To carry out the instruction.
    #[default]
    Change,
    /// To merge the base of a pull request into its branch.
    Resolve,
}

impl DevPurpose {
    fn is_change(&self) -> bool {
        *self == Self::Change
    }
}

/// One run of the dev agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DevOrder {
    /// In the user's words.
    pub instruction: String,
    pub repository: RepositoryRef,
    /// The branch it is for, if not the default one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// An open pull request whose branch the change goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ImageRef>,
    /// How it is proved.
    pub verify: VerifyChoice,
    /// How dependencies are installed for it: a command, nothing where it is empty, and what the
    /// lock files say where it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<String>,
    /// What happens when the proof fails.
    pub on_failure: OnFailure,
    /// A draft whatever the tests say.
    pub draft: Consent,
    /// Protected files may be changed.
    pub protected: Consent,
    /// Without a model, a simulated pull request may be opened where others see it.
    #[serde(default)]
    pub simulation: Consent,
    /// Which files are protected, as globs; the built-in ones when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protected_globs: Option<Vec<String>>,
    /// The most it may cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_budget: Option<Usd>,
    /// Who asked.
    pub requested_by: String,
    /// Who writes the change.
    pub engine: Engine,
    /// The model that writes, by alias or id.
    pub task_model: String,
    /// The model that picks files, by alias or id; empty or `none` for no such model.
    pub picker_model: String,
    pub limits: DevLimits,
    /// Runs that came to nothing and whose steps this one goes on from, the first one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resumes: Vec<TaskId>,
    #[serde(default, skip_serializing_if = "DevPurpose::is_change")]
    pub purpose: DevPurpose,
}

impl DevOrder {
    /// The order of a run that goes on where this one, of task `id`, failed.
    pub fn again(mut self, id: TaskId) -> Self {
        self.resumes.push(id);
        self
    }

    /// Whether a model picks files before the one that writes is asked.
    pub fn has_picker(&self) -> bool {
        !matches!(self.picker_model.trim(), "" | "none")
    }

    /// The first line of the instruction.
    pub fn subject(&self) -> &str {
        self.instruction
            .trim()
            .lines()
            .next()
            .unwrap_or_default()
            .trim()
    }
}

/// A subscription to what happens to a pull request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowOrder {
    pub repository: RepositoryRef,
    /// Which pull request.
    pub number: u64,
    /// What is known already.
    pub seen: Vec<String>,
    /// How often it looks.
    pub interval_ms: u64,
}
