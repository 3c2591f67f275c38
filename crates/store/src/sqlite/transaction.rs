//! Several statements as one piece of work.
//!
//! A transaction is the connection with `BEGIN` run on it. Whoever holds one keeps every other call
//! of this process waiting, so nothing but SQL is awaited in between. If the future is dropped
//! half-way the connection is dropped with it, which rolls back; the next call opens a new one.

use sqlx::SqliteConnection;

use super::{
    SqliteStore,
    failure::Failure,
    link::{Lease, Link},
};
use crate::StoreError;

/// The connection within a transaction. It ends by `settle`; dropped instead, it is undone.
pub(super) struct Transaction<'a>(Lease<'a>);

impl SqliteStore {
    /// Locked for writing from the start, so that what is read still holds when it is acted on.
    /// Waits for writers of other processes as long as the busy timeout of the connection. A
    /// transaction that began as a reader could be refused when it wants to write, without a wait.
    pub(super) async fn change(&self) -> Result<Transaction<'_>, StoreError> {
        Transaction::begin(&self.link, "BEGIN IMMEDIATE").await
    }

    /// All that is read is of one moment. For work of several statements that writes nothing. It
    /// neither waits for writers nor delays those of other processes.
    pub(super) async fn look(&self) -> Result<Transaction<'_>, StoreError> {
        Transaction::begin(&self.link, "BEGIN").await
    }
}

impl<'a> Transaction<'a> {
    async fn begin(link: &'a Link, how: &'static str) -> Result<Self, StoreError> {
        let mut lease = link.lease().await?;
        match run(&mut lease.connection, how).await {
            Ok(()) => Ok(Self(lease)),
            Err(failure) => Err(lease.failed(failure)),
        }
    }

    pub(super) fn connection(&mut self) -> &mut SqliteConnection {
        &mut self.0.connection
    }

    /// Keeps what was done, or undoes it when we would not after all.
    ///
    /// After an error of the database nothing is run: the transaction's state is unknown, and
    /// dropping the connection undoes it.
    pub(super) async fn settle<T>(mut self, outcome: Result<T, Failure>) -> Result<T, StoreError> {
        let ended = match &outcome {
            Ok(_) => run(self.connection(), "COMMIT").await,
            Err(Failure::Refused(_)) => run(self.connection(), "ROLLBACK").await,
            Err(Failure::Sql(_)) => Ok(()),
        };
        self.0.settle(ended.and(outcome))
    }
}

async fn run(connection: &mut SqliteConnection, statement: &'static str) -> Result<(), Failure> {
    sqlx::query(statement).execute(connection).await?;
    Ok(())
}
