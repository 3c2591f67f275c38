//! Several statements as one piece of work.

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
    pub(super) async fn change(&self) -> Result<Transaction<'_>, StoreError> {
        Transaction::begin(&self.link, "BEGIN IMMEDIATE").await
    }

    /// All that is read is of one moment.
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
