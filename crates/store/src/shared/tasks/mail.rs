//! Mailboxes: what tasks are told while they run, or to run again.
//!
//! A message is unread until it is in the conversation of its task, and becomes read in the
//! transaction that appends it there. In between it survives any crash. An agent that is over is
//! started again by being written to; a task that runs no agent is not.

use codespar_protocol::{AttemptOptions, TaskId, TaskRecord, TaskStatus};
use jiff::Timestamp;

use super::{
    super::{
        failure::Failure,
        rows::{count, field, int, time},
    },
    read,
    row::damaged,
};
use crate::engine::{self, Connection};
use crate::{Mail, StoreError, task_sql as sql};

/// What is sent, and how the attempt runs that it may start.
pub(super) struct Message<'a> {
    pub(super) from: &'a str,
    pub(super) body: &'a str,
    pub(super) options: &'a AttemptOptions,
}

/// The record shows the new attempt where the message started one.
pub(super) async fn send(
    connection: &mut Connection,
    to: &TaskId,
    message: &Message<'_>,
    at: Timestamp,
) -> Result<TaskRecord, Failure> {
    let task = read::found(connection, to).await?;
    if task.record.team_list().is_some() {
        let rule = "it stands on the list of a team; write to a member instead";
        return Err(task.wrong_state(rule).into());
    }
    if task.record.status.is_final() {
        if !task.record.runs_agent() {
            let rule = "only an agent can be continued with a message";
            return Err(task.wrong_state(rule).into());
        }
        restart(connection, to, at).await?;
        if task.record.status == TaskStatus::Killed {
            let note = stopped_note(task.record.error.as_deref());
            insert(connection, to, "", &note, at).await?;
        }
        if !message.options.is_empty() {
            keep_options(connection, to, task.record.attempt + 1, message.options).await?;
        }
    } else if !message.options.is_empty() {
        let rule = "another model or limit can be given when it is over";
        return Err(task.wrong_state(rule).into());
    }
    insert(connection, to, message.from, message.body, at).await?;
    read::record(connection, to).await
}

async fn insert(
    connection: &mut Connection,
    to: &TaskId,
    from: &str,
    body: &str,
    at: Timestamp,
) -> Result<(), Failure> {
    engine::query(sql::INSERT_MAIL)
        .bind(to.as_str())
        .bind(from)
        .bind(body)
        .bind(at.as_microsecond())
        .execute(connection)
        .await?;
    Ok(())
}

/// What an agent that goes on after a stop is told first.
fn stopped_note(reason: Option<&str>) -> String {
    match reason {
        Some(reason) => format!("You were stopped before you were done: {reason}"),
        None => "You were stopped before you were done.".to_owned(),
    }
}

async fn keep_options(
    connection: &mut Connection,
    to: &TaskId,
    attempt: u32,
    options: &AttemptOptions,
) -> Result<(), Failure> {
    let text = serde_json::to_string(options).map_err(|error| damaged(error.to_string()))?;
    engine::query(sql::RECORD_STEP)
        .bind(to.as_str())
        .bind(AttemptOptions::step(attempt))
        .bind(text)
        .execute(connection)
        .await?;
    Ok(())
}

/// Whether the mailbox has an unread message.
pub(super) async fn is_waiting(
    connection: &mut Connection,
    task: &TaskId,
) -> Result<bool, Failure> {
    let waiting = engine::query_scalar(sql::HAS_MAIL)
        .bind(task.as_str())
        .fetch_one(connection)
        .await?;
    Ok(waiting)
}

/// Pending again, as its next attempt. It waits for nothing any more: whoever continues it knows
/// what became of its dependencies.
pub(super) async fn restart(
    connection: &mut Connection,
    id: &TaskId,
    at: Timestamp,
) -> Result<(), Failure> {
    engine::query(sql::RESTART)
        .bind(id.as_str())
        .bind(at.as_microsecond())
        .execute(&mut *connection)
        .await?;
    engine::query(sql::SETTLE_ALL_OF)
        .bind(id.as_str())
        .execute(connection)
        .await?;
    Ok(())
}

pub(super) async fn unread(
    connection: &mut Connection,
    task: &TaskId,
) -> Result<Vec<Mail>, Failure> {
    let rows = engine::query(sql::UNREAD)
        .bind(task.as_str())
        .fetch_all(&mut *connection)
        .await?;
    if rows.is_empty() {
        // An empty mailbox is one thing, none another.
        read::found(connection, task).await?;
    }
    let read = |row| -> Result<Mail, String> {
        Ok(Mail {
            seq: count(row, "seq")?,
            from: field(row, "sender")?,
            body: field(row, "body")?,
            at: time(row, "at")?,
        })
    };
    let mail: Result<_, String> = rows.iter().map(read).collect();
    Ok(mail.map_err(damaged)?)
}

/// Refused when one of them was read already.
pub(super) async fn mark_read(
    connection: &mut Connection,
    read: &[u64],
    at: Timestamp,
) -> Result<(), Failure> {
    for &seq in read {
        let done = engine::query(sql::MARK_READ)
            .bind(int(seq))
            .bind(at.as_microsecond())
            .execute(&mut *connection)
            .await?;
        if done.rows_affected() == 0 {
            let kind = "message";
            return Err(StoreError::NotWaiting { kind, seq }.into());
        }
    }
    Ok(())
}
