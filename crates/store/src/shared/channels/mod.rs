//! Channels. What belongs together (a message's state, its thread, the replies and the
//! audit entry) is written in one transaction.

mod audit;
mod messages;
mod outbox;
mod people;
mod threads;
mod timers;

use async_trait::async_trait;
use codespar_protocol::{TaskId, Usd};
use jiff::Timestamp;

use super::{
    failure::Failure,
    now,
    rows::{field, int, message_of},
};
use crate::engine::{self, Backend, Connection, Row};
use crate::{
    AuditEntry, ChannelMessage, ChannelPerson, ChannelStore, ChannelTimer, Delivery, MessageChange,
    NewAudit, NewMessage, NewOutbound, OutboxRow, Receipt, RepositoryLink, StoreError,
    ThreadBinding, ThreadRef, TimerChange, TimerKind, TimerState, channel_sql as sql,
};

#[async_trait]
impl<B: Backend> ChannelStore for B {
    async fn receive_message(&self, new: NewMessage) -> Result<Receipt, StoreError> {
        let mut work = self.change().await?;
        let outcome = messages::receive(work.connection(), &new, now()).await;
        work.settle(outcome).await
    }

    async fn amend_message(&self, seen: &ChannelMessage, body: &str) -> Result<bool, StoreError> {
        let mut work = self.change().await?;
        let outcome = messages::amend(work.connection(), seen, body).await;
        work.settle(outcome).await
    }

    async fn message(&self, identity: &str) -> Result<ChannelMessage, StoreError> {
        let mut work = self.look().await?;
        let outcome = messages::message(work.connection(), identity).await;
        work.settle(outcome).await
    }

    async fn message_of_task(&self, task: &TaskId) -> Result<Option<ChannelMessage>, StoreError> {
        let mut work = self.look().await?;
        let outcome = messages::of_task(work.connection(), task).await;
        work.settle(outcome).await
    }

    async fn open_messages(&self, channel: &str) -> Result<Vec<ChannelMessage>, StoreError> {
        let mut work = self.look().await?;
        let outcome = messages::open(work.connection(), channel).await;
        work.settle(outcome).await
    }

    async fn messages_of_thread(
        &self,
        at: &ThreadRef,
        limit: u32,
    ) -> Result<Vec<ChannelMessage>, StoreError> {
        let mut work = self.look().await?;
        let outcome = messages::of_thread(work.connection(), at, limit).await;
        work.settle(outcome).await
    }

    async fn change_message(
        &self,
        identity: &str,
        change: MessageChange,
    ) -> Result<ChannelMessage, StoreError> {
        let mut work = self.change().await?;
        let outcome = messages::change(work.connection(), identity, &change, now()).await;
        work.settle(outcome).await
    }

    async fn ignore_message(&self, seen: &ChannelMessage) -> Result<bool, StoreError> {
        let mut work = self.change().await?;
        let outcome = messages::ignore(work.connection(), seen, now()).await;
        work.settle(outcome).await
    }

    async fn turns_of_thread(
        &self,
        message: &ChannelMessage,
        since: Timestamp,
    ) -> Result<u64, StoreError> {
        let mut work = self.look().await?;
        let outcome = messages::turns_of_thread(work.connection(), message, since).await;
        work.settle(outcome).await
    }

    async fn turns_of_speaker(
        &self,
        message: &ChannelMessage,
        since: Timestamp,
    ) -> Result<u64, StoreError> {
        let mut work = self.look().await?;
        let outcome = messages::turns_of_speaker(work.connection(), message, since).await;
        work.settle(outcome).await
    }

    async fn refusals(
        &self,
        message: &ChannelMessage,
        since: Timestamp,
    ) -> Result<(u64, u64), StoreError> {
        let mut work = self.look().await?;
        let outcome = messages::refusals(work.connection(), message, since).await;
        work.settle(outcome).await
    }

    async fn last_work(
        &self,
        at: &ThreadRef,
        beginning: &str,
    ) -> Result<Option<ChannelMessage>, StoreError> {
        let mut work = self.look().await?;
        let outcome = messages::last_work(work.connection(), at, beginning).await;
        work.settle(outcome).await
    }

