//! Looks at schedules and watched pull requests when their time has come.
//!
//! The process that serves a channel looks at its timers. A due timer is moved on and its message put on
//! record in one transaction: whoever finds it due does it once, and a time that was missed while no
//! process ran is made up for once.

use std::{sync::Arc, time::Duration};

use codespar_store::{ChannelTimer, NewMessage, StoreError, TimerKind};
use jiff::{SignedDuration, Timestamp};

use super::ChannelCore;
use crate::{
    ForgeOrigin, Privacy, Speaker,
    message::{KeptMessage, Origin},
};

/// The longest time without a look: the clock of the machine may be set.
const LONGEST: Duration = Duration::from_secs(30);

impl ChannelCore {
    /// Looks at what is due in a channel, and waits for the next. Does not end by itself.
    pub(crate) async fn run_timers(self: &Arc<Self>, channel: &str) -> Result<(), StoreError> {
        let mut wakes = self.wakes.subscribe();
        loop {
            wakes.mark_unchanged();
            let now = Timestamp::now();
            for timer in self.store().due_timers(channel, now).await? {
                match timer.kind {
                    TimerKind::Schedule => self.run_schedule(&timer, now).await?,
                    TimerKind::Watch => self.look_at_watch(&timer, now).await?,
                }
                self.wake();
            }
            let pause = self.until_next(channel).await?;
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                _ = wakes.changed() => {}
            }
        }
    }

    async fn until_next(&self, channel: &str) -> Result<Duration, StoreError> {
        let now = Timestamp::now();
        let soon = now + SignedDuration::try_from(LONGEST).unwrap_or(SignedDuration::ZERO);
        let due = self.store().due_timers(channel, soon).await?;
        let first = due.first().map(|timer| timer.next_at.duration_since(now));
        let pause =
            first.and_then(|pause| Duration::try_from(pause.max(SignedDuration::ZERO)).ok());
        // Not at once: a timer that cannot be moved on must not keep a processor busy.
        Ok(pause.unwrap_or(LONGEST).max(Duration::from_millis(50)))
    }
}

/// A message that we put on record for the person who made a timer. Its identity is that of the
/// occasion, so the same occasion is one message, whoever finds it.
pub(crate) fn message_of(
    timer: &ChannelTimer,
    identity: String,
    (speaker, forge): (Speaker, Option<ForgeOrigin>),
    text: String,
    origin: Origin,
) -> Result<NewMessage, StoreError> {
    let kept = KeptMessage {
        speaker,
        privacy: Privacy::Room,
        text,
        images: Vec::new(),
        reply_to: None,
        forge,
        origin: Some(origin),
    };
    let body =
        serde_json::to_string(&kept).map_err(|error| StoreError::Database(error.to_string()))?;
    Ok(NewMessage {
        identity,
        at: timer.at.clone(),
        speaker: kept.speaker.id,
        mentioned: true,
        body,
    })
}
