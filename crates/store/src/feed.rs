//! One reader of a store's changes, however many follow them in this process.

use std::{sync::Arc, time::Duration};

use tokio::sync::{Mutex, broadcast};

use crate::{ChangeCursor, Store, StoreChange, StoreError};

/// Whoever is further behind is told to look for itself.
const BEHIND: usize = 1024;
/// After an error of the store.
const PAUSE: Duration = Duration::from_secs(1);

/// Hands the changes of a store to any number of followers. The store is read only while there is
/// one.
#[derive(Clone)]
pub struct ChangeFeed(Arc<Feed>);

struct Feed {
    store: Arc<dyn Store>,
    /// Nothing in the place of a change: some were missed.
    sender: broadcast::Sender<Option<StoreChange>>,
    is_read: Mutex<bool>,
}

/// Follows the changes from the moment of its making.
pub struct ChangeFollower(broadcast::Receiver<Option<StoreChange>>);

impl ChangeFollower {
    /// The next change; none where some were missed, so that the follower looks at the state of
    /// what it waits for.
    pub async fn next(&mut self) -> Option<StoreChange> {
        match self.0.recv().await {
            Ok(change) => change,
            Err(broadcast::error::RecvError::Lagged(_)) => None,
            // The feed is gone, and with it the process's work.
            Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
        }
    }

    /// Returns at the next change that `matters`, or when some were missed.
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

    /// Follows from now on: what is committed after this returns is not missed.
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
