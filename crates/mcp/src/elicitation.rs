//! What a server wants to know of the user.
//!
//! A server may ask for the values of a form while it works on a call. The question belongs to the
//! server, not to an agent: servers are shared. While it is open, the time limit of the server's
//! calls does not run.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use async_trait::async_trait;
use codespar_protocol::{Answer, ElicitationRequest};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Puts the questions of servers to the user.
#[async_trait]
pub trait Elicitor: Send + Sync {
    /// Asks and waits, until there is an answer or the server has given up. Anything but
    /// `Answer::Form` is passed on as declined.
    async fn elicit(&self, request: ElicitationRequest, gave_up: &CancellationToken) -> Answer;
}

/// Set once, before servers connect; without one they are told that nobody can be asked.
#[derive(Clone, Default)]
pub struct SharedElicitor(Arc<OnceLock<Arc<dyn Elicitor>>>);

impl fmt::Debug for SharedElicitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SharedElicitor")
            .field(&self.0.get().is_some())
            .finish()
    }
}

impl SharedElicitor {
    pub(super) fn get(&self) -> Option<Arc<dyn Elicitor>> {
        self.0.get().cloned()
    }

    /// The first one stays.
    pub(super) fn set(&self, elicitor: Arc<dyn Elicitor>) {
        let _ = self.0.set(elicitor);
    }
}

/// How many questions of a server are open. Meanwhile its calls take as long as the user does.
#[derive(Clone)]
pub(super) struct OpenElicitations(Arc<watch::Sender<u32>>);

impl Default for OpenElicitations {
    fn default() -> Self {
        Self(Arc::new(watch::channel(0).0))
    }
}

/// One open question.
pub(super) struct OpenElicitation(OpenElicitations);

impl Drop for OpenElicitation {
    fn drop(&mut self) {
        self.0.0.send_modify(|open| *open = open.saturating_sub(1));
    }
}

impl OpenElicitations {
    /// Counts until the value is dropped, however the question ends.
    pub(super) fn open(&self) -> OpenElicitation {
        self.0.send_modify(|open| *open += 1);
        OpenElicitation(self.clone())
    }

    /// Returns when the time has passed in one piece without an open question. After each question
    /// the time starts anew, so a server is never given less than its limit.
    pub(super) async fn time_out(&self, time: std::time::Duration) {
        let mut open = self.0.subscribe();
        loop {
            // The sender is ours: there is always one.
            let _ = open.wait_for(|open| *open == 0).await;
            tokio::select! {
                () = tokio::time::sleep(time) => return,
                _ = open.wait_for(|open| *open > 0) => {}
            }
        }
    }
}
