//! What one client is sent, from its place on.
//!
//! A client names the last place that it knows, and gets everything after it exactly once and in
//! order: what it missed from the store, what comes from the hub. The change from the one to the
//! other loses nothing, because the hub is listened to before the store is read, and repeats
//! nothing, because both count the same places. Beats keep proxies from closing a silent
//! connection, and each of them checks that the token still counts.

use std::{
    collections::VecDeque,
    convert::Infallible,
    sync::{Arc, atomic::Ordering},
};

use bytes::Bytes;
use codespar_protocol::{SessionId, TaskId};
use codespar_store::{ChangeCursor, StoreChange, StoreError};
use futures::Stream;
use serde_json::json;
use tokio::{
    sync::{OwnedSemaphorePermit, broadcast},
    time::{Instant, sleep_until},
};

use super::{frame, hub::Heard, render::LiveEvent};
use crate::{access, access::Client, error::ApiError, state::Shared};

/// What a client wants to hear.
#[derive(Debug, Clone, Default)]
pub(crate) struct EventQuery {
    /// The place of the last change that the client knows; from now on where it is missing.
    pub(crate) after: Option<u64>,
    pub(crate) task: Option<TaskId>,
    pub(crate) session: Option<SessionId>,
}

impl EventQuery {
    fn wants(&self, event: &LiveEvent) -> bool {
        let by_task = self.task.is_none() || self.task == event.task;
        let by_session = self.session.is_none() || self.session == event.session;
        by_task && by_session
    }
}

/// How far a stream is.
enum Stage {
    /// The first event is not sent yet.
    Opening,
    /// Reads the database up to this place.
    CatchingUp(u64),
    /// Hears the hub.
    Live,
    Ended,
}

/// The state of one connection. It holds a permit of the limit on streams until it is dropped,
/// however the connection ends.
pub(crate) struct EventStream {
    state: Shared,
    client: Client,
    query: EventQuery,
    heard: broadcast::Receiver<Heard>,
    stage: Stage,
    /// The last place that was sent or passed over.
    cursor: u64,
    /// Changes that were read and not sent yet; one read of the database at most.
    queue: VecDeque<StoreChange>,
    next_heartbeat: Instant,
    _permit: OwnedSemaphorePermit,
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.state.events.clients.fetch_sub(1, Ordering::Relaxed);
    }
}

impl EventStream {
    pub(crate) fn open(state: Shared, client: Client, query: EventQuery) -> Result<Self, ApiError> {
        let permit = state.streams.clone().try_acquire_owned();
        let permit = permit
            .map_err(|_| ApiError::too_many("too many clients follow events already; try later"))?;
        state.events.clients.fetch_add(1, Ordering::Relaxed);
        Ok(Self {
            // Before the place is looked up: what comes in between is not missed.
            heard: state.events.listen(),
            next_heartbeat: Instant::now() + state.limits.heartbeat,
            state,
            client,
            query,
            stage: Stage::Opening,
            cursor: 0,
            queue: VecDeque::new(),
            _permit: permit,
        })
    }

    /// The body of the response.
    pub(crate) fn into_bytes(self) -> impl Stream<Item = Result<Bytes, Infallible>> + Send {
        futures::stream::unfold(self, |mut stream| async move {
            let bytes = stream.next().await?;
            Some((Ok(bytes), stream))
        })
    }

    /// The next thing to send; none when the stream is over. An error of the database ends it: the
    /// client connects again and goes on from its place.
    async fn next(&mut self) -> Option<Bytes> {
        match self.step().await {
            Ok(bytes) => bytes,
            Err(error) => {
                tracing::warn!(%error, "an event stream ended");
                None
            }
        }
    }

    async fn step(&mut self) -> Result<Option<Bytes>, StoreError> {
        loop {
            if let Some(change) = self.queue.pop_front() {
                self.cursor = change.cursor.0;
                let rendered = self.state.events.render(&self.state.runtime, &change);
                match rendered.await? {
                    Some(event) if self.query.wants(&event) => return Ok(Some(sent(&event))),
                    _ => continue,
                }
            }
            match self.stage {
                Stage::Opening => return self.begin().await.map(Some),
                Stage::CatchingUp(until) if self.cursor < until => {
                    let read = self.state.store().changes(ChangeCursor(self.cursor)).await;
                    match read {
                        Ok(changes) => self.queue.extend(changes),
                        Err(StoreError::ChangesForgotten { .. }) => {
                            return self.resync().await.map(Some);
                        }
                        Err(error) => return Err(error),
                    }
                }
                Stage::CatchingUp(_) => self.stage = Stage::Live,
                Stage::Ended => return Ok(None),
                Stage::Live => {
                    if let Some(bytes) = self.wait().await? {
                        return Ok(Some(bytes));
                    }
                }
            }
        }
    }

    /// Says where the client is. A place that the order has not reached is of another database.
    async fn begin(&mut self) -> Result<Bytes, StoreError> {
        let newest = self.state.store().newest_change().await?.0;
        self.cursor = self.query.after.unwrap_or(newest);
        if self.cursor > newest {
            return self.resync().await;
        }
        self.stage = Stage::CatchingUp(newest);
        let data = json!({"cursor": self.cursor}).to_string();
        Ok(frame::first(self.cursor, "ready", &data))
    }

    /// What the client has is not to be mended by events: it must look at everything anew.
    async fn resync(&mut self) -> Result<Bytes, StoreError> {
        let newest = self.state.store().newest_change().await?.0;
        self.cursor = newest;
        self.queue.clear();
        self.stage = Stage::CatchingUp(newest);
        let data = json!({"cursor": newest}).to_string();
        Ok(frame::first(newest, "resync", &data))
    }

    /// Waits for something to send, or for a reason to look at the database.
    async fn wait(&mut self) -> Result<Option<Bytes>, StoreError> {
        tokio::select! {
            biased;
            () = self.state.stopping.cancelled() => {
                self.stage = Stage::Ended;
                Ok(Some(frame::event(None, "restart", "{\"message\":\"the server restarts\"}")))
            }
            heard = self.heard.recv() => match heard {
                Ok(Heard::Event(event)) => Ok(self.take(&event)),
                Ok(Heard::Gap) | Err(broadcast::error::RecvError::Lagged(_)) => {
                    let newest = self.state.store().newest_change().await?;
                    self.stage = Stage::CatchingUp(newest.0);
                    Ok(None)
                }
                Err(broadcast::error::RecvError::Closed) => {
                    self.stage = Stage::Ended;
                    Ok(None)
                }
            },
            () = sleep_until(self.next_heartbeat) => {
                self.next_heartbeat = Instant::now() + self.state.limits.heartbeat;
                // A token that was revoked since hears nothing more.
                match access::is_still_valid(&self.state, &self.client).await {
                    Ok(true) => Ok(Some(frame::heartbeat(self.cursor))),
                    _ => {
                        self.stage = Stage::Ended;
                        Ok(None)
                    }
                }
            }
        }
    }

    /// What was read from the database before is not sent again.
    fn take(&mut self, event: &Arc<LiveEvent>) -> Option<Bytes> {
        if let Some(cursor) = event.cursor {
            if cursor <= self.cursor {
                return None;
            }
            self.cursor = cursor;
        }
        self.query.wants(event).then(|| sent(event))
    }
}

fn sent(event: &LiveEvent) -> Bytes {
    frame::event(event.cursor, event.name, &event.data)
}
