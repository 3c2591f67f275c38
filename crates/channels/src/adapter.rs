//! What a platform must be able to do.

use std::time::Duration;

use async_trait::async_trait;
use codespar_store::ThreadRef;

use crate::{InboundImage, Outbound};

/// A platform. It turns its wire format into [`crate::Inbound`] in its own way and draws what is
/// sent; everything in between is shared.
#[async_trait]
pub trait ChannelAdapter: Send + Sync {
    /// `slack`, `terminal` …
    fn name(&self) -> &str;

    fn pace(&self) -> Pace;

    /// Posts a message and gives the platform's id of it.
    async fn post(&self, outgoing: AddressedMessage<'_>) -> Result<String, SendError>;

    /// Edits the message that the platform knows by `id`.
    async fn edit(&self, id: &str, outgoing: AddressedMessage<'_>) -> Result<(), SendError>;

    /// The id of a message that may have been posted under this key before a crash. Adapters of
    /// platforms that cannot tell give nothing.
    async fn find_posted(&self, at: &ThreadRef, key: &str) -> Result<Option<String>, SendError>;

    /// Whether messages of the kind [`crate::OutboundKind::File`] can be posted.
    fn takes_files(&self) -> bool {
        false
    }

    /// Whether an answer may be shown in this thread while it is written, as a message of the kind
    /// [`crate::OutboundKind::Draft`] that grows. It can change: a platform that refuses is left
    /// alone for a while. A draft that fails is left out.
    fn shows_drafts(&self, _at: &ThreadRef) -> bool {
        false
    }

    /// Whether [`ChannelAdapter::show_activity`] does something.
    fn shows_activity(&self) -> bool {
        false
    }

    /// Shows at a thread whether something is under way in it. What fails here is left out.
    async fn show_activity(&self, _at: &ThreadRef, _activity: ThreadActivity) {}

    /// Fetches a picture that a message refers to, at most `most` bytes of it. Only from hosts of
    /// the platform. The error is for the person who sent it.
    async fn fetch_image(&self, _reference: &str, _most: usize) -> Result<Vec<u8>, String> {
        Err("pictures cannot be fetched from here".to_owned())
    }

    /// Pictures of a message, where what was delivered of it may have left them out. Asked for once
    /// its speaker is known to have a right to work that can use them.
    async fn images_of(
        &self,
        _at: &ThreadRef,
        _identity: &str,
    ) -> Result<Vec<InboundImage>, SendError> {
        Ok(Vec::new())
    }

    /// Shows at a message that it is being handled, or what came of it, where the platform has a way
    /// besides messages (a reaction). What fails here is left out.
    async fn acknowledge(&self, _at: &ThreadRef, _identity: &str, _outcome: Acknowledgement) {}

    /// Tells those who look at a pull request what work on it came to. What fails here is left out.
    async fn report(&self, _at: &ThreadRef, _report: &WorkReport) {}

    /// Text that a message is about: it describes, and does not instruct. It is asked for once the
    /// speaker is known to have a right to the command; without an answer nothing is carried out.
    async fn material(&self, _at: &ThreadRef, _reference: &str) -> Result<Option<String>, String> {
        Ok(None)
    }

    /// Where the branch of a pull request is, where the channel is the forge itself. Without an
    /// answer nothing is carried out.
    async fn branch_of(&self, _at: &ThreadRef, _pull_request: u64) -> Result<PullBranch, String> {
        Ok(PullBranch::Own)
    }

    /// Asks the platform whether the setup is complete, for `codespar channels check`.
    async fn check(&self) -> Vec<ChannelFinding>;
}

/// A message to people, and where it is to be.
#[derive(Debug, Clone, Copy)]
pub struct AddressedMessage<'a> {
    pub at: &'a ThreadRef,
    /// The same when the same message is posted again.
    pub key: &'a str,
    pub message: &'a Outbound,
}

/// How far a message is, in one sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acknowledgement {
    /// Its command is about to be carried out.
    Begun,
    Done,
    /// It failed, or was refused.
    NotDone,
}

/// Whether something is under way in a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadActivity {
    Busy,
    Idle,
}

/// What work on a pull request came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkReport {
    pub pull_request: u64,
    /// The name of the task.
    pub task: String,
    pub outcome: Acknowledgement,
    /// One line, without secrets.
    pub summary: String,
}

/// Where the branch of a pull request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PullBranch {
    /// In the repository itself.
    Own,
    /// In the repository of somebody else: it is looked at, and nothing else.
    Fork,
}

/// One line of `codespar channels check`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelFinding {
    pub kind: FindingKind,
    /// What is so, and for a problem what to click.
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FindingKind {
    Fine,
    /// It works without.
    Warning,
    Problem,
}

impl ChannelFinding {
    pub fn fine(text: impl Into<String>) -> Self {
        Self {
            kind: FindingKind::Fine,
            text: text.into(),
        }
    }

    pub fn warning(text: impl Into<String>) -> Self {
        Self {
            kind: FindingKind::Warning,
            text: text.into(),
        }
    }

    pub fn problem(text: impl Into<String>) -> Self {
        Self {
            kind: FindingKind::Problem,
            text: text.into(),
        }
    }
}

/// The least time between two calls of a kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pace {
    pub post: Duration,
    pub edit: Duration,
}

/// Why a message was not delivered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    #[error("the platform asks to wait {} s", .0.as_secs())]
    RetryAfter(Duration),
    /// It may work later.
    #[error("{0}")]
    Temporary(String),
    /// The message is too old to be edited, or gone: it is posted anew.
    #[error("the message cannot be edited any more")]
    CannotEdit,
    /// It will not work later either.
    #[error("{0}")]
    Permanent(String),
}