    async fn channel_spending(
        &self,
        since: Timestamp,
        repository: Option<&str>,
    ) -> Result<Usd, StoreError> {
        let mut work = self.look().await?;
        let outcome = messages::spending(work.connection(), since, repository).await;
        work.settle(outcome).await
    }

    async fn thread_binding(&self, at: &ThreadRef) -> Result<ThreadBinding, StoreError> {
        let mut work = self.look().await?;
        let outcome = threads::binding(work.connection(), at).await;
        work.settle(outcome).await
    }

    async fn link_repository(
        &self,
        channel: &str,
        conversation: &str,
        repository: &str,
        by: &str,
    ) -> Result<(), StoreError> {
        let mut work = self.change().await?;
        let place = (channel, conversation);
        let outcome = threads::link(work.connection(), place, repository, by, now()).await;
        work.settle(outcome).await
    }

    async fn unlink_repository(
        &self,
        channel: &str,
        conversation: &str,
    ) -> Result<Option<String>, StoreError> {
        let mut work = self.change().await?;
        let outcome = threads::unlink(work.connection(), (channel, conversation)).await;
        work.settle(outcome).await
    }

    async fn linked_repositories(
        &self,
        channel: &str,
        conversation: &str,
    ) -> Result<Vec<RepositoryLink>, StoreError> {
        let mut work = self.look().await?;
        let outcome = threads::links(work.connection(), (channel, conversation)).await;
        work.settle(outcome).await
    }

    async fn set_person(&self, person: ChannelPerson) -> Result<(), StoreError> {
        let mut work = self.change().await?;
        let outcome = people::set(work.connection(), &person, now()).await;
        work.settle(outcome).await
    }

    async fn person(
        &self,
        channel: &str,
        user_id: &str,
    ) -> Result<Option<ChannelPerson>, StoreError> {
        let mut work = self.look().await?;
        let outcome = people::person(work.connection(), channel, user_id).await;
        work.settle(outcome).await
    }

    async fn remove_person(&self, channel: &str, user_id: &str) -> Result<bool, StoreError> {
        let mut work = self.change().await?;
        let outcome = people::remove(work.connection(), channel, user_id).await;
        work.settle(outcome).await
    }

    async fn people(&self) -> Result<Vec<ChannelPerson>, StoreError> {
        let mut work = self.look().await?;
        let outcome = people::listed(work.connection()).await;
        work.settle(outcome).await
    }

    async fn put_timer(&self, timer: ChannelTimer) -> Result<(), StoreError> {
        let mut work = self.change().await?;
        let outcome = timers::put(work.connection(), &timer, now()).await;
        work.settle(outcome).await
    }

    async fn timer(&self, id: &str) -> Result<Option<ChannelTimer>, StoreError> {
        let mut work = self.look().await?;
        let outcome = timers::timer(work.connection(), id).await;
        work.settle(outcome).await
    }

    async fn timers_of(
        &self,
        channel: &str,
        conversation: &str,
        kind: TimerKind,
    ) -> Result<Vec<ChannelTimer>, StoreError> {
        let mut work = self.look().await?;
        let place = (channel, conversation);
        let outcome = timers::listed(work.connection(), place, kind).await;
        work.settle(outcome).await
    }

    async fn due_timers(
        &self,
        channel: &str,
        at: Timestamp,
    ) -> Result<Vec<ChannelTimer>, StoreError> {
        let mut work = self.look().await?;
        let outcome = timers::due(work.connection(), channel, at).await;
        work.settle(outcome).await
    }

    async fn change_timer(
        &self,
        seen: &ChannelTimer,
        change: TimerChange,
    ) -> Result<bool, StoreError> {
        let mut work = self.change().await?;
        let outcome = timers::change(work.connection(), seen, &change, now()).await;
        work.settle(outcome).await
    }

    async fn stop_timer(&self, id: &str, state: TimerState) -> Result<(), StoreError> {
        let mut work = self.change().await?;
        let outcome = timers::stop(work.connection(), id, state).await;
        work.settle(outcome).await
    }

