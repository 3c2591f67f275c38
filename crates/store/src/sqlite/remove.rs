//! Giving the room of what was removed back to the disk.

use std::fs;

use super::{SqliteStore, open::DATABASE};
use crate::engine::{Backend, Connection, failure::Failure, query};

/// Deleted pages go to the end of the file and off it; then the log is folded in and cut. Other
/// processes may be reading an old part of the log; then the cut does not take place, and that is
/// not an error.
async fn shrink(connection: &mut Connection) -> Result<(), Failure> {
    query("PRAGMA incremental_vacuum")
        .fetch_all(connection)
        .await?;
    query("PRAGMA wal_checkpoint(TRUNCATE)")
        .fetch_all(connection)
        .await?;
    Ok(())
}

impl SqliteStore {
    /// What was removed is removed whether or not this works; the next clean-up tries again.
    pub(super) async fn shrink_file(&self) {
        let shrunk = async {
            let mut work = self.single().await?;
            let outcome = shrink(work.connection()).await;
            work.settle(outcome).await
        };
        if let Err(error) = shrunk.await {
            tracing::warn!(%error, "the database was not shrunk");
        }
    }

    /// Of the database and its log. Files that are not there count as nothing.
    pub(super) fn file_size(&self) -> u64 {
        let length =
            |name: String| fs::metadata(self.dir.join(name)).map_or(0, |found| found.len());
        length(DATABASE.to_owned()) + length(format!("{DATABASE}-wal"))
    }
}
