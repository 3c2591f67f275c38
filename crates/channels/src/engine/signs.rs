//! Signs beside messages: reactions, and what a pull request shows of work on it. They are made
//! beside the work; nothing waits for them, and nothing depends on them.

use codespar_protocol::{TaskRecord, TaskStatus};
use codespar_store::ChannelMessage;

use super::ChannelCore;
use crate::{Acknowledgement, WorkReport, text::shortened};

/// A line of a report.
const MOST: usize = 120;

impl ChannelCore {
    /// Shows at a message how far it is.
    pub(crate) fn acknowledge(&self, message: &ChannelMessage, outcome: Acknowledgement) {
        let adapter = self.adapters.lock().get(&message.at.channel).cloned();
        let Some(adapter) = adapter else { return };
        let (at, identity) = (message.at.clone(), message.identity.clone());
        tokio::spawn(async move { adapter.acknowledge(&at, &identity, outcome).await });
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
