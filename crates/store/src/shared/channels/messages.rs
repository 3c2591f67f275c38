//! Rows of messages that arrived.

use codespar_protocol::{TaskId, Usd};
use jiff::Timestamp;

use super::{
    super::{
        failure::Failure,
        rows::{count, field, int, time},
        words::{from_word, word_of},
    },
    audit, damaged, newest_of_thread, outbox, task_id, thread_ref, threads, timers,
};
use crate::engine::{self, Connection, Row};
use crate::{
    ChannelMessage, MessageChange, MessageStanding, MessageState, NewMessage, Receipt,
    StartedMessage, StoreError, ThreadRef, TimerState, channel_sql as sql,
};

pub(super) async fn receive(
    connection: &mut Connection,
    new: &NewMessage,
    at: Timestamp,
) -> Result<Receipt, Failure> {
    let inserted = engine::query(sql::INSERT_MESSAGE)
        .bind(new.identity.as_str())
        .bind(new.at.channel.as_str())
        .bind(new.at.conversation.as_str())
        .bind(new.at.thread.as_str())
        .bind(new.speaker.as_str())
        .bind(new.mentioned)
        .bind(new.body.as_str())
        .bind(at.as_microsecond())
        .execute(&mut *connection)
        .await?;
    if inserted.rows_affected() > 0 {
        return Ok(Receipt::New);
    }
    if !new.mentioned {
        return Ok(Receipt::Known);
    }
    let was_ignored = message(connection, &new.identity).await?.state == MessageState::Ignored;
    engine::query(sql::MERGE_MENTION)
        .bind(new.identity.as_str())
        .fetch_optional(&mut *connection)
        .await?;
    let state = message(connection, &new.identity).await?.state;
    Ok(match (was_ignored, state) {
        (true, MessageState::Received) => Receipt::Renewed,
        _ => Receipt::Known,
    })
}

/// Whether the message was as it was seen, and is still to be decided on.
pub(super) async fn amend(
    connection: &mut Connection,
    seen: &ChannelMessage,
    body: &str,
) -> Result<bool, Failure> {
    let done = engine::query(sql::AMEND_MESSAGE)
        .bind(seen.identity.as_str())
        .bind(seen.body.as_str())
        .bind(body)
        .execute(connection)
        .await?;
    Ok(done.rows_affected() > 0)
}

pub(super) async fn message(
    connection: &mut Connection,
    identity: &str,
) -> Result<ChannelMessage, Failure> {
    let row = engine::query(sql::MESSAGE)
        .bind(identity)
        .fetch_optional(connection)
        .await?;
    let row = row.ok_or_else(|| StoreError::NoSuchMessage(identity.to_owned()))?;
    Ok(read(&row).map_err(damaged)?)
}

pub(super) async fn of_task(
    connection: &mut Connection,
    task: &TaskId,
) -> Result<Option<ChannelMessage>, Failure> {
    let row = engine::query(sql::MESSAGE_OF_TASK)
        .bind(task.as_str())
        .fetch_optional(connection)
        .await?;
    Ok(row.as_ref().map(read).transpose().map_err(damaged)?)
}

pub(super) async fn open(
    connection: &mut Connection,
    channel: &str,
) -> Result<Vec<ChannelMessage>, Failure> {
    let rows = engine::query(sql::OPEN_MESSAGES)
        .bind(channel)
        .fetch_all(connection)
        .await?;
    let messages: Result<_, String> = rows.iter().map(read).collect();
    Ok(messages.map_err(damaged)?)
}

pub(super) async fn of_thread(
    connection: &mut Connection,
    at: &ThreadRef,
    limit: u32,
) -> Result<Vec<ChannelMessage>, Failure> {
    newest_of_thread(connection, sql::MESSAGES_OF_THREAD, at, limit, read).await
}

/// Everything that the change names, or nothing.
pub(super) async fn change(
    connection: &mut Connection,
    identity: &str,
    change: &MessageChange,
    at: Timestamp,
) -> Result<ChannelMessage, Failure> {
    let before = message(connection, identity).await?;
    let state = change.state.unwrap_or(before.state);
    let task = before.task_id.as_ref().or(change.task_id.as_ref());
    let repository = change.repository.as_ref().or(before.repository.as_ref());
    let is_settled = matches!(state, MessageState::Handled | MessageState::Ignored);
    engine::query(sql::CHANGE_MESSAGE)
        .bind(identity)
        .bind(word_of(state)?)
        .bind(task.map(|task| task.as_str().to_owned()))
        .bind(repository.cloned())
        .bind(change.cost.map(|cost| int(cost.nanos())))
        .bind(is_settled.then(|| at.as_microsecond()))
        .bind(change.work.as_deref())
        .bind(change.standing == MessageStanding::Stranger)
        .execute(&mut *connection)
        .await?;
    for started in &change.started {
        start(connection, started, at).await?;
    }
    if let Some(timer) = &change.pause_timer {
        timers::stop(connection, timer, TimerState::Paused).await?;
    }
    for other in &change.merged {
        engine::query(sql::MERGE_MESSAGE)
            .bind(other.as_str())
            .bind(at.as_microsecond())
            .execute(&mut *connection)
            .await?;
    }
    if let Some(binding) = &change.binding {
        threads::bind(connection, &before.at, binding, at).await?;
    }
    for new in &change.outbound {
        outbox::put(connection, new, at).await?;
    }
    for entry in &change.audit {
        audit::append(connection, entry, at).await?;
    }
    message(connection, identity).await
}

