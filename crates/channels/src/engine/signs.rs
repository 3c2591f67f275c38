//! Signs beside messages: reactions, whether a thread is busy, and what a pull request shows of work
//! on it. They are made beside the work; nothing waits for them, and nothing depends on them.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use codespar_protocol::{TaskRecord, TaskStatus};
use codespar_store::{ChannelMessage, Database, MessageState, StoreError, ThreadRef};
use jiff::Timestamp;
use tokio::sync::Mutex;

use super::ChannelCore;
use crate::{Acknowledgement, ChannelAdapter, ThreadActivity, WorkReport, text::shortened};

/// A line of a report.
const MOST: usize = 120;
/// Of a thread; what is older has ended.
const LOOKED_AT: u32 = 200;

/// What platforms were told of the threads that are busy. Whether one is so is read from the record
/// when it is told, one at a time: signs are made beside the work, and may come out of order.
pub(crate) struct Activity {
    threads: Mutex<HashMap<ThreadRef, ThreadSign>>,
    /// Of this process: an earlier one may have told of threads that are older.
    since: Timestamp,
}

#[derive(Default)]
struct ThreadSign {
    /// Messages that are being handled, as far as they are known to be.
    begun: HashSet<String>,
    is_told: bool,
}

impl Activity {
    pub(crate) fn new() -> Self {
        Self {
            threads: Mutex::default(),
            since: Timestamp::now(),
        }
    }

    /// Tells what is so now in the thread of a message that was begun or settled.
    async fn tell(
        &self,
        store: &dyn Database,
        adapter: &dyn ChannelAdapter,
        message: &ChannelMessage,
    ) -> Result<(), StoreError> {
        let at = &message.at;
        let mut threads = self.threads.lock().await;
        let sign = threads.entry(at.clone()).or_default();
        sign.begun.insert(message.identity.clone());
        let mut messages = store.messages_of_thread(at, LOOKED_AT).await?;
        messages.retain(|one| match one.state {
            MessageState::Working => true,
            MessageState::Received | MessageState::Queued => sign.begun.contains(&one.identity),
            MessageState::Handled | MessageState::Ignored => false,
        });
        let is_busy = !messages.is_empty();
        sign.begun = messages.into_iter().map(|one| one.identity).collect();
        let is_told = std::mem::replace(&mut sign.is_told, is_busy);
        if !is_busy {
            threads.remove(at);
        }
        match (is_busy, is_told) {
            (true, false) => adapter.show_activity(at, ThreadActivity::Busy).await,
            (false, true) => adapter.show_activity(at, ThreadActivity::Idle).await,
            (false, false) if message.received_at < self.since => {
                adapter.show_activity(at, ThreadActivity::Idle).await;
            }
            _ => {}
        }
        Ok(())
    }
}

impl ChannelCore {
    /// Shows at a message how far it is.
    pub(crate) fn acknowledge(&self, message: &ChannelMessage, outcome: Acknowledgement) {
        let adapter = self.adapters.lock().get(&message.at.channel).cloned();
        let Some(adapter) = adapter else { return };
        let (at, identity) = (message.at.clone(), message.identity.clone());
        tokio::spawn(async move { adapter.acknowledge(&at, &identity, outcome).await });
        self.show_activity(message);
    }

    /// Shows whether the thread of a message is busy, now that the message was begun or settled.
    pub(crate) fn show_activity(&self, message: &ChannelMessage) {
        let adapter = self.adapters.lock().get(&message.at.channel).cloned();
        let Some(adapter) = adapter.filter(|one| one.shows_activity()) else {
            return;
        };
        let (activity, store) = (self.activity.clone(), Arc::clone(self.store()));
        let message = message.clone();
        tokio::spawn(async move {
            if let Err(error) = activity.tell(&*store, &*adapter, &message).await {
                tracing::debug!("what a thread is at is not shown: {error}");
            }
        });
    }

    /// Shows that nothing is under way in a thread, whatever was told of it.
    pub(crate) fn show_idle(&self, at: &ThreadRef) {
        let adapter = self.adapters.lock().get(&at.channel).cloned();
        let Some(adapter) = adapter else { return };
        let at = at.clone();
        tokio::spawn(async move { adapter.show_activity(&at, ThreadActivity::Idle).await });
    }

    /// Tells at a pull request what a task came to: the one that it made, or that of the thread.
    pub(crate) fn report(
        &self,
        message: &ChannelMessage,
        record: &TaskRecord,
        pull_request: Option<u64>,
    ) {
        let adapter = self.adapters.lock().get(&message.at.channel).cloned();
        let (Some(adapter), Some(pull_request)) = (adapter, pull_request) else {
            return;
        };
        let (outcome, text) = match record.status {
            TaskStatus::Completed => (Acknowledgement::Done, record.subject.as_str()),
            _ => {
                let error = record.error.as_deref().unwrap_or("without a reason");
                (Acknowledgement::NotDone, error)
            }
        };
        let text = self.setup.home.redactor.redact(text);
        let report = WorkReport {
            pull_request,
            task: record.task_id.to_string(),
            outcome,
            summary: shortened(text.lines().next().unwrap_or_default(), MOST),
        };
        let at = message.at.clone();
        tokio::spawn(async move { adapter.report(&at, &report).await });
    }
}
