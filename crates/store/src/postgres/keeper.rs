//! One connection that a process keeps for itself: it holds sessions and hears of commits.
//!
//! A session is held by an advisory lock, which the server lets go of when the connection ends,
//! with the process or without it. Each hold also counts `hold_epoch` of the session up, and
//! appends name that number: a holder that lost its connection, and with it the session to another
//! process, cannot append any more. Where nobody took it in between, the hold is taken again on the
//! next connection and goes on.
//!
//! Notifications that were sent while there was no connection are lost, so a new connection counts
//! as a write.

use std::{collections::HashMap, sync::Arc, time::Duration};

use codespar_protocol::SessionId;
use parking_lot::Mutex;
use sqlx::{
    PgPool,
    postgres::{PgListener, PgPoolOptions},
};
use tokio::sync::{mpsc, oneshot, watch};

use super::server::Server;
use crate::{
    StoreError, TaskLease,
    engine::{Writes, failure::Failure},
};

/// Between attempts to connect, and to take back what was held.
const PAUSE: Duration = Duration::from_millis(500);
/// How long a caller waits for a server that is away.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long the end of the connection is waited for.
const FAREWELL: Duration = Duration::from_secs(2);

const TAKE: &str = "SELECT pg_try_advisory_lock(hashtextextended($1, 0))";
const LET_GO: &str = "SELECT pg_advisory_unlock(hashtextextended($1, 0))";
const COUNT_HOLD: &str = "UPDATE sessions SET hold_epoch = hold_epoch + 1, held_for_task = $2, \
     held_under_epoch = $3 WHERE id = $1 RETURNING hold_epoch";
/// Whether there is a later lease of the task.
const IS_SUPERSEDED: &str =
    "SELECT EXISTS (SELECT 1 FROM tasks WHERE id = $1 AND lease_epoch > $2)";
/// Whoever holds a session under an earlier lease of the same task cannot append any more, nor take
/// it back.
const FENCE_EARLIER_HOLD: &str = "UPDATE sessions SET hold_epoch = hold_epoch + 1 \
     WHERE id = $1 AND held_for_task = $2 AND held_under_epoch < $3";
/// Ends the connection that holds a session under an earlier lease of the same task. The locks of
/// a connection are known by the two halves of their key.
const END_EARLIER_HOLD: &str = "SELECT pg_terminate_backend(l.pid, 5000) FROM sessions s \
     JOIN pg_locks l ON l.locktype = 'advisory' AND l.granted AND l.objsubid = 1 \
     AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) \
     AND (l.classid::BIGINT << 32 | l.objid::BIGINT) = hashtextextended($1, 0) \
     AND l.pid <> pg_backend_pid() \
     WHERE s.id = $2 AND s.held_for_task = $3 AND s.held_under_epoch < $4";
const HOLD_EPOCH: &str = "SELECT hold_epoch FROM sessions WHERE id = $1";

/// What this process holds, by the number of the hold.
type Held = Arc<Mutex<HashMap<SessionId, i64>>>;

pub(super) struct Keeper {
    orders: mpsc::UnboundedSender<Order>,
    held: Held,
    writes: watch::Receiver<u64>,
}

enum Order {
    Hold(
        SessionId,
        Option<TaskLease>,
        oneshot::Sender<Result<HoldGuard, Failure>>,
    ),
    LetGo(SessionId),
    Stop(oneshot::Sender<()>),
}

/// Lets go when it is dropped.
pub(super) struct HoldGuard {
    id: SessionId,
    orders: mpsc::WeakUnboundedSender<Order>,
}

impl Drop for HoldGuard {
    fn drop(&mut self) {
        // Without a keeper there is no connection, and so no lock.
        if let Some(orders) = self.orders.upgrade() {
            let _ = orders.send(Order::LetGo(self.id));
        }
    }
}

impl Keeper {
    /// Connects before it returns: what is committed from then on is heard of.
    pub(super) async fn start(server: &Server) -> Result<Self, StoreError> {
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .max_lifetime(None)
            .idle_timeout(None)
            .acquire_timeout(PATIENCE)
            .connect_lazy_with(server.options.clone());
        let (orders, inbox) = mpsc::unbounded_channel();
        let (told, writes) = watch::channel(0);
        let held = Held::default();
        let mut work = Kept {
            pool,
            channel: server.names.channel.clone(),
            lock_prefix: format!("codespar session {} ", server.names.schema),
            orders: orders.downgrade(),
            held: held.clone(),
            told,
            missing: Vec::new(),
        };
        let listener = work.connect().await;
        let listener = listener.map_err(|error| server.error(Failure::Sql(error)))?;
        tokio::spawn(work.run(listener, inbox));
        Ok(Self {
            orders,
            held,
            writes,
        })
    }

