//! The order of changes: triggers of the schema write it, followers read it.
//!
//! A reader holds a connection only while it reads. Between two reads it waits to be told of a
//! write (`Backend::writes`), so following costs nothing while nothing happens. A write need not be
//! a change: then the read comes back empty and the wait goes on.

use codespar_protocol::SessionId;

use super::{
    failure::Failure,
    rows::{count, field, int, message_of},
};
use crate::engine::{self, Backend, Connection, Row};
use crate::{ChangeCursor, ChangeKind, StoreChange, StoreError, question_sql as sql};

/// How many changes stay for those who were away: some ten megabytes.
const KEPT: u64 = 100_000;
/// How many are read at once. More are read by the next call, so that a follower far behind does
/// not hold the connection for long.
const AT_ONCE: i64 = 500;

pub(super) async fn newest(store: &impl Backend) -> Result<ChangeCursor, StoreError> {
    let mut work = store.single().await?;
    let outcome = place(work.connection(), sql::NEWEST_CHANGE).await;
    Ok(ChangeCursor(work.settle(outcome).await?))
}

/// What comes after a cursor; waits until there is something. A cursor beyond the newest change
/// waits until the order has passed it.
pub(super) async fn after(
    store: &impl Backend,
    after: ChangeCursor,
) -> Result<Vec<StoreChange>, StoreError> {
    // Watched before it is looked: a change in between is not missed.
    let mut writes = store.writes();
    loop {
        let mut work = store.single().await?;
        let outcome = read(work.connection(), after).await;
        let changes = work.settle(outcome).await?;
        if !changes.is_empty() {
            return Ok(changes);
        }
        writes.wait().await;
    }
}

/// Forgets changes that nobody can be so far behind as to miss. Part of each clean-up of sessions.
pub(super) async fn forget_old(store: &impl Backend) -> Result<(), StoreError> {
    let mut work = store.single().await?;
    let outcome = forget(work.connection()).await;
    work.settle(outcome).await
}

async fn place(connection: &mut Connection, query: &'static str) -> Result<u64, Failure> {
    let seq: i64 = engine::query_scalar(query).fetch_one(connection).await?;
    Ok(u64::try_from(seq).unwrap_or_default())
}

/// Empty if nothing came after the cursor. The places are compared only if something did: a cursor
/// that is up to date has nothing to miss.
async fn read(
    connection: &mut Connection,
    after: ChangeCursor,
) -> Result<Vec<StoreChange>, Failure> {
    let rows = engine::query(sql::CHANGES)
        .bind(int(after.0))
        .bind(AT_ONCE)
        .fetch_all(&mut *connection)
        .await?;
    let changes: Result<Vec<StoreChange>, String> = rows.iter().map(change_of).collect();
    let changes =
        changes.map_err(|message| StoreError::Database(format!("a damaged change: {message}")))?;
    let Some(first) = changes.first() else {
        return Ok(changes);
    };
    // The places have no holes: a first one further on means that some were forgotten.
    if after.0 > 0 && first.cursor.0 > after.0 + 1 {
        let oldest = place(connection, sql::OLDEST_CHANGE).await?;
        if oldest > after.0 + 1 {
            let cursor = after.0;
            return Err(StoreError::ChangesForgotten { cursor, oldest }.into());
        }
    }
    Ok(changes)
}

async fn forget(connection: &mut Connection) -> Result<(), Failure> {
    let newest = place(connection, sql::NEWEST_CHANGE).await?;
    if newest > KEPT {
        engine::query(sql::DELETE_OLD_CHANGES)
            .bind(int(newest - KEPT))
            .execute(connection)
            .await?;
    }
    Ok(())
}

/// What the triggers of the schema wrote; `detail` holds the status, the place or the id.
fn change_of(row: &Row) -> Result<StoreChange, String> {
    let session: Option<&str> = field(row, "session_id")?;
    let task: Option<&str> = field(row, "task_id")?;
    let detail: Option<&str> = field(row, "detail")?;
    let detail = || detail.ok_or_else(|| "it lacks its detail".to_owned());
    let kind = match field::<&str>(row, "kind")? {
        "task" => ChangeKind::Task {
            status: detail()?.parse().map_err(message_of)?,
        },
        "entry" => ChangeKind::Entry {
            seq: detail()?.parse().map_err(message_of)?,
        },
        "mail" => ChangeKind::Mail,
        "notification" => ChangeKind::Notification,
        "question" => ChangeKind::Question {
            id: detail()?.parse().map_err(message_of)?,
        },
        "step" => ChangeKind::Step {
            step: detail()?.to_owned(),
        },
        "inbound" => ChangeKind::Inbound {
            channel: detail()?.to_owned(),
        },
        "outbox" => ChangeKind::Outbox {
            channel: detail()?.to_owned(),
        },
        other => return Err(format!("`{other}` is no kind of change")),
    };
    Ok(StoreChange {
        cursor: ChangeCursor(count(row, "seq")?),
        session_id: session
            .map(str::parse::<SessionId>)
            .transpose()
            .map_err(message_of)?,
        task_id: task.map(str::parse).transpose().map_err(message_of)?,
        kind,
    })
}
