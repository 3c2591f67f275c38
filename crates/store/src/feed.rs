//! One reader of a store's changes, however many follow them in this process.
//!
//! The first follower starts a background task that reads `Store::changes` in a loop and broadcasts
//! each change; it ends when the last follower is dropped. A slow follower does not hold up the
//! others: it loses the oldest changes and gets `None` instead.
//!
//! A change is a hint, not the state. Whoever waits for something follows first, then looks at the
//! store, then waits; and looks again after every `None`. In that order nothing is missed.

use std::{sync::Arc, time::Duration};

use tokio::sync::{Mutex, broadcast};

use crate::{ChangeCursor, Store, StoreChange, StoreError};

/// Whoever is further behind is told to look for itself. In changes, for each follower.
const BEHIND: usize = 1024;
/// Between an error of the store and the next attempt to read it.
const PAUSE: Duration = Duration::from_secs(1);

/// Hands the changes of a store to any number of followers. The store is read only while there is
/// one.
#[derive(Clone)]
pub struct ChangeFeed(Arc<Feed>);

struct Feed {
    store: Arc<dyn Store>,
    /// Nothing in the place of a change: some were missed.
    sender: broadcast::Sender<Option<StoreChange>>,
    /// Whether a task reads the store. The lock is held while one is started and while one decides
    /// to end, so that a follower never relies on a reader that is about to leave.
    is_read: Mutex<bool>,
}

/// Follows the changes from the moment of its making.
pub struct ChangeFollower(broadcast::Receiver<Option<StoreChange>>);

impl ChangeFollower {
    /// The next change; none where some were missed, so that the follower looks at the state of
    /// what it waits for. Safe to cancel: a change that was not returned is given to the next call.
    pub async fn next(&mut self) -> Option<StoreChange> {
        match self.0.recv().await {
            Ok(change) => change,
            Err(broadcast::error::RecvError::Lagged(_)) => None,
            // The feed is gone, and with it the process's work.
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }

    /// Returns at the next change that `matters`, or when some were missed. Does not look at the
    /// state itself: call it after looking.
    pub async fn until(&mut self, matters: impl Fn(&StoreChange) -> bool) {
        while self.next().await.is_some_and(|change| !matters(&change)) {}
    }
}

impl ChangeFeed {
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self(Arc::new(Feed {
            store,
            sender: broadcast::channel(BEHIND).0,
            is_read: Mutex::new(false),
        }))
    }

    /// Follows from now on: what is committed after this returns is not missed. Costs a query only
    /// where nobody followed before; if that fails nothing is started, and the next call tries
    /// again.
    pub async fn follow(&self) -> Result<ChangeFollower, StoreError> {
        let follower = ChangeFollower(self.0.sender.subscribe());
        let mut is_read = self.0.is_read.lock().await;
        if !*is_read {
            let newest = self.0.store.newest_change().await?;
            *is_read = true;
            tokio::spawn(self.0.clone().read(newest));
        }
        Ok(follower)
    }
}

impl Feed {
    /// Reads from `after` on until nobody follows.
    ///
    /// After an error the followers get `None` at once, and a second one when the store can be read
    /// again. Reading then goes on from the newest change: what was committed in between is covered
    /// by the second `None`, so it does not matter whether it is still kept.
    async fn read(self: Arc<Self>, mut after: ChangeCursor) {
        loop {
            let changes = tokio::select! {
                changes = self.store.changes(after) => changes,
                () = self.sender.closed() => {
                    let mut is_read = self.is_read.lock().await;
                    if self.sender.receiver_count() == 0 {
                        *is_read = false;
                        return;
                    }
                    continue;
                }
            };
            match changes {
                Ok(changes) => {
                    for change in changes {
                        after = change.cursor;
                        let _ = self.sender.send(Some(change));
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "the changes could not be read");
                    let _ = self.sender.send(None);
                    tokio::time::sleep(PAUSE).await;
                    if let Ok(newest) = self.store.newest_change().await {
                        after = newest;
                        let _ = self.sender.send(None);
                    }
                }
            }
        }
    }
}