/// One that is known already stays as it is.
async fn start(
    connection: &mut Connection,
    started: &StartedMessage,
    at: Timestamp,
) -> Result<(), Failure> {
    if receive(connection, &started.message, at).await? != Receipt::New {
        return Ok(());
    }
    engine::query(sql::CHANGE_MESSAGE)
        .bind(started.message.identity.as_str())
        .bind(word_of(MessageState::Working)?)
        .bind(started.task_id.as_str())
        .bind(started.repository.as_str())
        .bind(None::<i64>)
        .bind(None::<i64>)
        .bind(started.work.as_str())
        .bind(false)
        .execute(connection)
        .await?;
    Ok(())
}

/// The last message of a thread whose work begins like this.
pub(super) async fn last_work(
    connection: &mut Connection,
    at: &ThreadRef,
    beginning: &str,
) -> Result<Option<ChannelMessage>, Failure> {
    let row = engine::query(sql::LAST_WORK)
        .bind(at.channel.as_str())
        .bind(at.conversation.as_str())
        .bind(at.thread.as_str())
        .bind(beginning)
        .fetch_optional(connection)
        .await?;
    Ok(row.as_ref().map(read).transpose().map_err(damaged)?)
}

/// How often people without a role were refused since then: this speaker, and in this thread.
pub(super) async fn refusals(
    connection: &mut Connection,
    message: &ChannelMessage,
    since: Timestamp,
) -> Result<(u64, u64), Failure> {
    let of_speaker: i64 = engine::query_scalar(sql::REFUSALS_OF_SPEAKER)
        .bind(message.at.channel.as_str())
        .bind(message.speaker.as_str())
        .bind(since.as_microsecond())
        .fetch_one(&mut *connection)
        .await?;
    let in_thread: i64 = engine::query_scalar(sql::REFUSALS_IN_THREAD)
        .bind(message.at.channel.as_str())
        .bind(message.at.conversation.as_str())
        .bind(message.at.thread.as_str())
        .bind(since.as_microsecond())
        .fetch_one(connection)
        .await?;
    let count = |rows: i64| u64::try_from(rows).unwrap_or_default();
    Ok((count(of_speaker), count(in_thread)))
}

pub(super) async fn ignore(
    connection: &mut Connection,
    seen: &ChannelMessage,
    at: Timestamp,
) -> Result<bool, Failure> {
    let done = engine::query(sql::IGNORE_MESSAGE)
        .bind(seen.identity.as_str())
        .bind(seen.mentioned)
        .bind(at.as_microsecond())
        .execute(connection)
        .await?;
    Ok(done.rows_affected() > 0)
}

pub(super) async fn turns_of_thread(
    connection: &mut Connection,
    message: &ChannelMessage,
    since: Timestamp,
) -> Result<u64, Failure> {
    let turns: i64 = engine::query_scalar(sql::TURNS_OF_THREAD)
        .bind(message.at.channel.as_str())
        .bind(message.at.conversation.as_str())
        .bind(message.at.thread.as_str())
        .bind(since.as_microsecond())
        .bind(int(message.seq))
        .fetch_one(connection)
        .await?;
    Ok(u64::try_from(turns).unwrap_or_default())
}

pub(super) async fn turns_of_speaker(
    connection: &mut Connection,
    message: &ChannelMessage,
    since: Timestamp,
) -> Result<u64, Failure> {
    let turns: i64 = engine::query_scalar(sql::TURNS_OF_SPEAKER)
        .bind(message.at.channel.as_str())
        .bind(message.speaker.as_str())
        .bind(since.as_microsecond())
        .bind(int(message.seq))
        .fetch_one(connection)
        .await?;
    Ok(u64::try_from(turns).unwrap_or_default())
}

pub(super) async fn spending(
    connection: &mut Connection,
    since: Timestamp,
    repository: Option<&str>,
) -> Result<Usd, Failure> {
    let nanos: i64 = engine::query_scalar(sql::SPENDING)
        .bind(since.as_microsecond())
        .bind(repository)
        .fetch_one(connection)
        .await?;
    Ok(Usd::from_nanos(u64::try_from(nanos).unwrap_or_default()))
}

fn read(row: &Row) -> Result<ChannelMessage, String> {
    Ok(ChannelMessage {
        seq: count(row, "seq")?,
        identity: field(row, "identity")?,
        at: thread_ref(row)?,
        speaker: field(row, "speaker")?,
        mentioned: field(row, "mentioned")?,
        body: field(row, "body")?,
        state: from_word(row, "state")?,
        task_id: task_id(row)?,
        work: field(row, "work")?,
        repository: field(row, "repository")?,
        received_at: time(row, "received_at")?,
    })
}
