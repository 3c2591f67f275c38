//! The one connection of a process to the database.
//!
//! One, because SQLite has one writer at a time: within the process callers queue fairly here
//! instead of sleeping on each other's locks.

use std::path::{Path, PathBuf};

use sqlx::{ConnectOptions, Connection, SqliteConnection, sqlite::SqliteConnectOptions};
use tokio::sync::{Mutex, MutexGuard};

use super::{failure::Failure, file_id::FileId};
use crate::StoreError;

/// Makes a new connection when the last one was dropped, with the same options. The schema is not
/// looked at again.
pub(super) struct Link {
    dir: PathBuf,
    options: SqliteConnectOptions,
    /// The file that was opened.
    file: FileId,
    slot: Mutex<ConnectionSlot>,
}

enum ConnectionSlot {
    Open(SqliteConnection),
    /// Taken and not given back: its work failed or was cancelled. The next lease reopens.
    Empty,
    Closed,
}

/// The connection, for one piece of work. It goes back by `settle`; otherwise it is dropped,
/// which undoes an unfinished transaction.
pub(super) struct Lease<'a> {
    pub(super) connection: SqliteConnection,
    slot: MutexGuard<'a, ConnectionSlot>,
    dir: &'a Path,
}

impl Link {
    pub(super) fn new(
        dir: PathBuf,
        options: SqliteConnectOptions,
        file: FileId,
        connection: SqliteConnection,
    ) -> Self {
        Self {
            dir,
            options,
            file,
            slot: Mutex::new(ConnectionSlot::Open(connection)),
        }
    }

    /// Waits for its turn. Refused when the file is not there any more: SQLite would go on with
    /// the removed one, and all that is written would be lost at the end.
    pub(super) async fn lease(&self) -> Result<Lease<'_>, StoreError> {
        let mut slot = self.slot.lock().await;
        self.file.check(&self.dir)?;
        let connection = match std::mem::replace(&mut *slot, ConnectionSlot::Empty) {
            ConnectionSlot::Open(connection) => connection,
            ConnectionSlot::Empty => (self.options.connect().await)
                .map_err(|error| Failure::Sql(error).into_store_error(&self.dir))?,
            ConnectionSlot::Closed => {
                *slot = ConnectionSlot::Closed;
                return Err(StoreError::Database("the store was closed".to_owned()));
            }
        };
        Ok(Lease {
            connection,
            slot,
            dir: &self.dir,
        })
    }

    /// Waits for the work under way. SQLite checkpoints when the last connection to a file closes;
    /// if that fails, the log stays and the next process reads it.
    pub(super) async fn close(&self) -> Result<(), StoreError> {
        let mut slot = self.slot.lock().await;
        if let ConnectionSlot::Open(connection) =
            std::mem::replace(&mut *slot, ConnectionSlot::Closed)
            && let Err(error) = connection.close().await
        {
            tracing::debug!(%error, "the database did not close cleanly");
        }
        self.file.check(&self.dir)
    }
}

impl Lease<'_> {
    /// Ends the work. After an error of the database its connection is not used again: SQLite
    /// may have ended the transaction by itself (a full disk does that), and the driver's idea
    /// of it would be wrong from then on.
    pub(super) fn settle<T>(mut self, outcome: Result<T, Failure>) -> Result<T, StoreError> {
        if !matches!(outcome, Err(Failure::Sql(_))) {
            *self.slot = ConnectionSlot::Open(self.connection);
        }
        outcome.map_err(|failure| failure.into_store_error(self.dir))
    }

    /// Gives up: the connection is not used again.
    pub(super) fn failed(self, failure: Failure) -> StoreError {
        failure.into_store_error(self.dir)
    }
}