    pub(super) async fn hold(
        &self,
        id: SessionId,
        lease: Option<TaskLease>,
    ) -> Result<HoldGuard, Failure> {
        let (sender, answer) = oneshot::channel();
        let sent = self.orders.send(Order::Hold(id, lease, sender));
        sent.map_err(|_| sqlx::Error::PoolClosed)?;
        match tokio::time::timeout(PATIENCE, answer).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) => Err(sqlx::Error::PoolClosed.into()),
            Err(_) => Err(sqlx::Error::PoolTimedOut.into()),
        }
    }

    pub(super) fn epoch_of(&self, id: SessionId) -> Option<i64> {
        self.held.lock().get(&id).copied()
    }

    pub(super) fn writes(&self) -> Writes {
        let mut writes = self.writes.clone();
        writes.mark_unchanged();
        Writes(writes)
    }

    /// Closes the connection, and with it all holds. One that is lost just now is not waited for:
    /// its holds have ended with it.
    pub(super) async fn stop(&self) {
        let (sender, stopped) = oneshot::channel();
        if self.orders.send(Order::Stop(sender)).is_ok() {
            let _ = tokio::time::timeout(FAREWELL, stopped).await;
        }
    }
}

/// What the background task works with.
struct Kept {
    pool: PgPool,
    channel: String,
    lock_prefix: String,
    orders: mpsc::WeakUnboundedSender<Order>,
    held: Held,
    told: watch::Sender<u64>,
    /// Held, and not taken back yet on this connection: the server may still see the lost one.
    missing: Vec<(SessionId, i64)>,
}

impl Kept {
    async fn connect(&mut self) -> Result<PgListener, sqlx::Error> {
        let mut listener = PgListener::connect_with(&self.pool).await?;
        listener.ignore_pool_close_event(true);
        // A new connection is made here and not by the driver: what was held is taken back on it.
        listener.eager_reconnect(false);
        listener.listen(&self.channel).await?;
        Ok(listener)
    }

    /// Ends with the store, which drops the sender of orders.
    async fn run(mut self, mut listener: PgListener, mut inbox: mpsc::UnboundedReceiver<Order>) {
        loop {
            tokio::select! {
                order = inbox.recv() => match order {
                    Some(Order::Hold(id, lease, answer)) => {
                        let outcome = self.hold(&mut listener, id, lease.as_ref()).await;
                        // Nobody waits any more: the guard is dropped, which lets go.
                        let _ = answer.send(outcome);
                    }
                    Some(Order::LetGo(id)) => self.let_go(&mut listener, id).await,
                    Some(Order::Stop(done)) => {
                        drop(listener);
                        self.pool.close().await;
                        let _ = done.send(());
                        return;
                    }
                    None => break,
                },
                told = listener.try_recv() => match told {
                    Ok(Some(_)) => {
                        while listener.next_buffered().is_some() {}
                        self.told.send_modify(|count| *count += 1);
                    }
                    Ok(None) | Err(_) => {
                        // First: the pool has one connection.
                        drop(listener);
                        let Some(connected) = self.connected_again().await else {
                            return;
                        };
                        listener = connected;
                        self.begin_again(&mut listener).await;
                    }
                },
                () = tokio::time::sleep(PAUSE), if !self.missing.is_empty() => {
                    self.retake(&mut listener).await;
                }
            }
        }
        drop(listener);
        self.pool.close().await;
    }