    async fn put_outbound(&self, new: NewOutbound) -> Result<OutboxRow, StoreError> {
        let mut work = self.change().await?;
        let outcome = outbox::put_and_read(work.connection(), &new, now()).await;
        work.settle(outcome).await
    }

    async fn outbound(&self, key: &str) -> Result<Option<OutboxRow>, StoreError> {
        let mut work = self.look().await?;
        let outcome = outbox::row(work.connection(), key).await;
        work.settle(outcome).await
    }

    async fn unsent(&self, channel: &str) -> Result<Vec<OutboxRow>, StoreError> {
        let mut work = self.look().await?;
        let outcome = outbox::unsent(work.connection(), channel).await;
        work.settle(outcome).await
    }

    async fn sent_to(
        &self,
        channel: &str,
        conversation: &str,
        limit: u32,
    ) -> Result<Vec<OutboxRow>, StoreError> {
        let mut work = self.look().await?;
        let outcome = outbox::sent_to(work.connection(), channel, conversation, limit).await;
        work.settle(outcome).await
    }

    async fn sent_to_thread(
        &self,
        at: &ThreadRef,
        limit: u32,
    ) -> Result<Vec<OutboxRow>, StoreError> {
        let mut work = self.look().await?;
        let outcome = outbox::sent_to_thread(work.connection(), at, limit).await;
        work.settle(outcome).await
    }

    async fn outbound_by_message(
        &self,
        channel: &str,
        conversation: &str,
        message_id: &str,
    ) -> Result<Option<OutboxRow>, StoreError> {
        let mut work = self.look().await?;
        let place = (channel, conversation);
        let outcome = outbox::by_message(work.connection(), place, message_id).await;
        work.settle(outcome).await
    }

    async fn record_delivery(&self, key: &str, delivery: Delivery) -> Result<(), StoreError> {
        let mut work = self.change().await?;
        let outcome = outbox::delivery(work.connection(), key, &delivery).await;
        work.settle(outcome).await
    }

    async fn append_audit(&self, entry: NewAudit) -> Result<(), StoreError> {
        let mut work = self.change().await?;
        let outcome = audit::append(work.connection(), &entry, now()).await;
        work.settle(outcome).await
    }

    async fn audit(&self, after: u64, limit: u32) -> Result<Vec<AuditEntry>, StoreError> {
        let mut work = self.look().await?;
        let outcome = audit::page(work.connection(), sql::AUDIT, int(after), limit).await;
        work.settle(outcome).await
    }

    async fn latest_audit(
        &self,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<AuditEntry>, StoreError> {
        let mut work = self.look().await?;
        let before = before.map_or(i64::MAX, int);
        let outcome = audit::page(work.connection(), sql::LATEST_AUDIT, before, limit).await;
        work.settle(outcome).await
    }
}

#[allow(clippy::needless_pass_by_value)] // The form `map_err` wants.
fn damaged(message: String) -> StoreError {
    StoreError::Database(format!("a row of the channels is damaged: {message}"))
}

/// The newest rows of a thread, oldest first, by a query that takes the thread and a limit.
async fn newest_of_thread<T>(
    connection: &mut Connection,
    query: &'static str,
    at: &ThreadRef,
    limit: u32,
    read: fn(&Row) -> Result<T, String>,
) -> Result<Vec<T>, Failure> {
    let rows = engine::query(query)
        .bind(at.channel.as_str())
        .bind(at.conversation.as_str())
        .bind(at.thread.as_str())
        .bind(i64::from(limit))
        .fetch_all(connection)
        .await?;
    let rows: Result<_, String> = rows.iter().rev().map(read).collect();
    Ok(rows.map_err(damaged)?)
}

fn thread_ref(row: &Row) -> Result<ThreadRef, String> {
    Ok(ThreadRef {
        channel: field(row, "channel")?,
        conversation: field(row, "conversation")?,
        thread: field(row, "thread")?,
    })
}

fn task_id(row: &Row) -> Result<Option<TaskId>, String> {
    let id: Option<&str> = field(row, "task_id")?;
    id.map(str::parse).transpose().map_err(message_of)
}
