//! Rows of messages to people.

use jiff::Timestamp;

use super::{
    super::{
        failure::Failure,
        rows::{count, field, int, time},
    },
    damaged, newest_of_thread, thread_ref,
};
use crate::engine::{self, Connection, Row};
use crate::{
    Delivery, NewOutbound, OutboundPriority, OutboxRow, StoreError, ThreadRef, channel_sql as sql,
};

pub(super) async fn put(
    connection: &mut Connection,
    new: &NewOutbound,
    at: Timestamp,
) -> Result<(), Failure> {
    let priority: i64 = match new.priority {
        OutboundPriority::Final => 0,
        OutboundPriority::Question => 1,
        OutboundPriority::Reply => 2,
        OutboundPriority::Progress => 3,
        OutboundPriority::Draft => 4,
    };
    engine::query(sql::PUT_OUTBOUND)
        .bind(new.key.as_str())
        .bind(new.at.channel.as_str())
        .bind(new.at.conversation.as_str())
        .bind(new.at.thread.as_str())
        .bind(new.kind.as_str())
        .bind(new.body.as_str())
        .bind(priority)
        .bind(at.as_microsecond())
        .execute(connection)
        .await?;
    Ok(())
}

pub(super) async fn put_and_read(
    connection: &mut Connection,
    new: &NewOutbound,
    at: Timestamp,
) -> Result<OutboxRow, Failure> {
    put(connection, new, at).await?;
    let row = row(connection, &new.key).await?;
    Ok(row.ok_or_else(|| StoreError::NoSuchMessage(new.key.clone()))?)
}

pub(super) async fn row(
    connection: &mut Connection,
    key: &str,
) -> Result<Option<OutboxRow>, Failure> {
    let row = engine::query(sql::OUTBOUND)
        .bind(key)
        .fetch_optional(connection)
        .await?;
    Ok(row.as_ref().map(read).transpose().map_err(damaged)?)
}

pub(super) async fn unsent(
    connection: &mut Connection,
    channel: &str,
) -> Result<Vec<OutboxRow>, Failure> {
    let rows = engine::query(sql::UNSENT)
        .bind(channel)
        .fetch_all(connection)
        .await?;
    let rows: Result<_, String> = rows.iter().map(read).collect();
    Ok(rows.map_err(damaged)?)
}

pub(super) async fn sent_to(
    connection: &mut Connection,
    channel: &str,
    conversation: &str,
    limit: u32,
) -> Result<Vec<OutboxRow>, Failure> {
    let rows = engine::query(sql::SENT_TO)
        .bind(channel)
        .bind(conversation)
        .bind(i64::from(limit))
        .fetch_all(connection)
        .await?;
    let rows: Result<_, String> = rows.iter().rev().map(read).collect();
    Ok(rows.map_err(damaged)?)
}

pub(super) async fn sent_to_thread(
    connection: &mut Connection,
    at: &ThreadRef,
    limit: u32,
) -> Result<Vec<OutboxRow>, Failure> {
    newest_of_thread(connection, sql::SENT_TO_THREAD, at, limit, read).await
}

pub(super) async fn by_message(
    connection: &mut Connection,
    (channel, conversation): (&str, &str),
    message_id: &str,
) -> Result<Option<OutboxRow>, Failure> {
    let row = engine::query(sql::OUTBOUND_BY_MESSAGE)
        .bind(channel)
        .bind(conversation)
        .bind(message_id)
        .fetch_optional(connection)
        .await?;
    Ok(row.as_ref().map(read).transpose().map_err(damaged)?)
}

pub(super) async fn delivery(
    connection: &mut Connection,
    key: &str,
    delivery: &Delivery,
) -> Result<(), Failure> {
    let query = match delivery {
        Delivery::Begun => engine::query(sql::DELIVERY_BEGUN).bind(key),
        Delivery::Sent {
            revision,
            message_id,
        } => engine::query(sql::DELIVERY_SENT)
            .bind(key)
            .bind(int(*revision))
            .bind(message_id.as_str()),
        Delivery::Skipped { revision } => engine::query(sql::DELIVERY_SKIPPED)
            .bind(key)
            .bind(int(*revision)),
        Delivery::Postponed { until } => engine::query(sql::DELIVERY_POSTPONED)
            .bind(key)
            .bind(until.as_microsecond()),
        Delivery::Failed { reason } => engine::query(sql::DELIVERY_FAILED)
            .bind(key)
            .bind(reason.as_str()),
    };
    query.execute(connection).await?;
    Ok(())
}

fn read(row: &Row) -> Result<OutboxRow, String> {
    Ok(OutboxRow {
        seq: count(row, "seq")?,
        key: field(row, "key")?,
        at: thread_ref(row)?,
        kind: field(row, "kind")?,
        body: field(row, "body")?,
        revision: count(row, "revision")?,
        sent_revision: count(row, "sent_revision")?,
        message_id: field(row, "message_id")?,
        attempts: count(row, "attempts")?,
        not_before: time(row, "not_before")?,
        failure: field(row, "failure")?,
        created_at: time(row, "created_at")?,
    })
}
