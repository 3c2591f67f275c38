//! Rows of the audit log, which triggers of the schema protect from changes.

use jiff::Timestamp;

use super::{
    super::{
        failure::Failure,
        rows::{count, field, message_of, time},
    },
    damaged, task_id, thread_ref,
};
use crate::engine::{self, Connection, Row};
use crate::{AuditEntry, NewAudit, channel_sql as sql};

pub(super) async fn append(
    connection: &mut Connection,
    entry: &NewAudit,
    at: Timestamp,
) -> Result<(), Failure> {
    engine::query(sql::APPEND_AUDIT)
        .bind(at.as_microsecond())
        .bind(entry.at.channel.as_str())
        .bind(entry.at.conversation.as_str())
        .bind(entry.at.thread.as_str())
        .bind(entry.identity.as_str())
        .bind(entry.speaker.as_str())
        .bind(entry.role.map(|role| role.as_str()))
        .bind(entry.action.as_str())
        .bind(entry.decision.as_str())
        .bind(entry.detail.as_str())
        .bind(entry.repository.as_deref())
        .bind(entry.task_id.as_ref().map(|id| id.as_str().to_owned()))
        .execute(connection)
        .await?;
    Ok(())
}

/// Entries on one side of a place, in the order of the query.
pub(super) async fn page(
    connection: &mut Connection,
    query: &'static str,
    place: i64,
    limit: u32,
) -> Result<Vec<AuditEntry>, Failure> {
    let rows = engine::query(query)
        .bind(place)
        .bind(i64::from(limit))
        .fetch_all(connection)
        .await?;
    let entries: Result<_, String> = rows.iter().map(read).collect();
    Ok(entries.map_err(damaged)?)
}

fn read(row: &Row) -> Result<AuditEntry, String> {
    let role: Option<&str> = field(row, "role")?;
    Ok(AuditEntry {
        seq: count(row, "seq")?,
        time: time(row, "at")?,
        entry: NewAudit {
            at: thread_ref(row)?,
            identity: field(row, "identity")?,
            speaker: field(row, "speaker")?,
            role: role.map(str::parse).transpose().map_err(message_of)?,
            action: field(row, "action")?,
            decision: field(row, "decision")?,
            detail: field(row, "detail")?,
            repository: field(row, "repository")?,
            task_id: task_id(row)?,
        },
    })
}
