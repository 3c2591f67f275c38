//! What the user says to an agent while it works.
//!
//! It is put into the conversation at the next place where every call has its result, before the
//! model is asked again. A message that comes after the last answer begins another turn of the same
//! run, so none is left behind.

use std::sync::Arc;

use async_trait::async_trait;
use codespar_policy::Redactor;
use codespar_protocol::{EntryBody, Message, NoticeLevel};
use codespar_store::StoreError;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::{AgentHooks, Inbox, Transcript};

/// Messages that wait to be delivered.
#[derive(Default)]
pub struct Steering {
    waiting: Mutex<Vec<String>>,
    came: Notify,
    hooks: Mutex<Option<Arc<AgentHooks>>>,
}

impl Steering {
    pub fn push(&self, text: String) {
        self.waiting.lock().push(text);
        self.came.notify_one();
    }

    /// Whose hooks are asked about what the user says: those of the agent that hears it.
    pub fn set_hooks(&self, hooks: Option<Arc<AgentHooks>>) {
        *self.hooks.lock() = hooks;
    }

    /// What hooks add to a message. `None` if they refuse it, which the user is told.
    async fn checked(&self, text: &str) -> Option<Option<String>> {
        let hooks = self.hooks.lock().clone();
        let Some(hooks) = hooks else {
            return Some(None);
        };
        match hooks.check_prompt(text, &CancellationToken::new()).await {
            Ok(added) => Some(added),
            Err(reason) => {
                hooks.notice(NoticeLevel::Warning, reason);
                None
            }
        }
    }

    /// What was not delivered: the run ended or was interrupted before.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.waiting.lock())
    }

    fn is_empty(&self) -> bool {
        self.waiting.lock().is_empty()
    }
}

/// An inbox that also brings what the user says.
pub struct SteeredInbox {
    pub inbox: Arc<dyn Inbox>,
    pub steering: Arc<Steering>,
    /// Secrets do not enter the conversation this way either.
    pub redactor: Arc<Redactor>,
}

#[async_trait]
impl Inbox for SteeredInbox {
    /// What others have to say comes before what the user says: the last word is the user's. A
    /// message that cannot be recorded waits again.
    async fn deliver(&self, transcript: &mut Transcript) -> Result<bool, StoreError> {
        let mut delivered = self.inbox.deliver(transcript).await?;
        let mut waiting = self.steering.take().into_iter();
        while let Some(text) = waiting.next() {
            let said = self.redactor.redact(&text).into_owned();
            let Some(added) = self.steering.checked(&said).await else {
                continue;
            };
            let body = EntryBody::User {
                message: Message::user(said),
                synthetic: false,
            };
            if let Err(error) = transcript.append(body).await {
                let mut again = self.steering.waiting.lock();
                again.splice(0..0, std::iter::once(text).chain(waiting));
                return Err(error);
            }
            if let Some(added) = added {
                let body = EntryBody::User {
                    message: Message::user(added),
                    synthetic: true,
                };
                transcript.append(body).await?;
            }
            delivered = true;
        }
        Ok(delivered)
    }

    async fn wait(&self, cancel: &CancellationToken) -> bool {
        let others = self.inbox.wait(cancel);
        tokio::pin!(others);
        // A wake-up may be of a message that was delivered since.
        while self.steering.is_empty() {
            tokio::select! {
                came = &mut others => return came || !self.steering.is_empty(),
                () = self.steering.came.notified() => {}
            }
        }
        true
    }

    async fn has_tasks(&self) -> bool {
        self.inbox.has_tasks().await
    }
}
