//! What is told of hooks while they run, to a surface that shows them.

use codespar_policy::{
    Redactor,
    hooks::{HookAnswer, HookEventKind, HookFailure, HookOutput},
};
use codespar_protocol::EntryId;

/// Hears of each hook that runs: those of settings, plugins and agents.
pub trait HookObserver: Send + Sync {
    /// Whether hooks of the event are of interest. Where they are not nothing is made for it.
    fn wants(&self, event: HookEventKind) -> bool;

    fn started(&self, run: &RunningHook);

    /// Called once for each that has started, unless its agent is dropped before.
    fn ended(&self, run: &RunningHook, end: &HookEnd);
}

/// A hook that runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningHook {
    pub id: EntryId,
    pub event: HookEventKind,
    /// The event and what it is about: `PreToolUse:Bash`.
    pub name: String,
    /// The session at the top, as hooks are told it.
    pub session: String,
}

/// How it ended. Texts are without secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookEnd {
    pub outcome: HookOutcome,
    pub stdout: String,
    /// Why it gave no answer, if it printed nothing about it.
    pub stderr: String,
    /// Of a command that ended.
    pub exit_code: Option<i32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookOutcome {
    Success,
    /// It refused by its exit code, or gave no answer.
    Error,
    /// What it was asked for has ended.
    Cancelled,
}

/// What a hook said, before it is understood.
pub(crate) enum HookSaid {
    /// A command.
    Exited(HookOutput),
    /// An address or a model.
    Text(String),
}

impl HookSaid {
    pub(crate) fn answer(&self, event: HookEventKind) -> Result<HookAnswer, HookFailure> {
        match self {
            Self::Exited(output) => HookAnswer::of_output(event, output),
            Self::Text(text) => HookAnswer::of_text(event, text),
        }
    }
}

impl HookEnd {
    pub(crate) fn of(
        said: Option<&HookSaid>,
        answer: &Result<HookAnswer, HookFailure>,
        redactor: &Redactor,
    ) -> Self {
        let (stdout, stderr, exit_code) = match said {
            Some(HookSaid::Exited(output)) => (&*output.stdout, &*output.stderr, Some(output.code)),
            Some(HookSaid::Text(text)) => (text.as_str(), "", None),
            None => ("", "", None),
        };
        let outcome = match answer {
            Err(HookFailure::Interrupted) => HookOutcome::Cancelled,
            Err(_) => HookOutcome::Error,
            Ok(_) if exit_code.is_some_and(|code| code != 0) => HookOutcome::Error,
            Ok(_) => HookOutcome::Success,
        };
        let without_secrets = |text: &str| redactor.redact(text).into_owned();
        let failure = answer.as_ref().err().filter(|_| stderr.is_empty());
        Self {
            outcome,
            stdout: without_secrets(stdout),
            stderr: match failure {
                Some(failure) => without_secrets(&failure.to_string()),
                None => without_secrets(stderr),
            },
            exit_code,
        }
    }
}
