//! Sends what is in the outbox: the most urgent first, at the pace of the platform.
//!
//! A message whose delivery was begun by a process that died may have arrived. The adapter is asked
//! for it before it is posted again; only a platform that cannot tell may show it twice.
//!
//! A message that was changed several times since it was last sent is sent once, as it stands:
//! progress may skip states, results and questions are never skipped.

use std::time::Duration;

use codespar_protocol::Backoff;
use codespar_store::{ChangeKind, Delivery, OutboxRow, StoreChange, StoreError, ThreadRef};
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use super::ChannelCore;
use crate::{AddressedMessage, ChannelAdapter, Outbound, OutboundKind, SendError};

/// After so many attempts a message is given up.
const ATTEMPTS: u32 = 8;
const PAUSES: Backoff = Backoff {
    first: Duration::from_secs(1),
    longest: Duration::from_secs(300),
};

/// When the next call of each kind may be made.
struct Schedule {
    post: Instant,
    edit: Instant,
}

impl ChannelCore {
    /// Sends until it is dropped.
    pub(crate) async fn send_all(&self, adapter: &dyn ChannelAdapter) -> Result<(), StoreError> {
        let channel = adapter.name();
        let mut changes = self.setup.runtime.changes().follow().await?;
        let mut schedule = Schedule {
            post: Instant::now(),
            edit: Instant::now(),
        };
        loop {
            let pause = self.send_one(adapter, &mut schedule).await?;
            let is_ours = |change: &StoreChange| matches!(&change.kind, ChangeKind::Outbox { channel: of } if of == channel);
            match pause {
                Pause::None => {}
                Pause::Until(at) => tokio::select! {
                    () = tokio::time::sleep_until(at) => {}
                    () = changes.until(is_ours) => {}
                },
                Pause::Idle => changes.until(is_ours).await,
            }
        }
    }

    /// Sends the first message that may be sent now.
    async fn send_one(
        &self,
        adapter: &dyn ChannelAdapter,
        schedule: &mut Schedule,
    ) -> Result<Pause, StoreError> {
        let rows = self.store().unsent(adapter.name()).await?;
        let mut next: Option<Instant> = None;
        for row in rows {
            let at = earliest(&row, schedule);
            if at > Instant::now() {
                next = Some(next.map_or(at, |next| next.min(at)));
                continue;
            }
            let asked = self.deliver(adapter, &row).await?;
            let (slot, usual) = match row.message_id {
                Some(_) => (&mut schedule.edit, adapter.pace().edit),
                None => (&mut schedule.post, adapter.pace().post),
            };
            // A platform that asks to wait means all calls of the kind.
            *slot = Instant::now() + asked.unwrap_or(usual);
            return Ok(Pause::None);
        }
        Ok(next.map_or(Pause::Idle, Pause::Until))
    }

    /// Gives the time that the platform asks to wait.
    async fn deliver(
        &self,
        adapter: &dyn ChannelAdapter,
        row: &OutboxRow,
    ) -> Result<Option<Duration>, StoreError> {
        let store = self.store();
        let Ok(message) = serde_json::from_str::<Outbound>(&row.body) else {
            let reason = "the row cannot be read".to_owned();
            let failed = Delivery::Failed { reason };
            store.record_delivery(&row.key, failed).await?;
            return Ok(None);
        };
        store.record_delivery(&row.key, Delivery::Begun).await?;
        self.reach("sending");
        let on_the_way = self.on_the_way.read().await;
        let place = self.posting_place(&row.at).await?;
        let sent = send(adapter, &place, row, &message).await;
        self.reach("posted");
        // A draft is left out: the answer comes, and must not wait for it.
        if let (OutboundKind::Draft, Err(error)) = (message.kind, &sent) {
            tracing::debug!("a draft is left out: {error}");
            let revision = row.revision;
            let skipped = Delivery::Skipped { revision };
            store.record_delivery(&row.key, skipped).await?;
            return Ok(None);
        }
        let asked = match sent {
            Err(SendError::RetryAfter(wait)) => Some(wait),
            _ => None,
        };
        let attempts = u32::try_from(row.attempts).unwrap_or(u32::MAX);
        let attempts = attempts.saturating_add(1);
        let delivery = match sent {
            Ok(message_id) => Delivery::Sent {
                revision: row.revision,
                message_id,
            },
            Err(SendError::RetryAfter(wait)) => Delivery::Postponed { until: after(wait) },
            Err(SendError::Permanent(reason)) => Delivery::Failed { reason },
            Err(error) if attempts >= ATTEMPTS => Delivery::Failed {
                reason: error.to_string(),
            },
            Err(_) => Delivery::Postponed {
                until: after(PAUSES.delay(attempts)),
            },
        };
        if let Delivery::Failed { reason } = &delivery {
            tracing::warn!("a message to {} was given up: {reason}", row.at.channel);
        }
        store.record_delivery(&row.key, delivery).await?;
        drop(on_the_way);
        self.reach("sent");
        Ok(asked)
    }
}

enum Pause {
    None,
    Until(Instant),
    /// Nothing is left to be sent.
    Idle,
}

/// One that cannot be edited any more is posted anew.
async fn send(
    adapter: &dyn ChannelAdapter,
    at: &ThreadRef,
    row: &OutboxRow,
    message: &Outbound,
) -> Result<String, SendError> {
    let known = match &row.message_id {
        Some(id) => Some(id.clone()),
        None if row.attempts > 0 => adapter.find_posted(at, &row.key).await?,
        None => None,
    };
    let outgoing = AddressedMessage {
        at,
        key: &row.key,
        message,
    };
    let Some(id) = known else {
        return adapter.post(outgoing).await;
    };
    match adapter.edit(&id, outgoing).await {
        Ok(()) => Ok(id),
        Err(SendError::CannotEdit) => adapter.post(outgoing).await,
        Err(error) => Err(error),
    }
}

fn earliest(row: &OutboxRow, schedule: &Schedule) -> Instant {
    let now = Instant::now();
    let wait = row.not_before.duration_since(Timestamp::now());
    let by_row = match Duration::try_from(wait) {
        Ok(wait) => now + wait,
        // In the past.
        Err(_) => now,
    };
    let by_pace = match row.message_id {
        Some(_) => schedule.edit,
        None => schedule.post,
    };
    by_row.max(by_pace)
}

fn after(wait: Duration) -> Timestamp {
    let wait = SignedDuration::try_from(wait).unwrap_or(SignedDuration::MAX);
    Timestamp::now().checked_add(wait).unwrap_or(Timestamp::MAX)
}
