//! Chat channels: messages in and out, what threads are about, who people are, the audit log.

use async_trait::async_trait;
use codespar_protocol::{TaskId, Usd};
use jiff::Timestamp;

use crate::{
    AuditEntry, ChannelMessage, ChannelPerson, ChannelTimer, Delivery, MessageChange, NewAudit,
    NewMessage, NewOutbound, OutboxRow, Receipt, RepositoryLink, StoreError, ThreadBinding,
    ThreadRef, TimerChange, TimerKind, TimerState,
};

/// What is kept of chat channels. Texts of channels, conversations, threads and people are those of
/// the platforms; none has to be announced.
#[async_trait]
pub trait ChannelStore: Send + Sync {
    /// Puts a message on record, once for each identity. A further delivery changes nothing but the
    /// mention, which is there if any delivery has it.
    async fn receive_message(&self, new: NewMessage) -> Result<Receipt, StoreError>;

    /// Puts another body in the place of what the caller saw, while nobody has decided on the
    /// message: paired deliveries may each bring a part. Whether it was so.
    async fn amend_message(&self, seen: &ChannelMessage, body: &str) -> Result<bool, StoreError>;

    async fn message(&self, identity: &str) -> Result<ChannelMessage, StoreError>;

    /// For whoever follows a task to its thread; none for a task that no message asked for.
    async fn message_of_task(&self, task: &TaskId) -> Result<Option<ChannelMessage>, StoreError>;

    /// Messages that are not settled, in the order of arrival.
    async fn open_messages(&self, channel: &str) -> Result<Vec<ChannelMessage>, StoreError>;

    /// One step of the work on a message, in one transaction.
    async fn change_message(
        &self,
        identity: &str,
        change: MessageChange,
    ) -> Result<ChannelMessage, StoreError>;

    /// Settles a message as not for us, if it is still as the caller saw it. Whether it is.
    async fn ignore_message(&self, seen: &ChannelMessage) -> Result<bool, StoreError>;

    /// The last messages of a thread, the earliest first.
    async fn messages_of_thread(
        &self,
        at: &ThreadRef,
        limit: u32,
    ) -> Result<Vec<ChannelMessage>, StoreError>;

    /// How many messages of its thread were for us since then, up to this one.
    async fn turns_of_thread(
        &self,
        message: &ChannelMessage,
        since: Timestamp,
    ) -> Result<u64, StoreError>;

    /// How many messages of its speaker were for us since then, up to this one.
    async fn turns_of_speaker(
        &self,
        message: &ChannelMessage,
        since: Timestamp,
    ) -> Result<u64, StoreError>;

    /// How many messages of people without a role were refused since then: of its speaker, and in
    /// its thread.
    async fn refusals(
        &self,
        message: &ChannelMessage,
        since: Timestamp,
    ) -> Result<(u64, u64), StoreError>;

    /// The last message of a thread whose work, as JSON, begins with this.
    async fn last_work(
        &self,
        at: &ThreadRef,
        beginning: &str,
    ) -> Result<Option<ChannelMessage>, StoreError>;

    /// What the work for messages received since then has cost, of one repository or in all.
    async fn channel_spending(
        &self,
        since: Timestamp,
        repository: Option<&str>,
    ) -> Result<Usd, StoreError>;

    async fn thread_binding(&self, at: &ThreadRef) -> Result<ThreadBinding, StoreError>;

    /// Links a repository to a conversation and makes it the default.
    async fn link_repository(
        &self,
        channel: &str,
        conversation: &str,
        repository: &str,
        by: &str,
    ) -> Result<(), StoreError>;

    /// Unlinks the default repository, and makes the one linked last before it the default. Gives
    /// the one that was unlinked.
    async fn unlink_repository(
        &self,
        channel: &str,
        conversation: &str,
    ) -> Result<Option<String>, StoreError>;

    /// The default first.
    async fn linked_repositories(
        &self,
        channel: &str,
        conversation: &str,
    ) -> Result<Vec<RepositoryLink>, StoreError>;

    async fn set_person(&self, person: ChannelPerson) -> Result<(), StoreError>;

    async fn person(
        &self,
        channel: &str,
        user_id: &str,
    ) -> Result<Option<ChannelPerson>, StoreError>;

    /// Takes back what was said of a person. Whether there was something.
    async fn remove_person(&self, channel: &str, user_id: &str) -> Result<bool, StoreError>;

    /// All of whom something was said, by channel and id.
    async fn people(&self) -> Result<Vec<ChannelPerson>, StoreError>;

    /// Puts a timer on record, or in place of the one that has its id.
    async fn put_timer(&self, timer: ChannelTimer) -> Result<(), StoreError>;

    async fn timer(&self, id: &str) -> Result<Option<ChannelTimer>, StoreError>;

    /// Timers of a conversation, in the order in which they were made; also those that have ended.
    async fn timers_of(
        &self,
        channel: &str,
        conversation: &str,
        kind: TimerKind,
    ) -> Result<Vec<ChannelTimer>, StoreError>;

    /// Active timers whose time has come, the earliest first.
    async fn due_timers(
        &self,
        channel: &str,
        now: Timestamp,
    ) -> Result<Vec<ChannelTimer>, StoreError>;

    /// Carries out what came of a timer, if it is still as the caller saw it. Whether it was.
    async fn change_timer(
        &self,
        seen: &ChannelTimer,
        change: TimerChange,
    ) -> Result<bool, StoreError>;

    async fn stop_timer(&self, id: &str, state: TimerState) -> Result<(), StoreError>;

    /// Puts a message to people on record. With another body it is the next revision of the one
    /// that has the key; with the same body nothing changes.
    async fn put_outbound(&self, new: NewOutbound) -> Result<OutboxRow, StoreError>;

    async fn outbound(&self, key: &str) -> Result<Option<OutboxRow>, StoreError>;

    /// Messages that are to be sent, the most urgent first; those that wait for a time are among
    /// them.
    async fn unsent(&self, channel: &str) -> Result<Vec<OutboxRow>, StoreError>;

    /// The last messages of a conversation, the earliest first.
    async fn sent_to(
        &self,
        channel: &str,
        conversation: &str,
        limit: u32,
    ) -> Result<Vec<OutboxRow>, StoreError>;

    /// The last messages to people of a thread, the earliest first.
    async fn sent_to_thread(
        &self,
        at: &ThreadRef,
        limit: u32,
    ) -> Result<Vec<OutboxRow>, StoreError>;

    /// Our message that has this name on the platform.
    async fn outbound_by_message(
        &self,
        channel: &str,
        conversation: &str,
        message_id: &str,
    ) -> Result<Option<OutboxRow>, StoreError>;

    /// Records what came of a delivery.
    async fn record_delivery(&self, key: &str, delivery: Delivery) -> Result<(), StoreError>;

    async fn append_audit(&self, entry: NewAudit) -> Result<(), StoreError>;

    /// Entries after a place, in order, at most `limit`.
    async fn audit(&self, after: u64, limit: u32) -> Result<Vec<AuditEntry>, StoreError>;

    /// Entries before a place, the latest first, at most `limit`; from the end without a place.
    async fn latest_audit(
        &self,
        before: Option<u64>,
        limit: u32,
    ) -> Result<Vec<AuditEntry>, StoreError>;
}
