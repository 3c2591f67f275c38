//! Rows of timers.

use jiff::Timestamp;

use super::{
    super::{
        failure::Failure,
        rows::{field, time},
        words::{from_word, word_of},
    },
    audit, damaged, messages, outbox, thread_ref,
};
use crate::engine::{self, Connection, Row};
use crate::{ChannelTimer, TimerChange, TimerKind, TimerState, channel_sql as sql};

pub(super) async fn put(
    connection: &mut Connection,
    timer: &ChannelTimer,
    at: Timestamp,
) -> Result<(), Failure> {
    engine::query(sql::PUT_TIMER)
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
    connection: &mut Connection,
    id: &str,
) -> Result<Option<ChannelTimer>, Failure> {
    let row = engine::query(sql::TIMER)
        .bind(id)
        .fetch_optional(connection)
        .await?;
    Ok(row.as_ref().map(read).transpose().map_err(damaged)?)
}

pub(super) async fn listed(
    connection: &mut Connection,
    (channel, conversation): (&str, &str),
    kind: TimerKind,
) -> Result<Vec<ChannelTimer>, Failure> {
    let rows = engine::query(sql::TIMERS_OF)
        .bind(channel)
        .bind(conversation)
        .bind(word_of(kind)?)
        .fetch_all(connection)
        .await?;
    let timers: Result<_, String> = rows.iter().map(read).collect();
    Ok(timers.map_err(damaged)?)
}

pub(super) async fn due(
    connection: &mut Connection,
    channel: &str,
    now: Timestamp,
) -> Result<Vec<ChannelTimer>, Failure> {
    let rows = engine::query(sql::DUE_TIMERS)
        .bind(channel)
        .bind(now.as_microsecond())
        .fetch_all(connection)
        .await?;
    let timers: Result<_, String> = rows.iter().map(read).collect();
    Ok(timers.map_err(damaged)?)
}

/// Everything that the change names, or nothing. False where the timer is not as it was seen.
pub(super) async fn change(
    connection: &mut Connection,
    seen: &ChannelTimer,
    change: &TimerChange,
    at: Timestamp,
) -> Result<bool, Failure> {
    let done = engine::query(sql::CHANGE_TIMER)
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
    connection: &mut Connection,
    id: &str,
    state: TimerState,
) -> Result<(), Failure> {
    engine::query(sql::STOP_TIMER)
        .bind(id)
        .bind(word_of(state)?)
        .execute(connection)
        .await?;
    Ok(())
}

fn read(row: &Row) -> Result<ChannelTimer, String> {
    Ok(ChannelTimer {
        id: field(row, "id")?,
        kind: from_word(row, "kind")?,
        at: thread_ref(row)?,
        body: field(row, "body")?,
        state: from_word(row, "state")?,
        next_at: time(row, "next_at")?,
    })
}
