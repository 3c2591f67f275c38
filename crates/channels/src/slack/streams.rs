//! Slack's streams: an answer that grows while it is written.
//!
//! ```text
//! draft 1 ─▶ chat.startStream    draft n ─▶ chat.appendStream, what it has more
//! answer  ─▶ chat.stopStream, chat.update: blocks, buttons, and the key as metadata
//! ```
//!
//! A stream is an extra. Slack ends one after about five minutes, and refuses them to some apps and in
//! some places; then it is forgotten, and the answer comes as an edit of the message or as a new one.

use std::collections::VecDeque;

use codespar_store::ThreadRef;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{
    draw,
    quiet::Quiet,
    web::{SlackApi, is_new, ts_of},
};
use crate::{AddressedMessage, SendError};

/// Slack takes so much at once, in characters.
const MOST_TEXT: usize = 12_000;
/// More are not written at once; the oldest is forgotten, which does no harm.
const MOST_STREAMS: usize = 200;
/// How the keys of answers end.
const REPLY: &str = "/reply";

/// A stream of this process that goes on.
struct OpenStream {
    conversation: String,
    ts: String,
    /// What was sent.
    text: String,
}

/// The streams of the workspace.
#[derive(Default)]
pub(super) struct Streams {
    open: Mutex<VecDeque<OpenStream>>,
    quiet: Quiet,
    /// Our own account.
    ours: tokio::sync::OnceCell<String>,
}

impl Streams {
    /// Whether Slack is known to take none now.
    pub(super) fn are_wanted(&self) -> bool {
        self.quiet.is_over()
    }

    /// Begins one with the first draft; its time stamp.
    pub(super) async fn begin(
        &self,
        api: &SlackApi,
        outgoing: AddressedMessage<'_>,
    ) -> Result<String, SendError> {
        let AddressedMessage { at, key, message } = outgoing;
        let text = draw::draft(message);
        let refused = |why: &str| Err(SendError::Permanent(why.to_owned()));
        let (Some(team), Some(person)) = (key.split(':').nth(1), &message.mention) else {
            return refused("a stream is for somebody");
        };
        if is_new(at) || text.chars().count() > MOST_TEXT || !self.quiet.is_over() {
            return refused("no stream can begin here");
        }
        let body = json!({
            "channel": at.conversation,
            "thread_ts": at.thread,
            "recipient_user_id": person.id,
            "recipient_team_id": team,
            "markdown_text": text,
        });
        let begun = match api.post_json("chat.startStream", &body).await {
            Ok(reply) => reply.answer.ts,
            Err(error) => {
                self.quiet.begin(&error);
                return Err(error);
            }
        };
        let Some(ts) = begun else {
            return refused("Slack gave no time stamp");
        };
        let mut open = self.open.lock();
        if open.len() >= MOST_STREAMS {
            open.pop_front();
        }
        open.push_back(OpenStream {
            conversation: at.conversation.clone(),
            ts: ts.clone(),
            text,
        });
        Ok(ts)
    }

    /// Sends what a draft has more. One that cannot be extended any more is forgotten: whether Slack
    /// has got a part is not known, and a second time would show it twice.
    pub(super) async fn extend(
        &self,
        api: &SlackApi,
        ts: &str,
        outgoing: AddressedMessage<'_>,
    ) -> Result<(), SendError> {
        let AddressedMessage { at, message, .. } = outgoing;
        let Some(mut stream) = self.take(at, ts) else {
            return Ok(());
        };
        let text = draw::draft(message);
        let more = text.strip_prefix(stream.text.as_str());
        let Some(more) = more.filter(|more| !more.is_empty()) else {
            self.open.lock().push_back(stream);
            return Ok(());
        };
        let body = json!({"channel": at.conversation, "ts": ts, "markdown_text": more});
        api.post_json("chat.appendStream", &body).await?;
        stream.text = text;
        self.open.lock().push_back(stream);
        Ok(())
    }

    /// Ends one that this process began. One that Slack has ended is ended.
    pub(super) async fn end_known(
        &self,
        api: &SlackApi,
        at: &ThreadRef,
        ts: &str,
    ) -> Result<(), SendError> {
        let Some(stream) = self.take(at, ts) else {
            return Ok(());
        };
        match end(api, at, ts).await {
            Err(error @ (SendError::RetryAfter(_) | SendError::Temporary(_))) => {
                self.open.lock().push_back(stream);
                Err(error)
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn take(&self, at: &ThreadRef, ts: &str) -> Option<OpenStream> {
        let mut open = self.open.lock();
        let is_it = |one: &OpenStream| one.conversation == at.conversation && one.ts == ts;
        let place = open.iter().position(is_it)?;
        open.remove(place)
    }

    /// The stream of an answer whose begin is not on record. It has no metadata, which all other
    /// messages of ours have; of those after the message that was asked, it is the first.
    pub(super) async fn find_lost(
        &self,
        api: &SlackApi,
        messages: &[Value],
        key: &str,
    ) -> Result<Option<String>, SendError> {
        let asked = key.strip_suffix(REPLY).and_then(ts_of).and_then(parts);
        let Some(asked) = asked else { return Ok(None) };
        let ours = self.ours.get_or_try_init(|| own_account(api)).await?;
        let is_lost = |message: &&Value| {
            message["user"] == ours.as_str()
                && message["metadata"]["event_payload"]["key"].is_null()
                && message["files"].is_null()
        };
        let later = messages.iter().filter(is_lost).filter_map(|message| {
            let ts = message["ts"].as_str()?;
            (parts(ts)? > asked).then_some(ts)
        });
        let open = self.open.lock();
        let mut lost = later.filter(|ts| open.iter().all(|one| one.ts != *ts));
        Ok(lost.next().map(str::to_owned))
    }
}

/// Ends a stream; an error if it was none, or is none any more.
pub(super) async fn end(api: &SlackApi, at: &ThreadRef, ts: &str) -> Result<(), SendError> {
    let body = json!({"channel": at.conversation, "ts": ts});
    api.post_json("chat.stopStream", &body).await.map(|_| ())
}

async fn own_account(api: &SlackApi) -> Result<String, SendError> {
    let reply = api.post_json("auth.test", &json!({})).await?;
    let missing = || SendError::Permanent("Slack does not tell who we are".to_owned());
    reply.answer.user_id.ok_or_else(missing)
}

/// A time stamp in a form that can be compared.
fn parts(ts: &str) -> Option<(u64, u64)> {
    let (seconds, order) = ts.split_once('.')?;
    Some((seconds.parse().ok()?, order.parse().ok()?))
}
