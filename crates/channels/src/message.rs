//! Messages of people and to people, the same for every platform.

use std::path::PathBuf;

pub use codespar_store::ThreadRef;
use serde::{Deserialize, Serialize};

/// A message as an adapter hands it in. It is frozen at this moment: later edits do not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inbound {
    /// What the platform knows the message by. Deliveries with the same identity are one message.
    pub identity: String,
    pub at: ThreadRef,
    pub speaker: Speaker,
    /// The platform says that it is for us. A mention in the text is found by the core, as
    /// `@codespar`, which adapters write in place of the platform's own form.
    pub mentioned: bool,
    pub privacy: Privacy,
    pub text: String,
    pub images: Vec<InboundImage>,
    /// The platform's id of the message that this one answers.
    pub reply_to: Option<String>,
}

/// Before the name of a thread that begins with our first message in it: a command outside of any
/// message has none to answer.
pub(crate) const NEW_THREAD: &str = "new:";

/// Who speaks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Speaker {
    /// The platform's id, by which roles are given.
    pub id: String,
    /// For people to read; anybody may have any name.
    pub name: String,
    pub kind: SpeakerKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpeakerKind {
    Person,
    Bot,
    /// Our own account: never listened to.
    Ourselves,
}

/// Who else hears a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Privacy {
    /// A mention is needed.
    Room,
    /// Everything is for us.
    Direct,
}

/// A picture that came with a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InboundImage {
    /// As the person knows it.
    pub name: String,
    pub source: ImageSource,
}

/// Where a picture is. It is fetched when the message is about to be carried out, not before: a
/// delivery has to be acknowledged within seconds, and strangers have nothing fetched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageSource {
    File(PathBuf),
    /// What the adapter fetches it by.
    Platform(String),
    /// It cannot be used, for this reason: it is named as left out.
    Unusable(String),
}

/// What is kept of a message besides the columns of its row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptMessage {
    pub(crate) speaker: Speaker,
    pub(crate) privacy: Privacy,
    pub(crate) text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) images: Vec<InboundImage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reply_to: Option<String>,
    /// Of a channel that is the forge itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) forge: Option<ForgeOrigin>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) origin: Option<Origin>,
}

/// What the forge vouches for where it is the channel: a comment below an issue comes from a known
/// account and is about a known repository. Nothing of it is what the speaker says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForgeOrigin {
    /// The account of the speaker, by which their rights are looked up.
    pub login: String,
    /// `owner/name`: the conversation is about it, and about no other.
    pub repository: String,
    /// The pull request below which it was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<u64>,
    /// What is meant where the text is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub otherwise: Option<String>,
    /// What the message is about: text of others, which describes and does not instruct.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub material: Option<String>,
    /// By what the adapter finds more of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
}

impl ForgeOrigin {
    /// For what is done later on behalf of the same account: its rights are looked up again then,
    /// and what the first message was about is not said again.
    pub(crate) fn for_later(&self) -> Self {
        Self {
            login: self.login.clone(),
            repository: self.repository.clone(),
            pull_request: self.pull_request,
            ..Self::default()
        }
    }
}

/// Why we put a message on record ourselves, on behalf of the person who asked for it earlier.
/// Adapters cannot make one: whoever speaks through them has an [`Inbound`], which has none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Origin {
    /// The time of a schedule has come.
    Schedule { timer: String },
    /// Checks of a watched pull request have failed.
    Watch {
        timer: String,
        repository: String,
        pull_request: u64,
        /// What the checks say: text of others.
        material: String,
    },
    /// The agent of the thread gave a command for the person who spoke to it.
    Agent,
    /// A step of a plan that was approved.
    Plan { step: u32 },
}

impl Origin {
    /// The timer that does not go on if the message is refused.
    pub(crate) fn timer(&self) -> Option<&str> {
        match self {
            Self::Schedule { timer } | Self::Watch { timer, .. } => Some(timer),
            Self::Agent | Self::Plan { .. } => None,
        }
    }
}

/// A message to people. Each adapter draws it in the way of its platform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outbound {
    pub kind: OutboundKind,
    /// Who is to be notified. Edits notify nobody, so only new messages have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mention: Option<Addressee>,
    /// Without secrets, and without anything that notifies others.
    pub text: String,
    /// Buttons, or numbered replies where the platform has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<ReplyChoice>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutboundKind {
    /// An answer to a command.
    Text,
    /// The one message of a task that is edited in place.
    Progress,
    /// A question that waits for an answer.
    Question,
    /// A question that does not wait any more.
    Settled,
    /// What a task came to.
    Result,
    /// A long text that goes with an answer, for platforms that take files.
    File,
    /// The begin of an answer that is being written. The answer has its key, and replaces it.
    Draft,
}

impl OutboundKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Progress => "progress",
            Self::Question => "question",
            Self::Settled => "settled",
            Self::Result => "result",
            Self::File => "file",
            Self::Draft => "draft",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Addressee {
    pub id: String,
    pub name: String,
}

/// A button, and what pressing it says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplyChoice {
    pub label: String,
    /// The text of the message that pressing it stands for.
    pub value: String,
}
