//! Forgetting sessions, and giving their room back to the disk.
//!
//! A session is removed while it is held here, so never while a process works on it.

use codespar_protocol::SessionId;
use jiff::Timestamp;

use super::{changes, failure::Failure};
use crate::{
    Removed, StoreError,
    engine::{self, Backend, Connection},
    sql,
};

/// Entries and usage go with it by their foreign keys.
pub(super) async fn session(connection: &mut Connection, id: SessionId) -> Result<(), Failure> {
    let done = engine::query(sql::DELETE_SESSION)
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
    connection: &mut Connection,
    before: Timestamp,
) -> Result<Vec<SessionId>, Failure> {
    let ids: Vec<String> = engine::query_scalar(sql::OLD_SESSIONS)
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
    connection: &mut Connection,
    id: SessionId,
    before: Timestamp,
) -> Result<u64, Failure> {
    let done = engine::query(sql::DELETE_OLD_SESSION)
        .bind(id.to_string())
        .bind(before.as_microsecond())
        .execute(connection)
        .await?;
    Ok(done.rows_affected())
}

/// Removes one session after the other, takes away what lost processes left, forgets old changes
/// and gives the room back. Sessions that a process holds are skipped.
pub(super) async fn before(store: &impl Backend, before: Timestamp) -> Result<Removed, StoreError> {
    let size = store.size();
    let mut work = store.single().await?;
    let outcome = old_sessions(work.connection(), before).await;
    let mut sessions = Vec::new();
    // One transaction each: other processes get their turn in between.
    for id in work.settle(outcome).await? {
        let hold = match store.hold(id, None).await {
            Err(StoreError::SessionInUse { .. }) => continue,
            hold => hold?,
        };
        let mut work = store.change().await?;
        let outcome = delete_if_still_old(work.connection(), id, before).await;
        if work.settle(outcome).await? > 0 {
            sessions.push(id);
        }
        drop(hold);
    }
    store.sweep();
    changes::forget_old(store).await?;
    store.give_room_back().await;
    let bytes = size.saturating_sub(store.size());
    Ok(Removed { sessions, bytes })
}
