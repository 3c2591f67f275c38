//! A piece of work on the database: begun, done, settled.
//!
//! Whoever holds one keeps others waiting (every call of this process with SQLite, other writers
//! with PostgreSQL), so nothing but SQL is awaited in between. Dropped half-way, the connection is
//! dropped with it, which rolls back.

use std::{path::Path, time::Duration};

use async_trait::async_trait;
use codespar_protocol::SessionId;
use tokio::sync::{MutexGuard, watch};

use super::{Connection, Link, failure::Failure, query};
use crate::{SessionHold, StoreError, TaskLease, postgres::Server, sqlite::ConnectionSlot};

/// What a piece of work may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// One statement, or a script that begins and commits by itself.
    Single,
    /// Several statements that read, all of one moment.
    Look,
    /// What is read still holds when it is acted on: there is one change at a time.
    Change,
    /// Takes ready tasks, or writes to one of them alone (its output, its tree). With PostgreSQL
    /// several may do so at once, each locking the rows it needs or skipping those that another is
    /// about to take; with SQLite it is a change.
    Claim,
}

/// One of the two databases.
#[async_trait]
pub(crate) trait Backend: Send + Sync {
    async fn begin(&self, access: Access) -> Result<Work<'_>, StoreError>;

    /// Takes a session, which need not exist; under a lease, also from an earlier lease of the same
    /// task whose process may only be cut off.
    async fn hold(
        &self,
        id: SessionId,
        lease: Option<&TaskLease>,
    ) -> Result<SessionHold, StoreError>;

    /// The number under which this process holds a session: an append of a session that has
    /// another by now is refused. `None` where it holds none, or cannot lose one.
    fn hold_epoch(&self, id: SessionId) -> Option<i64>;

    /// Tells of writes from the moment of the call.
    fn writes(&self) -> Writes;

    /// Gives the room of what was removed back to the disk, where it is ours to give.
    async fn give_room_back(&self);

    /// On the disk, where it is ours to count.
    fn size(&self) -> u64;

    /// Takes away what processes that are gone have left behind.
    fn sweep(&self);

    /// Processes on other hosts may use it too.
    fn is_shared(&self) -> bool;

    /// Which database it is, without a password.
    fn place(&self) -> String;

    /// Whether it is on a server, which other machines reach too.
    fn is_on_server(&self) -> bool;

    async fn close_database(&self) -> Result<(), StoreError>;

    async fn single(&self) -> Result<Work<'_>, StoreError> {
        self.begin(Access::Single).await
    }

    async fn look(&self) -> Result<Work<'_>, StoreError> {
        self.begin(Access::Look).await
    }

    async fn change(&self) -> Result<Work<'_>, StoreError> {
        self.begin(Access::Change).await
    }
}

/// Hears of writes, by this process or another.
pub(crate) struct Writes(pub(crate) watch::Receiver<u64>);

impl Writes {
    /// Returns when something was written since the last return, or since the making.
    pub(crate) async fn wait(&mut self) {
        /// Between two looks where nobody tells of writes.
        const LOOK: Duration = Duration::from_millis(200);

        if self.0.changed().await.is_err() {
            // Whoever watched is gone: its runtime ended.
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// The connection for one piece of work. It ends by `settle`; dropped instead, it is undone.
pub(crate) struct Work<'a> {
    connection: Connection,
    home: Home<'a>,
}

/// Where the connection goes back to.
pub(crate) enum Home<'a> {
    Sqlite {
        slot: MutexGuard<'a, ConnectionSlot>,
        dir: &'a Path,
    },
    Postgres {
        server: &'a Server,
        /// Of a change, until it is settled.
        turn: Option<MutexGuard<'a, ()>>,
    },
}

impl Home<'_> {
    pub(crate) fn error(&self, failure: Failure) -> StoreError {
        match self {
            Self::Sqlite { dir, .. } => crate::sqlite::into_store_error(failure, dir),
            Self::Postgres { server, .. } => server.error(failure),
        }
    }
}

impl<'a> Work<'a> {
    pub(crate) fn new(connection: Connection, home: Home<'a>) -> Self {
        Self { connection, home }
    }

    pub(crate) fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// Keeps what was done, or undoes it when we would not after all.
    ///
    /// After an error of the database nothing is run, and the connection is not used again: the
    /// transaction's state is unknown, and dropping the connection undoes it.
    pub(crate) async fn settle<T>(mut self, outcome: Result<T, Failure>) -> Result<T, StoreError> {
        let ended = match (self.connection.access, &outcome) {
            (Access::Single, _) | (_, Err(Failure::Sql(_))) => Ok(()),
            (_, Ok(_)) => run(&mut self.connection, "COMMIT").await,
            (_, Err(Failure::Refused(_))) => run(&mut self.connection, "ROLLBACK").await,
        };
        let outcome = ended.and(outcome);
        if matches!(outcome, Err(Failure::Sql(_))) {
            return outcome.map_err(|failure| self.home.error(failure));
        }
        let outcome = outcome.map_err(|failure| self.home.error(failure));
        match (self.connection.link, self.home) {
            (link @ Link::Sqlite(_), Home::Sqlite { mut slot, .. }) => {
                *slot = ConnectionSlot::Open(link);
            }
            (Link::Postgres(link), Home::Postgres { turn, .. }) => {
                link.give_back();
                drop(turn);
            }
            _ => {}
        }
        outcome
    }
}

async fn run(connection: &mut Connection, statement: &'static str) -> Result<(), Failure> {
    query(statement).execute(connection).await?;
    Ok(())
}