    /// `None` when the store is gone meanwhile.
    async fn connected_again(&mut self) -> Option<PgListener> {
        while self.orders.strong_count() > 0 {
            match self.connect().await {
                Ok(listener) => return Some(listener),
                Err(error) => {
                    tracing::debug!(%error, "the server cannot be listened to");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
        None
    }

    async fn begin_again(&mut self, listener: &mut PgListener) {
        self.missing = self.all_held();
        self.retake(listener).await;
        self.told.send_modify(|count| *count += 1);
    }

    fn all_held(&self) -> Vec<(SessionId, i64)> {
        let held = self.held.lock();
        held.iter().map(|(id, epoch)| (*id, *epoch)).collect()
    }

    fn lock_name(&self, id: SessionId) -> String {
        format!("{}{id}", self.lock_prefix)
    }

    async fn take(&self, listener: &mut PgListener, id: SessionId) -> Result<bool, sqlx::Error> {
        let query = sqlx::query_scalar(TAKE).bind(self.lock_name(id));
        query.fetch_one(listener).await
    }

    async fn hold(
        &mut self,
        listener: &mut PgListener,
        id: SessionId,
        lease: Option<&TaskLease>,
    ) -> Result<HoldGuard, Failure> {
        if self.held.lock().contains_key(&id) {
            let pid = Some(std::process::id());
            return Err(StoreError::SessionInUse { id, pid }.into());
        }
        if self.is_superseded(listener, lease).await? {
            return Err(StoreError::HoldLost(id).into());
        }
        let is_taken = self.take(listener, id).await?
            || self.end_earlier_hold(listener, id, lease).await? && self.take(listener, id).await?;
        if !is_taken {
            return Err(StoreError::SessionInUse { id, pid: None }.into());
        }
        let query = sqlx::query_scalar(COUNT_HOLD)
            .bind(id.to_string())
            .bind(lease.map(|lease| lease.task.as_str()))
            .bind(lease.map(|lease| lease.epoch.cast_signed()));
        let counted: Result<Option<i64>, sqlx::Error> = query.fetch_optional(&mut *listener).await;
        let epoch = match counted {
            Ok(epoch) => epoch,
            Err(error) => {
                self.let_go(listener, id).await;
                return Err(error.into());
            }
        };
        self.held.lock().insert(id, epoch.unwrap_or_default());
        let orders = self.orders.clone();
        Ok(HoldGuard { id, orders })
    }

    /// A process that stood still between its claim and this has nothing to do here any more.
    async fn is_superseded(
        &self,
        listener: &mut PgListener,
        lease: Option<&TaskLease>,
    ) -> Result<bool, sqlx::Error> {
        let Some(lease) = lease else {
            return Ok(false);
        };
        let query = sqlx::query_scalar(IS_SUPERSEDED)
            .bind(lease.task.as_str())
            .bind(lease.epoch.cast_signed());
        query.fetch_one(listener).await
    }

    /// Whether there was one. Whoever held it has lost its connection: it takes back its other
    /// sessions, and finds this one counted up.
    async fn end_earlier_hold(
        &self,
        listener: &mut PgListener,
        id: SessionId,
        lease: Option<&TaskLease>,
    ) -> Result<bool, sqlx::Error> {
        let Some(lease) = lease else {
            return Ok(false);
        };
        // First, and committed: its process may be back, and quicker to take the session again.
        let fenced = sqlx::query(FENCE_EARLIER_HOLD)
            .bind(id.to_string())
            .bind(lease.task.as_str())
            .bind(lease.epoch.cast_signed())
            .execute(&mut *listener)
            .await?;
        if fenced.rows_affected() == 0 {
            return Ok(false);
        }
        let query = sqlx::query_scalar(END_EARLIER_HOLD)
            .bind(self.lock_name(id))
            .bind(id.to_string())
            .bind(lease.task.as_str())
            .bind(lease.epoch.cast_signed());
        let ended: Vec<bool> = query.fetch_all(listener).await?;
        Ok(ended.contains(&true))
    }

    async fn let_go(&mut self, listener: &mut PgListener, id: SessionId) {
        self.held.lock().remove(&id);
        let query = sqlx::query(LET_GO).bind(self.lock_name(id));
        if let Err(error) = query.execute(listener).await {
            // Without the connection there is no lock either.
            tracing::debug!(%error, "a session was let go by losing the connection");
        }
    }

    /// Takes back what was held before the connection was lost. A session that another process took
    /// meanwhile stays in the list under its old number, so that appends to it are refused.
    async fn retake(&mut self, listener: &mut PgListener) {
        for (id, epoch) in std::mem::take(&mut self.missing) {
            let is_held = self.held.lock().contains_key(&id);
            if is_held && self.retake_one(listener, id, epoch).await.is_none() {
                self.missing.push((id, epoch));
            }
        }
    }

    /// `None` where it should be tried again.
    async fn retake_one(&self, listener: &mut PgListener, id: SessionId, epoch: i64) -> Option<()> {
        let query = sqlx::query_scalar(HOLD_EPOCH).bind(id.to_string());
        let found: Option<i64> = query.fetch_optional(&mut *listener).await.ok()?;
        let is_free = found.is_none_or(|found| found == epoch);
        (!is_free || self.take(listener, id).await.ok()?).then_some(())
    }
}
