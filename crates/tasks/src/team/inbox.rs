//! What a teammate does when it has nothing more to do: it takes the next item of the list.
//!
//! ```text
//! nothing to deliver → wait for own tasks → remind of items still held → take a free item → rest
//! ```
//!
//! The last two steps send what they find as mail, which the next `deliver` puts into the
//! conversation.

use std::{collections::HashSet, sync::Arc};

use async_trait::async_trait;
use codespar_agent::{Inbox, Transcript};
use codespar_protocol::TaskId;
use codespar_store::StoreError;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::TeamMember;
use crate::{TaskHub, TaskInbox};

/// The inbox of a teammate.
pub struct TeamInbox {
    inbox: TaskInbox,
    hub: Arc<TaskHub>,
    task: TaskId,
    member: TeamMember,
    /// Items it was reminded of in this attempt; once each is enough.
    reminded: Mutex<HashSet<TaskId>>,
}

impl TeamInbox {
    /// Mail and notifications come by `inbox`, work by the list of the team.
    pub fn new(inbox: TaskInbox, task: TaskId, member: TeamMember) -> Self {
        Self {
            hub: inbox.hub.clone(),
            inbox,
            task,
            member,
            reminded: Mutex::default(),
        }
    }

    /// It stopped without saying how an item of its own ended. False if it was reminded of all it
    /// holds, or if the store fails. After the reminder it may rest with the item still its own;
    /// its result then says so.
    async fn remind(&self) -> bool {
        let Ok(held) = self.hub.held_by(&self.member).await else {
            return false;
        };
        let mut forgotten = held;
        forgotten.retain(|item| self.reminded.lock().insert(item.task_id.clone()));
        if forgotten.is_empty() {
            return false;
        }
        let ids: Vec<&str> = forgotten.iter().map(|item| item.task_id.as_str()).collect();
        let reminder = format!(
            "You still have {}. Finish it and mark it with TaskUpdate: `completed`, `failed`, or \
             `owner`: \"\" to give it back.",
            ids.join(", ")
        );
        let store = self.hub.store();
        let sent = store
            .send_mail(&self.task, "the task list", &reminder)
            .await;
        sent.is_ok()
    }
}

#[async_trait]
impl Inbox for TeamInbox {
    async fn deliver(&self, transcript: &mut Transcript) -> Result<bool, StoreError> {
        self.inbox.deliver(transcript).await
    }

    async fn has_tasks(&self) -> bool {
        self.inbox.has_tasks().await
    }

    /// Taking an item marks it as running, sets its owner and writes the message in one
    /// transaction, so no two members get the same one.
    async fn wait(&self, cancel: &CancellationToken) -> bool {
        if self.inbox.wait(cancel).await {
            return true;
        }
        if cancel.is_cancelled() {
            return false;
        }
        if self.remind().await {
            return true;
        }
        // A store that fails now is no reason to fail what is done; the next process assigns the item.
        let taken = self.hub.store().take_item(&self.task, None).await;
        matches!(taken, Ok(Some(_)))
    }
}
