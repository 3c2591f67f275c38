//! The events that hooks are run at.

use std::fmt;

/// When a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HookEventKind {
    /// A call is about to be decided on. A hook can refuse or change it.
    PreToolUse,
    /// A call has succeeded.
    PostToolUse,
    /// A call has failed.
    PostToolUseFailure,
    /// The user would be asked about a call. A hook can answer.
    PermissionRequest,
    /// The user has sent a prompt. A hook can refuse it.
    UserPromptSubmit,
    /// The conversation begins or is taken up again.
    SessionStart,
    /// The conversation is left.
    SessionEnd,
    /// The agent of a session is about to end its turn. A hook can make it go on.
    Stop,
    /// The agent of a task begins.
    SubagentStart,
    /// The agent of a task is about to end. A hook can make it go on.
    SubagentStop,
    /// Older turns are about to be summarised. A hook can prevent it.
    PreCompact,
    /// The user is needed.
    Notification,
}

impl HookEventKind {
    /// In the order in which they are listed.
    pub const ALL: [Self; 12] = [
        Self::PreToolUse,
        Self::PostToolUse,
        Self::PostToolUseFailure,
        Self::PermissionRequest,
        Self::UserPromptSubmit,
        Self::SessionStart,
        Self::SessionEnd,
        Self::Stop,
        Self::SubagentStart,
        Self::SubagentStop,
        Self::PreCompact,
        Self::Notification,
    ];

    /// The name as settings and hooks know it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PreToolUse => "PreToolUse",
            Self::PostToolUse => "PostToolUse",
            Self::PostToolUseFailure => "PostToolUseFailure",
            Self::PermissionRequest => "PermissionRequest",
            Self::UserPromptSubmit => "UserPromptSubmit",
            Self::SessionStart => "SessionStart",
            Self::SessionEnd => "SessionEnd",
            Self::Stop => "Stop",
            Self::SubagentStart => "SubagentStart",
            Self::SubagentStop => "SubagentStop",
            Self::PreCompact => "PreCompact",
            Self::Notification => "Notification",
        }
    }

    /// The event of that name, in this very spelling.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.as_str() == name)
    }

    /// Whether a hook that cannot be run stops what the event is about. Somebody relies on it: what
    /// it would have refused must not pass because its script is missing.
    pub fn fails_closed(self) -> bool {
        matches!(
            self,
            Self::PreToolUse | Self::PermissionRequest | Self::UserPromptSubmit
        )
    }

    /// Whether plain text that a hook prints is for the model.
    pub(crate) fn takes_plain_text(self) -> bool {
        matches!(
            self,
            Self::UserPromptSubmit | Self::SessionStart | Self::SubagentStart
        )
    }

    /// Whether matchers mean something here; where they do not, every hook of the event runs.
    pub(crate) fn has_subject(self) -> bool {
        !matches!(self, Self::UserPromptSubmit | Self::Stop)
    }
}

impl fmt::Display for HookEventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
