//! Rows of timers.

use jiff::Timestamp;
use sqlx::{SqliteConnection, sqlite::SqliteRow};

use super::{
    super::{
        failure::Failure,
        rows::{field, time},
        words::{from_word, word_of},
    },
    audit, damaged, messages, outbox, thread_ref,
};
use crate::{ChannelTimer, TimerChange, TimerKind, TimerState, channel_sql as sql};

pub(super) async fn put(
    connection: &mut SqliteConnection,
    timer: &ChannelTimer,
    at: Timestamp,
) -> Result<(), Failure> {
    sqlx::query(sql::PUT_TIMER)
        .bind(timer.id.as_str())
        .bind(word_of(timer.kind)?)
        .bind(timer.at.channel.as_str())
        .bind(timer.at.conversation.as_str())
        .bind(timer.at.thread.as_str())
        .bind(timer.body.as_str())
        .bind(word_of(timer.state)?)
        .bind(timer.next_at.as_microsecond())
        .bind(at.as_microsecond())
        .execute(connection)
        .await?;
    Ok(())
}

pub(super) async fn timer(
    connection: &mut SqliteConnection,
    id: &str,
) -> Result<Option<ChannelTimer>, Failure> {
    let row = sqlx::query(sql::TIMER)
        .bind(id)
        .fetch_optional(connection)
        .await?;
    Ok(row.as_ref().map(read).transpose().map_err(damaged)?)
}

pub(super) async fn listed(
    connection: &mut SqliteConnection,
    (channel, conversation): (&str, &str),
    kind: TimerKind,
) -> Result<Vec<ChannelTimer>, Failure> {
    let rows = sqlx::query(sql::TIMERS_OF)
        .bind(channel)
        .bind(conversation)
        .bind(word_of(kind)?)
        .fetch_all(connection)
        .await?;
    let timers: Result<_, String> = rows.iter().map(read).collect();
    Ok(timers.map_err(damaged)?)
}

pub(super) async fn due(
    connection: &mut SqliteConnection,
    channel: &str,
    now: Timestamp,
) -> Result<Vec<ChannelTimer>, Failure> {
    let rows = sqlx::query(sql::DUE_TIMERS)
        .bind(channel)
        .bind(now.as_microsecond())
        .fetch_all(connection)
        .await?;
    let timers: Result<_, String> = rows.iter().map(read).collect();
    Ok(timers.map_err(damaged)?)
}

/// Everything that the change names, or nothing. False where the timer is not as it was seen.
pub(super) async fn change(
    connection: &mut SqliteConnection,
    seen: &ChannelTimer,
    change: &TimerChange,
    at: Timestamp,
) -> Result<bool, Failure> {
    let done = sqlx::query(sql::CHANGE_TIMER)
        .bind(seen.id.as_str())
        .bind(seen.next_at.as_microsecond())
        .bind(change.body.as_str())
        .bind(word_of(change.state)?)
        .bind(change.next_at.as_microsecond())
        .execute(&mut *connection)
        .await?;
    if done.rows_affected() == 0 {
        return Ok(false);
    }
    if let Some(message) = &change.message {
        messages::receive(connection, message, at).await?;
    }
    for new in &change.outbound {
        outbox::put(connection, new, at).await?;
    }
    for entry in &change.audit {
        audit::append(connection, entry, at).await?;
    }
    Ok(true)
}

pub(super) async fn stop(
    connection: &mut SqliteConnection,
    id: &str,
    state: TimerState,
) -> Result<(), Failure> {
    sqlx::query(sql::STOP_TIMER)
        .bind(id)
        .bind(word_of(state)?)
        .execute(connection)
        .await?;
    Ok(())
}

fn read(row: &SqliteRow) -> Result<ChannelTimer, String> {
    Ok(ChannelTimer {
        id: field(row, "id")?,
        kind: from_word(row, "kind")?,
        at: thread_ref(row)?,
        body: field(row, "body")?,
        state: from_word(row, "state")?,
        next_at: time(row, "next_at")?,
    })
}
