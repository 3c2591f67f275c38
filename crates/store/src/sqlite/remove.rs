//! Forgetting sessions, and giving their room back to the disk.
//!
//! A session is removed under its lock, so never while a process works on it. The removal is one
//! transaction; shrinking the file comes after it and may fail without harm.

use std::fs;

use codespar_protocol::SessionId;
use jiff::Timestamp;
use sqlx::{Executor, SqliteConnection};

use super::{SqliteStore, failure::Failure, open::DATABASE};
use crate::{Removed, StoreError, sql};

/// Entries and usage go with it by their foreign keys.
pub(super) async fn session(
    connection: &mut SqliteConnection,
    id: SessionId,
) -> Result<(), Failure> {
    let done = sqlx::query(sql::DELETE_SESSION)
        .bind(id.to_string())
        .execute(connection)
        .await?;
    match done.rows_affected() {
        0 => Err(StoreError::NoSuchSession(id).into()),
        _ => Ok(()),
    }
}

/// Those whose last use is before the given time, the oldest first.
async fn old_sessions(
    connection: &mut SqliteConnection,
    before: Timestamp,
) -> Result<Vec<SessionId>, Failure> {
    let ids: Vec<String> = sqlx::query_scalar(sql::OLD_SESSIONS)
        .bind(before.as_microsecond())
        .fetch_all(connection)
        .await?;
    let ids: Result<_, _> = ids.iter().map(|id| id.parse()).collect();
    ids.map_err(|error: codespar_protocol::ParseIdError| {
        StoreError::Database(format!("a damaged session: {error}")).into()
    })
}

/// How many sessions were removed: 0 if it was used or removed since it was listed.
async fn delete_if_still_old(
    connection: &mut SqliteConnection,
    id: SessionId,
    before: Timestamp,
) -> Result<u64, Failure> {
    let done = sqlx::query(sql::DELETE_OLD_SESSION)
        .bind(id.to_string())
        .bind(before.as_microsecond())
        .execute(connection)
        .await?;
    Ok(done.rows_affected())
}

/// Deleted pages go to the end of the file and off it; then the log is folded in and cut. Other
/// processes may be reading an old part of the log; then the cut does not take place, and that is
/// not an error.
async fn shrink(connection: &mut SqliteConnection) -> Result<(), Failure> {
    connection.execute("PRAGMA incremental_vacuum").await?;
    connection
        .execute("PRAGMA wal_checkpoint(TRUNCATE)")
        .await?;
    Ok(())
}

impl SqliteStore {
    /// Removes one session after the other, takes leftover lock files away, forgets old changes and
    /// shrinks the file. Sessions that a process holds are skipped.
    pub(super) async fn remove_before(&self, before: Timestamp) -> Result<Removed, StoreError> {
        let size = self.size();
        let mut lease = self.link.lease().await?;
        let outcome = old_sessions(&mut lease.connection, before).await;
        let mut sessions = Vec::new();
        // One transaction each: other processes get their turn in between.
        for id in lease.settle(outcome)? {
            let lock = match self.locks.take(id) {
                Err(StoreError::SessionInUse { .. }) => continue,
                lock => lock?,
            };
            let mut lease = self.link.lease().await?;
            let outcome = delete_if_still_old(&mut lease.connection, id, before).await;
            if lease.settle(outcome)? > 0 {
                sessions.push(id);
            }
            drop(lock);
        }
        self.locks.sweep();
        self.forget_old_changes().await?;
        self.give_room_back().await;
        let bytes = size.saturating_sub(self.size());
        Ok(Removed { sessions, bytes })
    }

    /// What was removed is removed whether or not this works; the next clean-up tries again.
    pub(super) async fn give_room_back(&self) {
        let shrunk = async {
            let mut lease = self.link.lease().await?;
            let outcome = shrink(&mut lease.connection).await;
            lease.settle(outcome)
        };
        if let Err(error) = shrunk.await {
            tracing::warn!(%error, "the database was not shrunk");
        }
    }

    /// Of the database and its log. Files that are not there count as nothing.
    fn size(&self) -> u64 {
        let length =
            |name: String| fs::metadata(self.dir.join(name)).map_or(0, |found| found.len());
        length(DATABASE.to_owned()) + length(format!("{DATABASE}-wal"))
    }
}
