//! Stops that are no messages: a sign on a message, and the platform's own button.
//!
//! Both count with the rights of whoever gives them, and are on record like a message of theirs. Only
//! an answer that a model is writing is stopped at once: its thread takes no message meanwhile.

use codespar_store::{MessageState, StoreError, ThreadRef};

use super::{
    ChannelCore,
    intake::unrecorded,
    reply::{Audited, Verdict},
};
use crate::{ChatCommand, Inbound, Privacy, Speaker, message::KeptMessage, needed_role};

/// Somebody reacted to a message with a stop sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopReaction {
    /// What the platform knows the reaction by.
    pub identity: String,
    pub channel: String,
    pub conversation: String,
    /// The platform's id of the message.
    pub message_id: String,
    pub speaker: Speaker,
}

/// Somebody pressed the platform's own button to stop what goes on in a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadStop {
    /// What the platform knows the press by.
    pub identity: String,
    pub at: ThreadRef,
    pub speaker: Speaker,
}

/// Whether an emoji is a stop sign: ⏹ or 🛑. Clients may ask for it in colour, by an invisible
/// character after it.
pub(crate) fn is_stop_sign(emoji: &str) -> bool {
    matches!(emoji.trim_end_matches('\u{fe0f}'), "⏹" | "🛑")
}

impl ChannelCore {
    /// Takes a stop sign on a message of a task as the command to stop it, with the rights of who
    /// gave it. On other messages it means nothing.
    pub async fn receive_stop(&self, reaction: StopReaction) -> Result<(), StoreError> {
        let Some((at, task)) = self.task_reacted_to(&reaction).await? else {
            return Ok(());
        };
        let inbound = Inbound {
            identity: reaction.identity,
            at,
            speaker: reaction.speaker,
            mentioned: true,
            privacy: Privacy::Room,
            text: format!("stop {task}"),
            images: Vec::new(),
            reply_to: None,
        };
        self.receive(inbound).await.map(|_| ())
    }

    /// Whether a stop sign on the message means something.
    pub(crate) async fn is_stoppable(&self, reaction: &StopReaction) -> Result<bool, StoreError> {
        Ok(self.task_reacted_to(reaction).await?.is_some())
    }

    /// The task that a message of ours is about, and its thread.
    async fn task_reacted_to(
        &self,
        reaction: &StopReaction,
    ) -> Result<Option<(ThreadRef, String)>, StoreError> {
        let place = (reaction.channel.as_str(), reaction.conversation.as_str());
        let row = self.our_message(place, &reaction.message_id);
        Ok(row.await?.and_then(|row| {
            let (task, _) = row.key.strip_prefix("task/")?.split_once('/')?;
            Some((row.at.clone(), task.to_owned()))
        }))
    }

    /// Takes the press of a button as the command to stop what its thread is at work on. Without
    /// work it means nothing.
    pub async fn receive_thread_stop(&self, stop: ThreadStop) -> Result<(), StoreError> {
        let at = self.thread_of(stop.at).await?;
        let open = self.store().open_messages(&at.channel).await?;
        let is_at_work = |message: &codespar_store::ChannelMessage| {
            message.at == at && message.state == MessageState::Working
        };
        let mut working = open.into_iter().rev().filter(is_at_work);
        let task = working.find_map(|message| message.task_id);
        let inbound = |text: String| Inbound {
            identity: stop.identity.clone(),
            at: at.clone(),
            speaker: stop.speaker,
            mentioned: true,
            privacy: Privacy::Room,
            text,
            images: Vec::new(),
            reply_to: None,
        };
        if self.presses.lock().contains(&stop.identity) {
            return Ok(());
        }
        match task {
            Some(task) => {
                let inbound = inbound(format!("stop {task}"));
                self.receive(inbound).await.map(|_| ())
            }
            None => {
                let inbound = inbound("stop".to_owned());
                self.stop_answer(&inbound).await?;
                self.note_press(inbound.identity);
                Ok(())
            }
        }
    }

    /// A press that is not on record as a message must not stop what begins later, if it is delivered
    /// again.
    fn note_press(&self, identity: String) {
        const MOST: usize = 256;
        let mut presses = self.presses.lock();
        if presses.len() >= MOST {
            presses.pop_front();
        }
        presses.push_back(identity);
    }

    /// Stops the answer that is being written in a thread: for who asked for it, and for who may stop
    /// work.
    async fn stop_answer(&self, stop: &Inbound) -> Result<(), StoreError> {
        let under_way = self.answers.lock().get(&stop.at).cloned();
        let Some(under_way) = under_way else {
            self.show_idle(&stop.at);
            return Ok(());
        };
        let message = unrecorded(stop);
        let kept = KeptMessage {
            speaker: stop.speaker.clone(),
            privacy: stop.privacy,
            text: stop.text.clone(),
            images: Vec::new(),
            reply_to: None,
            forge: None,
            origin: None,
        };
        let binding = self.store().thread_binding(&stop.at).await?;
        let (role, _) = self.role_of(&message, &kept, &binding).await?;
        let needed = needed_role(&ChatCommand::Stop { id: None });
        let may =
            role.is_some_and(|role| role.allows(needed) || under_way.speaker == stop.speaker.id);
        let audited = Audited {
            role,
            action: "stop",
            verdict: match may {
                true => Verdict::Done,
                false => Verdict::Refused,
            },
            detail: "the answer that is being written",
            task: None,
        };
        let entry = self.entry(&message, &audited);
        self.store().append_audit(entry).await?;
        if may {
            under_way.cancel.cancel();
        }
        Ok(())
    }
}
