//! Notifications: one for each attempt of a task, delivered into the conversation once.
//!
//! A notification is the finished text that goes into the conversation. Runners write their own,
//! with the result; for tasks that end without a runner it is made here. It waits in the table
//! until the session takes it, in the transaction that marks it as delivered.

use codespar_protocol::{SessionId, TaskEnd, TaskNotification, TaskRecord, TaskStatus};
use jiff::Timestamp;

use super::{
    super::{
        failure::Failure,
        rows::{count, field, int},
    },
    row::{Found, damaged, task_id},
};
use crate::engine::{self, Connection};
use crate::{Notification, StoreError, task_sql as sql};

/// Tells the session of the task's end, if it wants to know. Nothing where the session is gone, or
/// has been told of this attempt already.
pub(super) async fn tell(
    connection: &mut Connection,
    task: &Found,
    body: &str,
    at: Timestamp,
) -> Result<(), Failure> {
    let (true, Some(session)) = (task.notify, task.record.session_id) else {
        return Ok(());
    };
    engine::query(sql::INSERT_NOTIFICATION)
        .bind(session.to_string())
        .bind(task.id().as_str())
        .bind(i64::from(task.record.attempt))
        .bind(body)
        .bind(at.as_microsecond())
        .execute(connection)
        .await?;
    Ok(())
}

/// For a task that ended without a runner to speak for it.
pub(super) fn body(task: &TaskRecord, status: TaskStatus, error: Option<&str>) -> String {
    let end = TaskEnd {
        status,
        error,
        exit_code: None,
    };
    let notification = TaskNotification {
        task_id: task.task_id.clone(),
        status,
        summary: end.summary(task),
        reason: end.stop_reason(),
        result: None,
        usage: None,
    };
    notification.to_xml()
}

pub(super) async fn waiting(
    connection: &mut Connection,
    session: SessionId,
) -> Result<Vec<Notification>, Failure> {
    let rows = engine::query(sql::WAITING_NOTIFICATIONS)
        .bind(session.to_string())
        .fetch_all(connection)
        .await?;
    let read = |row| -> Result<Notification, String> {
        Ok(Notification {
            seq: count(row, "seq")?,
            task_id: task_id(row, "task_id")?,
            attempt: u32::try_from(count(row, "attempt")?).map_err(|error| error.to_string())?,
            body: field(row, "body")?,
        })
    };
    let waiting: Result<_, String> = rows.iter().map(read).collect();
    Ok(waiting.map_err(damaged)?)
}

/// Refused when one of them is delivered already.
pub(super) async fn mark_delivered(
    connection: &mut Connection,
    session: SessionId,
    delivered: &[u64],
    at: Timestamp,
) -> Result<(), Failure> {
    for &seq in delivered {
        let done = engine::query(sql::MARK_DELIVERED)
            .bind(int(seq))
            .bind(at.as_microsecond())
            .bind(session.to_string())
            .execute(&mut *connection)
            .await?;
        if done.rows_affected() == 0 {
            let kind = "notification";
            return Err(StoreError::NotWaiting { kind, seq }.into());
        }
    }
    Ok(())
}
