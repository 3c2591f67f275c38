//! What the settings say of the dev agent: `dev`, `verify` and `forge`.

use codespar_dev::{DevLimits, Engine, OnFailure};
use serde::Deserialize;

/// `dev` in the settings. The fields are the keys of docs/settings.md.
#[allow(missing_docs)]
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct DevSettings {
    /// `generate` (one answer), `agent` (the loop with tools) or `auto`.
    pub engine: Option<Engine>,
    pub max_files: Option<AutoLimit>,
    pub max_file_bytes: Option<AutoLimit>,
    /// Of all files that are shown together.
    pub context_bytes: Option<usize>,
    pub max_tokens: Option<u32>,
    pub repairs: Option<u32>,
    /// How often a followed pull request is looked at.
    pub poll_seconds: Option<u64>,
    pub task_model: Option<String>,
    pub picker_model: Option<String>,
    /// Refuse to run without a model instead of simulating.
    pub require_model: Option<bool>,
    /// Globs of files that need --allow-protected.
    pub protected: Option<Vec<String>>,
}

/// A number, or `auto`: the budget of the context decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "a number or \"auto\"")]
pub enum AutoLimit {
    /// At most so many.
    Most(usize),
    /// No limit of its own.
    Auto(AutoWord),
}

/// Spelled out as an enum so that any other text in the settings is an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AutoWord {
    /// The only one.
    Auto,
}

impl AutoLimit {
    fn most(self) -> Option<usize> {
        match self {
            Self::Most(most) => Some(most),
            Self::Auto(_) => None,
        }
    }
}

/// `verify` in the settings. The fields are the keys of docs/settings.md.
#[allow(missing_docs)]
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct VerifySettings {
    pub command: Option<String>,
    /// Installs dependencies; empty for nothing.
    pub setup: Option<String>,
    pub on_failure: Option<OnFailure>,
    pub timeout_seconds: Option<u64>,
    /// Let the tests use the network.
    pub network: Option<bool>,
}

/// Where pull requests are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ForgeName {
    /// GitHub where the origin is there and a token is set, local otherwise.
    Auto,
    /// Records in the store.
    Local,
    Github,
}

impl DevSettings {
    /// Later settings win. What a project protects is added to what is protected anyway.
    pub fn add(&mut self, later: Self, is_project: bool) {
        self.engine = later.engine.or(self.engine);
        self.max_files = later.max_files.or(self.max_files);
        self.max_file_bytes = later.max_file_bytes.or(self.max_file_bytes);
        self.context_bytes = later.context_bytes.or(self.context_bytes);
        self.max_tokens = later.max_tokens.or(self.max_tokens);
        self.repairs = later.repairs.or(self.repairs);
        self.poll_seconds = later.poll_seconds.or(self.poll_seconds);
        self.task_model = later.task_model.or(self.task_model.take());
        self.picker_model = later.picker_model.or(self.picker_model.take());
        // A project can ask for a model, and not do without one that the user asks for.
        self.require_model = match (is_project, later.require_model) {
            (true, Some(false)) => self.require_model,
            (_, later) => later.or(self.require_model),
        };
        if let Some(globs) = later.protected {
            if is_project {
                self.protected
                    .get_or_insert_with(codespar_change::apply::Rules::default_patterns)
                    .extend(globs);
            } else {
                self.protected = Some(globs);
            }
        }
    }

    /// The limits of a run; `max_wall_seconds` is that of every run.
    pub fn limits(&self, verify: &VerifySettings, max_wall_seconds: Option<u64>) -> DevLimits {
        let usual = DevLimits::default();
        DevLimits {
            max_files: self.max_files.and_then(AutoLimit::most),
            max_file_bytes: self.max_file_bytes.and_then(AutoLimit::most),
            context_bytes: self.context_bytes.unwrap_or(usual.context_bytes),
            max_tokens: self.max_tokens.unwrap_or(usual.max_tokens),
            max_rounds: usual.max_rounds,
            repairs: self.repairs.unwrap_or(usual.repairs),
            verify_seconds: verify.timeout_seconds.unwrap_or(usual.verify_seconds),
            max_wall_seconds,
        }
    }
}

impl VerifySettings {
    /// Later settings win.
    pub fn add(&mut self, later: Self) {
        self.command = later.command.or(self.command.take());
        self.setup = later.setup.or(self.setup.take());
        self.on_failure = later.on_failure.or(self.on_failure);
        self.timeout_seconds = later.timeout_seconds.or(self.timeout_seconds);
        self.network = later.network.or(self.network);
    }
}
