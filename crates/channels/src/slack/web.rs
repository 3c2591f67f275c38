//! Slack's Web API: posting, editing and finding messages, and fetching pictures.
//!
//! Slack answers most mistakes with status 200 and a word. The words are sorted here into what may
//! work later, what a new message would mend, and what never will, because the outbox decides by
//! that and by nothing else.

use std::time::Duration;

use async_trait::async_trait;
use codespar_store::ThreadRef;
use reqwest::{RequestBuilder, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

use super::{
    SLACK, SlackSetup,
    check::check,
    draw,
    files::{self, Reference, SlackFile},
    sessions::Sessions,
    streams::{self, Streams},
};
use crate::{
    AddressedMessage, ChannelAdapter, ChannelFinding, ClientError, InboundImage, OutboundKind,
    Pace, SendError, ThreadActivity,
    client::{USUAL_WAIT, client, retry_after, temporary},
    message::NEW_THREAD,
};

/// `chat.postMessage` takes one message a second in a channel, `chat.update` some fifty a minute.
const PACE: Pace = Pace {
    post: Duration::from_millis(1_000),
    edit: Duration::from_millis(1_200),
};
/// Said of an answer that lacks what it should have.
pub(super) const USUAL_METHOD_ERROR: &str = "Slack's answer lacks what was asked for";

/// The Web API with the token of the bot.
pub(super) struct SlackApi {
    pub(super) http: reqwest::Client,
    pub(super) api: Url,
    token: SecretString,
}

/// What an answer of any method may have.
#[derive(Deserialize)]
pub(super) struct SlackAnswer {
    ok: bool,
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    pub(super) ts: Option<String>,
    #[serde(default)]
    messages: Vec<Value>,
    #[serde(default)]
    pub(super) url: Option<String>,
    #[serde(default)]
    pub(super) user: Option<String>,
    #[serde(default)]
    pub(super) user_id: Option<String>,
    /// What works, and could be better.
    #[serde(default)]
    pub(super) warning: Option<String>,
    #[serde(default)]
    pub(super) team: Option<String>,
    #[serde(default)]
    file: Option<SlackFile>,
    #[serde(default)]
    file_id: Option<String>,
    #[serde(default)]
    upload_url: Option<String>,
}

/// An answer that says that it worked.
pub(super) struct SlackReply {
    pub(super) answer: SlackAnswer,
    /// What the token may do, by commas.
    pub(super) scopes: Option<String>,
}

impl SlackApi {
    pub(super) fn new(setup: &SlackSetup) -> Result<Self, ClientError> {
        Ok(Self {
            http: client("Slack", &setup.api, setup.proxy.as_ref())?,
            api: setup.api.clone(),
            token: setup.bot_token.clone(),
        })
    }

    /// Of a method. An address that cannot be made is a mistake in the setup, which no retry mends.
    pub(super) fn url(&self, method: &str) -> Result<Url, SendError> {
        let url = self.api.join(method);
        url.map_err(|error| SendError::Permanent(error.to_string()))
    }

    /// For methods that change something. The token goes into a header and never into an address,
    /// which proxies log.
    pub(super) async fn post_json(
        &self,
        method: &str,
        body: &Value,
    ) -> Result<SlackReply, SendError> {
        let request = self
            .http
            .post(self.url(method)?)
            .header("content-type", "application/json; charset=utf-8")
            .body(body.to_string());
        self.call(request).await
    }

    /// Calls a method that takes its arguments in the address.
    async fn get(&self, method: &str, query: &[(&str, &str)]) -> Result<SlackReply, SendError> {
        let mut url = self.url(method)?;
        url.query_pairs_mut().extend_pairs(query);
        self.call(self.http.get(url)).await
    }

    async fn call(&self, request: RequestBuilder) -> Result<SlackReply, SendError> {
        self.call_with(request, self.token.expose_secret()).await
    }

    /// With a token of its own: opening a socket needs that of the app instead of that of the bot.
    /// A limit is told with the time to wait.
    pub(super) async fn call_with(
        &self,
        request: RequestBuilder,
        token: &str,
    ) -> Result<SlackReply, SendError> {
        let response = request.bearer_auth(token).send().await.map_err(temporary)?;
        if response.status() == StatusCode::TOO_MANY_REQUESTS {
            return Err(SendError::RetryAfter(retry_after(&response)));
        }
        if response.status().is_server_error() {
            return Err(SendError::Temporary(format!(
                "Slack says {}",
                response.status()
            )));
        }
        let scopes = response.headers().get("x-oauth-scopes");
        let scopes = scopes.and_then(|value| value.to_str().ok());
        let scopes = scopes.map(str::to_owned);
        let text = response.text().await.map_err(temporary)?;
        let answer: SlackAnswer = serde_json::from_str(&text)
            .map_err(|_| SendError::Temporary("Slack's answer cannot be read".to_owned()))?;
        match (answer.ok, &answer.error) {
            (true, _) => Ok(SlackReply { answer, scopes }),
            (false, error) => Err(refusal(error.as_deref().unwrap_or("unknown"))),
        }
    }

    /// Shares a text as a file, in three steps; only the last one shows it. Gives the id of the file.
    async fn upload(&self, at: &ThreadRef, key: &str, text: &str) -> Result<String, SendError> {
        let length = text.len().to_string();
        let query = [("filename", "log.txt"), ("length", length.as_str())];
        let answer = self.get("files.getUploadURLExternal", &query).await?.answer;
        let (Some(id), Some(url)) = (answer.file_id, answer.upload_url) else {
            return Err(SendError::Permanent(USUAL_METHOD_ERROR.to_owned()));
        };
        let url = files::trusted(&url, &self.api).map_err(SendError::Permanent)?;
        let request = self.http.post(url).header("content-type", "text/plain");
        let sent = request.body(text.to_owned()).send().await;
        let sent = sent.map_err(temporary)?;
        if !sent.status().is_success() {
            let problem = format!("Slack says {} to a file", sent.status());
            return Err(SendError::Temporary(problem));
        }
        let mut body = json!({
            "files": [{"id": id, "title": files::title(key)}],
            "channel_id": at.conversation,
        });
        if !is_new(at) {
            body["thread_ts"] = json!(at.thread);
        }
        self.post_json("files.completeUploadExternal", &body)
            .await?;
        Ok(id)
    }

    /// Where a picture is that is known by its id only.
    async fn address_of(&self, id: &str) -> Result<String, String> {
        let reply = self.get("files.info", &[("file", id)]).await;
        let file = reply.map_err(|error| error.to_string())?.answer.file;
        file.ok_or(USUAL_METHOD_ERROR)?.address()
    }
}

/// Slack as a place to post to.
///
/// All calls of a workspace go through one of these, so that its pace is kept.
pub struct SlackChannel {
    api: SlackApi,
    app_token: Option<SecretString>,
    streams: Streams,
    sessions: Sessions,
}

impl SlackChannel {
    pub fn new(setup: &SlackSetup) -> Result<Self, ClientError> {
        Ok(Self {
            api: SlackApi::new(setup)?,
            app_token: setup.app_token.clone(),
            streams: Streams::default(),
            sessions: Sessions::default(),
        })
    }

    async fn update(&self, id: &str, outgoing: AddressedMessage<'_>) -> Result<(), SendError> {
        let AddressedMessage { at, key, message } = outgoing;
        let mut body = draw::body(key, message);
        body["channel"] = json!(at.conversation);
        body["ts"] = json!(id);
        let edited = self.api.post_json("chat.update", &body).await;
        edited.map(|_| ())
    }

    /// An answer takes the place of its draft. A stream that an earlier process began is not known
    /// here: it is ended when Slack refuses to change it.
    async fn answer(&self, id: &str, outgoing: AddressedMessage<'_>) -> Result<(), SendError> {
        self.streams.end_known(&self.api, outgoing.at, id).await?;
        match self.update(id, outgoing).await {
            Err(refused @ (SendError::Permanent(_) | SendError::CannotEdit)) => {
                match streams::end(&self.api, outgoing.at, id).await {
                    Ok(()) => self.update(id, outgoing).await,
                    Err(_) => Err(refused),
                }
            }
            edited => edited,
        }
    }
}

/// Slack's words for what went wrong.
fn refusal(error: &str) -> SendError {
    match error {
        "ratelimited" | "rate_limited" => SendError::RetryAfter(USUAL_WAIT),
        "message_not_found" | "cant_update_message" | "edit_window_closed" => SendError::CannotEdit,
        "internal_error" | "fatal_error" | "service_unavailable" | "request_timeout" => {
            SendError::Temporary(format!("Slack says {error}"))
        }
        _ => SendError::Permanent(format!("Slack says {error}")),
    }
}

#[async_trait]
impl ChannelAdapter for SlackChannel {
    fn name(&self) -> &str {
        SLACK
    }

    fn pace(&self) -> Pace {
        PACE
    }

    async fn post(&self, outgoing: AddressedMessage<'_>) -> Result<String, SendError> {
        let AddressedMessage { at, key, message } = outgoing;
        match message.kind {
            OutboundKind::File => return self.api.upload(at, key, &message.text).await,
            OutboundKind::Draft => return self.streams.begin(&self.api, outgoing).await,
            _ => {}
        }
        let mut body = draw::body(key, message);
        body["channel"] = json!(at.conversation);
        if !is_new(at) {
            body["thread_ts"] = json!(at.thread);
        }
        let reply = self.api.post_json("chat.postMessage", &body).await?;
        let missing = || SendError::Permanent("Slack gave no time stamp".to_owned());
        reply.answer.ts.ok_or_else(missing)
    }

    async fn edit(&self, id: &str, outgoing: AddressedMessage<'_>) -> Result<(), SendError> {
        match outgoing.message.kind {
            // It is shared, and does not change.
            OutboundKind::File => Ok(()),
            OutboundKind::Draft => self.streams.extend(&self.api, id, outgoing).await,
            OutboundKind::Text => self.answer(id, outgoing).await,
            _ => self.update(id, outgoing).await,
        }
    }

    async fn find_posted(&self, at: &ThreadRef, key: &str) -> Result<Option<String>, SendError> {
        let mut query = vec![
            ("channel", at.conversation.as_str()),
            ("limit", "200"),
            ("include_all_metadata", "true"),
        ];
        let method = match is_new(at) {
            true => "conversations.history",
            false => {
                query.push(("ts", &at.thread));
                "conversations.replies"
            }
        };
        let reply = match self.api.get(method, &query).await {
            Ok(reply) => reply,
            // Without the right to read, or in a thread that is gone, it cannot be known.
            Err(SendError::Permanent(_) | SendError::CannotEdit) => return Ok(None),
            Err(error) => return Err(error),
        };
        let title = files::title(key);
        let has_file = |message: &Value| {
            let files = message["files"].as_array();
            files.is_some_and(|files| files.iter().any(|file| file["title"] == title.as_str()))
        };
        let is_it = |message: &&Value| {
            message["metadata"]["event_payload"]["key"] == key || has_file(message)
        };
        let found = reply.answer.messages.iter().find(is_it);
        match found.and_then(|message| message["ts"].as_str()) {
            Some(ts) => Ok(Some(ts.to_owned())),
            None => {
                let messages = &reply.answer.messages;
                self.streams.find_lost(&self.api, messages, key).await
            }
        }
    }

    fn shows_drafts(&self, at: &ThreadRef) -> bool {
        !is_new(at) && self.streams.are_wanted()
    }

    fn shows_activity(&self) -> bool {
        true
    }

    async fn show_activity(&self, at: &ThreadRef, activity: ThreadActivity) {
        if !is_new(at) {
            self.sessions.show(&self.api, at, activity).await;
        }
    }

    /// `app_mention` may come without the files that its twin `message` has.
    async fn images_of(
        &self,
        at: &ThreadRef,
        identity: &str,
    ) -> Result<Vec<InboundImage>, SendError> {
        let Some(ts) = ts_of(identity) else {
            return Ok(Vec::new());
        };
        let query = [
            ("channel", at.conversation.as_str()),
            ("ts", at.thread.as_str()),
            ("oldest", ts),
            ("latest", ts),
            ("inclusive", "true"),
        ];
        let reply = self.api.get("conversations.replies", &query).await?;
        let messages = reply.answer.messages;
        let said = messages.into_iter().find(|message| message["ts"] == ts);
        let files = said.map(|mut message| message["files"].take());
        let files: Vec<SlackFile> = files
            .and_then(|files| serde_json::from_value(files).ok())
            .unwrap_or_default();
        Ok(files.into_iter().map(SlackFile::image).collect())
    }

    fn takes_files(&self) -> bool {
        true
    }

    async fn fetch_image(&self, reference: &str, most: usize) -> Result<Vec<u8>, String> {
        let address = match Reference::of(reference) {
            Reference::Address(address) => address.to_owned(),
            Reference::Id(id) => self.api.address_of(id).await?,
        };
        let url = files::trusted(&address, &self.api.api)?;
        let token = self.api.token.expose_secret();
        let sent = self.api.http.get(url).bearer_auth(token).send().await;
        let response = sent.map_err(|error| error.without_url().to_string())?;
        files::read(response, most).await
    }

    async fn check(&self) -> Vec<ChannelFinding> {
        check(&self.api, self.app_token.as_ref()).await
    }
}

/// The time stamp of a message, by its identity. Buttons and commands have none.
pub(super) fn ts_of(identity: &str) -> Option<&str> {
    let mut parts = identity.split(':').skip(3);
    let ts = parts.next()?;
    parts.next().is_none().then_some(ts)
}

/// Whether our message is to begin the thread.
pub(super) fn is_new(at: &ThreadRef) -> bool {
    at.thread.starts_with(NEW_THREAD)
}
