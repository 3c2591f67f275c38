//! The one connection of a process to the database.
//!
//! One, because SQLite has one writer at a time: within the process callers queue fairly here
//! instead of sleeping on each other's locks.

use std::path::PathBuf;

use sqlx::{ConnectOptions, Connection as _, SqliteConnection, sqlite::SqliteConnectOptions};
use tokio::sync::Mutex;

use super::{failure::into_store_error, file_id::FileId};
use crate::{
    StoreError,
    engine::{Access, Connection, Home, Link, Work, failure::Failure, query},
};

/// Makes a new connection when the last one was dropped, with the same options. The schema is not
/// looked at again.
pub(super) struct SharedConnection {
    dir: PathBuf,
    options: SqliteConnectOptions,
    /// The file that was opened.
    file: FileId,
    slot: Mutex<ConnectionSlot>,
}

pub(crate) enum ConnectionSlot {
    Open(Link),
    /// Taken and not given back: its work failed or was cancelled. The next lease reopens.
    Empty,
    Closed,
}

impl SharedConnection {
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
            slot: Mutex::new(ConnectionSlot::Open(Link::Sqlite(connection))),
        }
    }

    /// Waits for its turn. Refused when the file is not there any more: SQLite would go on with
    /// the removed one, and all that is written would be lost at the end.
    ///
    /// A change is locked for writing from the start, so that what is read still holds when it is
    /// acted on. It waits for writers of other processes as long as the busy timeout of the
    /// connection; one that began as a reader could be refused when it wants to write, without a
    /// wait. A look neither waits for writers nor delays those of other processes.
    pub(super) async fn begin(&self, access: Access) -> Result<Work<'_>, StoreError> {
        let mut slot = self.slot.lock().await;
        self.file.check(&self.dir)?;
        let link = match std::mem::replace(&mut *slot, ConnectionSlot::Empty) {
            ConnectionSlot::Open(link) => link,
            ConnectionSlot::Empty => Link::Sqlite(
                (self.options.connect().await)
                    .map_err(|error| into_store_error(Failure::Sql(error), &self.dir))?,
            ),
            ConnectionSlot::Closed => {
                *slot = ConnectionSlot::Closed;
                return Err(StoreError::Database("the store was closed".to_owned()));
            }
        };
        // Taking tasks is a change like others where there is one writer.
        let (access, statement) = match access {
            Access::Single => (access, None),
            Access::Look => (access, Some("BEGIN")),
            Access::Change | Access::Claim => (Access::Change, Some("BEGIN IMMEDIATE")),
        };
        let mut connection = Connection { link, access };
        if let Some(statement) = statement {
            let begun = query(statement).execute(&mut connection).await;
            begun.map_err(|error| into_store_error(Failure::Sql(error), &self.dir))?;
        }
        let dir = &self.dir;
        Ok(Work::new(connection, Home::Sqlite { slot, dir }))
    }

    /// Waits for the work under way. SQLite checkpoints when the last connection to a file closes;
    /// if that fails, the log stays and the next process reads it.
    pub(super) async fn close(&self) -> Result<(), StoreError> {
        let mut slot = self.slot.lock().await;
        if let ConnectionSlot::Open(Link::Sqlite(connection)) =
            std::mem::replace(&mut *slot, ConnectionSlot::Closed)
            && let Err(error) = connection.close().await
        {
            tracing::debug!(%error, "the database did not close cleanly");
        }
        self.file.check(&self.dir)
    }
}
