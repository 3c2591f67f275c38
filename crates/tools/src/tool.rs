//! What a tool is.

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use codespar_policy::Access;
use codespar_protocol::{ContentBlock, ToolResultContent, ToolUseId};
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::{ApprovedText, Context, Proposal, sandbox::Approval};

/// Whether a tool can change anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It only looks: calls may run side by side.
    ReadOnly,
    /// It starts work that is watched over on its own (a subagent): calls may run side by side,
    /// and each is on record before it begins.
    SideBySide,
    /// It may change things: calls run one at a time.
    Changes,
}

/// What a call would do, worked out from its input without doing it.
#[derive(Debug, Clone, PartialEq)]
pub struct Intent {
    /// One line for people: the command, the path, the pattern.
    pub summary: String,
    /// Everything it wants to touch.
    pub access: Vec<Access>,
}

#[derive(Debug, Clone)]
pub struct Call {
    pub id: ToolUseId,
    /// Its input, as the model wrote it, or as the user changed it.
    pub input: Box<RawValue>,
    /// What `inspect` said it would touch. The decision was made on these paths, so the tool works
    /// on them and does not resolve the input again: meanwhile it may lead elsewhere.
    pub access: Vec<Access>,
    /// Cancelled when the user interrupts or the agent ends; the tool then stops what it
    /// started and returns.
    pub cancel: CancellationToken,
    /// Who has said that it may be made.
    pub approval: Approval,
    /// What to write instead of what the input says, where the user refused a part of the change.
    pub text: Option<ApprovedText>,
}

impl Call {
    /// The path that was decided on.
    pub(crate) fn path(&self) -> Result<PathBuf, ToolError> {
        path_of(&self.access)
    }
}

/// The first path among what a call would touch.
pub(crate) fn path_of(access: &[Access]) -> Result<PathBuf, ToolError> {
    let path = access.iter().find_map(|access| match access {
        Access::Read(path) | Access::Write(path) => Some(path.clone()),
        _ => None,
    });
    path.ok_or_else(|| ToolError("no path was decided on".to_owned()))
}

/// What a tool gives back.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutput {
    /// For the model.
    pub content: ToolResultContent,
    /// It did not do what was asked.
    pub is_error: bool,
}

impl ToolOutput {
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: ToolResultContent::Text(text.into()),
            is_error: false,
        }
    }

    /// An error the model can act on.
    pub fn error(text: impl Into<String>) -> Self {
        Self {
            content: ToolResultContent::Text(text.into()),
            is_error: true,
        }
    }

    /// Blocks (an image).
    pub fn blocks(blocks: Vec<ContentBlock>) -> Self {
        Self {
            content: ToolResultContent::Blocks(blocks),
            is_error: false,
        }
    }
}

/// The call cannot be made: the input is wrong, the path escapes, the file was not read. The
/// words go to the model, so they say what to do instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ToolError(pub String);

impl From<ToolError> for ToolOutput {
    fn from(error: ToolError) -> Self {
        Self::error(error.0)
    }
}

/// A tool. One file each, its prompt text beside it.
#[async_trait]
pub trait Tool: Send + Sync {
    /// The name the model calls it by.
    fn name(&self) -> &str;

    /// What it does and when to use it, for the model.
    fn description(&self) -> &str;

    /// JSON schema of the input, made from the input type.
    fn input_schema(&self) -> Arc<RawValue>;

    /// Whether it can change anything.
    fn effect(&self) -> Effect;

    /// Whether the provider runs it while it answers. Such a tool is not described to the model
    /// like the others; the request says that it may be used.
    fn is_run_by_provider(&self) -> bool {
        false
    }

    /// Checks the input and says what the call would touch. Nothing is changed.
    fn inspect(&self, input: &RawValue, context: &Context) -> Result<Intent, ToolError>;

    /// The change that a call would make to a file, if it has parts of which single ones can be
    /// refused. `access` is what `inspect` said. Nothing is changed. A tool that returns one writes
    /// [`Call::text`] in place of its own where a call has it.
    async fn propose(
        &self,
        _input: &RawValue,
        _access: &[Access],
        _context: &Context,
    ) -> Option<Proposal> {
        None
    }

    /// Does it. Permission has been given for what `inspect` said, which is in the call.
    async fn run(&self, call: Call, context: &Context) -> ToolOutput;
}
