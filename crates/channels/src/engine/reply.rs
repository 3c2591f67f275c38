//! Messages of ours as rows of the outbox, and entries of the audit log.

use codespar_protocol::{AccessRole, TaskId};
use codespar_store::{
    ChannelMessage, MessageChange, MessageState, NewAudit, NewOutbound, OutboundPriority,
    StoreError, ThreadRef,
};

use super::ChannelCore;
use crate::{
    Acknowledgement, Addressee, Outbound, OutboundKind, ReplyChoice,
    message::KeptMessage,
    outgoing::{neutral, pieces, seen},
    text::shortened,
};

/// The most that is said in one message; platforms take between 2,000 and 13,000 characters.
pub(crate) const MOST: usize = 3_500;
/// A longer answer is so many messages; more would bury a thread.
const MOST_PIECES: usize = 3;

/// Whom an answer notifies.
pub(crate) fn addressee(kept: &KeptMessage) -> Addressee {
    Addressee {
        id: kept.speaker.id.clone(),
        name: kept.speaker.name.clone(),
    }
}

/// The key of the answer to a message.
pub(crate) fn reply_key(message: &ChannelMessage) -> String {
    format!("{}/reply", message.identity)
}

/// What was decided about a message, for the audit log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Allowed,
    Refused,
    Done,
    Failed,
}

impl Verdict {
    fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Refused => "refused",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }
}

/// What the audit log says of a message.
pub(crate) struct Audited<'a> {
    pub(crate) role: Option<AccessRole>,
    pub(crate) action: &'a str,
    pub(crate) verdict: Verdict,
    pub(crate) detail: &'a str,
    pub(crate) task: Option<&'a TaskId>,
}

impl ChannelCore {
    /// A row of the outbox. Text of others is in it, so it is made harmless here, whatever it is.
    pub(crate) fn outbound(&self, key: String, at: &ThreadRef, message: Outbound) -> NewOutbound {
        let priority = match message.kind {
            OutboundKind::Result => OutboundPriority::Final,
            OutboundKind::Question | OutboundKind::Settled => OutboundPriority::Question,
            OutboundKind::Text | OutboundKind::File => OutboundPriority::Reply,
            OutboundKind::Progress => OutboundPriority::Progress,
            OutboundKind::Draft => OutboundPriority::Draft,
        };
        let text = match message.kind {
            // Nobody is notified by a file, and nothing in it is drawn.
            OutboundKind::File => self
                .setup
                .home
                .redactor
                .redact(&seen(&message.text))
                .into_owned(),
            _ => shortened(&self.harmless(&message.text), MOST),
        };
        let message = Outbound {
            text,
            choices: message
                .choices
                .into_iter()
                .map(|choice| ReplyChoice {
                    label: self.harmless(&choice.label),
                    ..choice
                })
                .collect(),
            ..message
        };
        NewOutbound {
            key,
            at: at.clone(),
            kind: message.kind.as_str().to_owned(),
            body: serde_json::to_string(&message).unwrap_or_default(),
            priority,
        }
    }

    /// Without secrets, which invisible characters within them would hide from the search, and
    /// without what notifies, loads or deceives.
    fn harmless(&self, text: &str) -> String {
        neutral(&self.setup.home.redactor.redact(&seen(text)))
    }

    /// The answer to a message, in several if it is long. Only the first notifies; the last has the
    /// choices.
    pub(crate) fn long_answer(
        &self,
        message: &ChannelMessage,
        kept: &KeptMessage,
        text: &str,
        choices: &[ReplyChoice],
    ) -> Vec<NewOutbound> {
        // Harmless before it is cut: half of a secret is not found.
        let texts = pieces(&self.harmless(text), MOST, MOST_PIECES);
        let last = texts.len().saturating_sub(1);
        let row = |(index, text): (usize, String)| {
            let mention = (index == 0).then(|| addressee(kept));
            let choices = match index == last {
                true => choices.to_vec(),
                false => Vec::new(),
            };
            let mut row = self.reply(message, mention, text, choices);
            if index > 0 {
                row.key = format!("{}/{}", row.key, index + 1);
            }
            row
        };
        texts.into_iter().enumerate().map(row).collect()
    }

    /// A text that is too long for messages, where the platform takes it as a file.
    pub(crate) fn file(&self, message: &ChannelMessage, text: String) -> Option<NewOutbound> {
        let adapters = self.adapters.lock();
        let takes_files = adapters
            .get(&message.at.channel)
            .is_some_and(|adapter| adapter.takes_files());
        let outbound = Outbound {
            kind: OutboundKind::File,
            mention: None,
            text,
            choices: Vec::new(),
        };
        let key = format!("{}/file", message.identity);
        takes_files.then(|| self.outbound(key, &message.at, outbound))
    }

    /// The answer to a message; there is one.
    pub(crate) fn answer(
        &self,
        message: &ChannelMessage,
        kept: &KeptMessage,
        text: impl Into<String>,
        choices: Vec<ReplyChoice>,
    ) -> NewOutbound {
        self.reply(message, Some(addressee(kept)), text.into(), choices)
    }

    fn reply(
        &self,
        message: &ChannelMessage,
        mention: Option<Addressee>,
        text: String,
        choices: Vec<ReplyChoice>,
    ) -> NewOutbound {
        let outbound = Outbound {
            kind: OutboundKind::Text,
            mention,
            text,
            choices,
        };
        self.outbound(reply_key(message), &message.at, outbound)
    }

    pub(crate) fn entry(&self, message: &ChannelMessage, audited: &Audited<'_>) -> NewAudit {
        let detail = self.setup.home.redactor.redact(audited.detail);
        NewAudit {
            at: message.at.clone(),
            identity: message.identity.clone(),
            speaker: message.speaker.clone(),
            role: audited.role,
            action: audited.action.to_owned(),
            decision: audited.verdict.as_str().to_owned(),
            detail: shortened(&detail, 500),
            repository: message.repository.clone(),
            task_id: audited.task.or(message.task_id.as_ref()).cloned(),
        }
    }

    /// Settles a message with its answer and its entry in the audit log.
    pub(crate) async fn settle(
        &self,
        message: &ChannelMessage,
        change: MessageChange,
    ) -> Result<(), StoreError> {
        let outcome = change
            .audit
            .last()
            .map(|entry| match entry.decision.as_str() {
                "done" => Acknowledgement::Done,
                _ => Acknowledgement::NotDone,
            });
        let change = MessageChange {
            state: Some(MessageState::Handled),
            ..change
        };
        self.store()
            .change_message(&message.identity, change)
            .await?;
        self.reach("settled");
        if let Some(outcome) = outcome {
            self.acknowledge(message, outcome);
        }
        self.drop_pictures(message).await;
        Ok(())
    }

    /// Settles a message that is not for us. One that got its mention meanwhile is looked at again.
    pub(crate) async fn ignore(&self, message: &ChannelMessage) -> Result<(), StoreError> {
        if !self.store().ignore_message(message).await? {
            self.wake();
        }
        Ok(())
    }
}
