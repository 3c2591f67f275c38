//! Refusals: what somebody is told who may not do something, and when they are told nothing.
//!
//! A refusal is a message too. Strangers and whoever is over a limit are told so a bounded number of
//! times, so that two bots cannot keep each other busy with it. Every refusal is in the audit log.

use codespar_store::{ChannelMessage, MessageChange, MessageStanding, StoreError};

use super::{
    ChannelCore,
    decide::Turn,
    intake::NO_ROLE,
    reply::{Audited, Verdict},
};
use crate::message::{KeptMessage, Origin};

impl ChannelCore {
    /// Answers that something is not done, and why.
    ///
    /// The message is settled with it, so it is not looked at again.
    pub(crate) async fn refuse(
        &self,
        turn: &Turn,
        action: &str,
        text: &str,
    ) -> Result<(), StoreError> {
        self.refuse_with(turn, action, text.to_owned(), None).await
    }

    /// The same for what will not be done later either: a schedule that asks for it is paused.
    pub(super) async fn refuse_for_good(
        &self,
        turn: &Turn,
        action: &str,
        text: &str,
    ) -> Result<(), StoreError> {
        let (text, pause_timer) = with_pause(&turn.kept, text);
        self.refuse_with(turn, action, text, pause_timer).await
    }

    async fn refuse_with(
        &self,
        turn: &Turn,
        action: &str,
        text: String,
        pause_timer: Option<String>,
    ) -> Result<(), StoreError> {
        let audited = Audited {
            role: Some(turn.role),
            action,
            verdict: Verdict::Refused,
            detail: &turn.text,
            task: None,
        };
        let change = MessageChange {
            outbound: vec![self.answer(&turn.message, &turn.kept, text, Vec::new())],
            audit: vec![self.entry(&turn.message, &audited)],
            pause_timer,
            ..MessageChange::default()
        };
        self.settle(&turn.message, change).await
    }

    /// Says what is missing, not what exists; and nothing to someone who was told often enough.
    pub(crate) async fn refuse_stranger(
        &self,
        message: &ChannelMessage,
        kept: &KeptMessage,
        said: &str,
    ) -> Result<(), StoreError> {
        let (text, pause_timer) = with_pause(kept, NO_ROLE);
        let is_told = self.is_refused_enough(message).await?;
        let answer = self.answer(message, kept, text, Vec::new());
        let audited = Audited {
            role: None,
            action: "message",
            verdict: Verdict::Refused,
            detail: said,
            task: None,
        };
        let change = MessageChange {
            standing: MessageStanding::Stranger,
            outbound: if is_told { Vec::new() } else { vec![answer] },
            pause_timer,
            audit: vec![self.entry(message, &audited)],
            ..MessageChange::default()
        };
        self.settle(message, change).await
    }

    /// Said once in an hour, however often it is true: two bots must not keep each other busy.
    pub(super) async fn refuse_for_now(
        &self,
        message: &ChannelMessage,
        kept: &KeptMessage,
        reason: &str,
    ) -> Result<(), StoreError> {
        let hour = message.received_at.as_second().div_euclid(3_600);
        let at = &message.at;
        let mut outbound = self.answer(
            message,
            kept,
            format!("{reason}; nothing more is done for an hour."),
            Vec::new(),
        );
        outbound.key = format!(
            "limit/{}/{}/{}/{hour}",
            at.channel, at.conversation, at.thread
        );
        let is_said = self.store().outbound(&outbound.key).await?.is_some();
        let audited = Audited {
            role: None,
            action: "message",
            verdict: Verdict::Refused,
            detail: reason,
            task: None,
        };
        let change = MessageChange {
            outbound: if is_said { Vec::new() } else { vec![outbound] },
            audit: vec![self.entry(message, &audited)],
            ..MessageChange::default()
        };
        self.settle(message, change).await
    }
}

/// The refusal of what a timer asks for also says that the timer is paused.
fn with_pause(kept: &KeptMessage, text: &str) -> (String, Option<String>) {
    match kept.origin.as_ref().and_then(Origin::timer) {
        Some(timer) => (
            format!("`{}` is paused: {text}", kept.text),
            Some(timer.to_owned()),
        ),
        None => (text.to_owned(), None),
    }
}
