//! Whether a thread is at work, as Slack shows it to people: with a button that stops it.
//!
//! Slack tells of the button by the event `agent_session_stopped`. Apps that are no agents have no
//! sessions; then Slack refuses, and nothing is shown.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use codespar_store::ThreadRef;
use serde_json::json;

use super::{quiet::Quiet, web::SlackApi};
use crate::{SendError, ThreadActivity};

/// An end that Slack does not take now is told once more, after at most this: the button would stay.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The sessions of the workspace.
#[derive(Default)]
pub(super) struct Sessions {
    quiet: Quiet,
    is_warned: AtomicBool,
}

impl Sessions {
    pub(super) async fn show(&self, api: &SlackApi, at: &ThreadRef, activity: ThreadActivity) {
        if !self.quiet.is_over() {
            return;
        }
        let mut told = self.tell(api, at, activity).await;
        if let (ThreadActivity::Idle, Err(error)) = (activity, &told) {
            let wait = match error {
                SendError::RetryAfter(wait) => Some(*wait),
                SendError::Temporary(_) => Some(Duration::from_secs(1)),
                SendError::CannotEdit | SendError::Permanent(_) => None,
            };
            if let Some(wait) = wait {
                tokio::time::sleep(wait.min(LONGEST_WAIT)).await;
                told = self.tell(api, at, activity).await;
            }
        }
        if let Err(error) = told {
            tracing::debug!("Slack does not show that a thread is at work: {error}");
            self.quiet.begin(&error);
        }
    }

    async fn tell(
        &self,
        api: &SlackApi,
        at: &ThreadRef,
        activity: ThreadActivity,
    ) -> Result<(), SendError> {
        let status = match activity {
            ThreadActivity::Busy => "processing",
            ThreadActivity::Idle => "active",
        };
        let body = json!({
            "channel_id": at.conversation, "thread_ts": at.thread, "status": status,
        });
        let reply = api.post_json("agents.sessions.setStatus", &body).await?;
        let warning = reply.answer.warning.unwrap_or_default();
        let lacks_event = warning.contains("missing_agent_session_stopped_event_subscription");
        if lacks_event && !self.is_warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "Slack shows no stop button: add agent_session_stopped to the bot events of the app"
            );
        }
        Ok(())
    }
}
