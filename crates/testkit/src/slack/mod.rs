//! A Slack of one workspace, over real HTTP and WebSockets: what its Web API does with messages of an
//! app, and what Slack delivers.
//!
//! ```text
//! POST chat.postMessage, chat.update          GET conversations.replies, conversations.history
//! POST auth.test, apps.connections.open       GET files.info, /files/ID
//! POST chat.startStream, chat.appendStream, chat.stopStream, agents.sessions.setStatus
//! ```
//!
//! Errors are answered as Slack does: status 200 with `"ok": false`, and 429 with `Retry-After`.

mod sign;
mod socket;
mod stream;

use std::{
    collections::{HashMap, VecDeque},
    io,
    sync::Arc,
};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinSet,
};

pub use self::sign::{
    SLACK_BOT, SLACK_SECRET, event_callback, form, pressed, reacted, said, signed, signed_with,
    slash, stopped,
};
use self::socket::SocketMode;
use crate::http::{Connection, Request};

/// The token that the workspace knows.
pub const SLACK_TOKEN: &str = "xoxb-test-token-of-the-workspace";
/// The token of the app, for Socket Mode.
pub const SLACK_APP_TOKEN: &str = "xapp-test-token-of-the-app";
/// What the bot token may do, if a test says nothing else.
const ALL_SCOPES: &str = "app_mentions:read,chat:write,channels:history,groups:history,im:history,\
                          files:read,files:write,commands,reactions:read,assistant:write";

/// A message of the app, with everything it has said.
#[derive(Debug, Clone, PartialEq)]
pub struct SlackMessage {
    pub channel: String,
    pub thread: String,
    pub ts: String,
    /// The bodies of the calls, the last one as it stands. Of a stream: with the text so far.
    pub revisions: Vec<Value>,
    pub state: StreamState,
}

impl SlackMessage {
    /// The text as it stands.
    pub fn text(&self) -> &str {
        self.revisions
            .last()
            .and_then(|body| body["text"].as_str())
            .unwrap_or_default()
    }
}

/// Whether a message is being streamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamState {
    /// It never was, or is no more.
    Still,
    Streaming,
}

/// What a session was said to be at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionStatus {
    pub thread: String,
    pub status: String,
}

/// What goes wrong with the next call of a method.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SlackFault {
    /// 429 with `Retry-After`.
    RateLimited {
        seconds: u64,
    },
    /// `"ok": false` with this error.
    Error(&'static str),
    Status(u16),
    /// The call has its effect, and the connection ends before the answer.
    CutAfter,
}

/// A file of the workspace.
#[derive(Debug, Clone)]
struct SlackUpload {
    name: String,
    mimetype: String,
    bytes: Vec<u8>,
}

/// A text that the app shared as a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedFile {
    pub thread: String,
    pub title: String,
    pub text: String,
}

struct State {
    /// Messages of people, as events tell them.
    said: Vec<Value>,
    shared: Vec<SharedFile>,
    messages: Vec<SlackMessage>,
    faults: VecDeque<(String, SlackFault)>,
    calls: Vec<String>,
    /// Each status, in order.
    sessions: Vec<SessionStatus>,
    files: HashMap<String, SlackUpload>,
    /// Without `files:read` a file is the page of the sign-in.
    scopes: String,
    base: String,
    sockets: SocketMode,
}

/// Serves until it is dropped.
pub struct FakeSlack {
    /// `http://127.0.0.1:PORT/api/`.
    pub url: String,
    state: Arc<Mutex<State>>,
    _stop: oneshot::Sender<()>,
}

impl FakeSlack {
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let base = format!("http://{}", listener.local_addr()?);
        let state = Arc::new(Mutex::new(State {
            said: Vec::new(),
            shared: Vec::new(),
            messages: Vec::new(),
            faults: VecDeque::new(),
            calls: Vec::new(),
            sessions: Vec::new(),
            files: HashMap::new(),
            scopes: ALL_SCOPES.to_owned(),
            base: base.clone(),
            sockets: SocketMode::start().await?,
        }));
        let (stop, stopped) = oneshot::channel();
        tokio::spawn(accept(listener, state.clone(), stopped));
        Ok(Self {
            url: format!("{base}/api/"),
            state,
            _stop: stop,
        })
    }

    /// Keeps a file, and gives it as an event describes it.
    pub fn upload(&self, id: &str, name: &str, mimetype: &str, bytes: &[u8]) -> Value {
        let mut state = self.state.lock();
        let file = SlackUpload {
            name: name.to_owned(),
            mimetype: mimetype.to_owned(),
            bytes: bytes.to_owned(),
        };
        state.files.insert(id.to_owned(), file);
        described(id, &state).unwrap_or_default()
    }

    /// Keeps a message of a person, so that it can be asked for.
    pub fn keep(&self, event: &Value) {
        self.state.lock().said.push(event.clone());
    }

    /// Files that the app has shared.
    pub fn shared(&self) -> Vec<SharedFile> {
        self.state.lock().shared.clone()
    }

    /// What the bot token may do from now on, by commas.
    pub fn grant(&self, scopes: &str) {
        self.state.lock().scopes = scopes.to_owned();
    }

    /// How many connections of Socket Mode are open, and how many there were.
    pub fn sockets(&self) -> (usize, usize) {
        let sockets = self.state.lock().sockets.clone();
        (sockets.open(), sockets.opened())
    }

    /// Sends an envelope over the newest connection of Socket Mode; its id, if there is one.
    pub fn send_envelope(&self, kind: &str, payload: &Value) -> Option<String> {
        self.state.lock().sockets.send(kind, payload)
    }

    /// What an envelope was acknowledged with, if it was.
    pub fn acknowledgement(&self, envelope: &str) -> Option<Value> {
        self.state.lock().sockets.acknowledgement(envelope)
    }

    /// Announces to the oldest connection that it will be closed.
    pub fn announce_end(&self, reason: &str) {
        self.state.lock().sockets.announce_end(reason);
    }

    /// Ends the oldest connection of Socket Mode without a word.
    pub fn cut_socket(&self) {
        self.state.lock().sockets.cut();
    }

    /// The next call of a method fails so; faults of a method are taken in order.
    pub fn inject(&self, method: &str, fault: SlackFault) {
        let mut state = self.state.lock();
        state.faults.push_back((method.to_owned(), fault));
    }

    pub fn messages(&self) -> Vec<SlackMessage> {
        self.state.lock().messages.clone()
    }

    /// Ends all streams, as Slack does after some minutes.
    pub fn expire_streams(&self) {
        for message in &mut self.state.lock().messages {
            message.state = StreamState::Still;
        }
    }

    /// What the sessions of threads were said to be at, in order.
    pub fn sessions(&self) -> Vec<SessionStatus> {
        self.state.lock().sessions.clone()
    }

    /// How often a method was called.
    pub fn count(&self, method: &str) -> usize {
        let state = self.state.lock();
        state.calls.iter().filter(|call| *call == method).count()
    }

    /// The methods that were called, in order.
    pub fn calls(&self) -> Vec<String> {
        self.state.lock().calls.clone()
    }
}

async fn accept(listener: TcpListener, state: Arc<Mutex<State>>, stop: oneshot::Receiver<()>) {
    let mut connections = JoinSet::new();
    let accepting = async {
        loop {
            if let Ok((stream, _)) = listener.accept().await {
                connections.spawn(converse(stream, state.clone()));
            }
            while connections.try_join_next().is_some() {}
        }
    };
    tokio::select! {
        () = accepting => {}
        _ = stop => {}
    }
}

async fn converse(stream: TcpStream, state: Arc<Mutex<State>>) {
    let Ok(mut connection) = Connection::new(stream) else {
        return;
    };
    while let Ok(Some(request)) = connection.read_request().await {
        let close = request.wants_close();
        let Some(bytes) = answer(&request, &mut state.lock()) else {
            return connection.reset();
        };
        if connection.send(&bytes).await.is_err() || close {
            return;
        }
    }
}

/// Nothing where the connection is to end.
fn answer(request: &Request, state: &mut State) -> Option<Vec<u8>> {
    if let Some(id) = request.path.strip_prefix("/files/") {
        state.calls.push("file".to_owned());
        return Some(file(request, id, state));
    }
    if let Some(id) = request.path.strip_prefix("/upload/") {
        let file = SlackUpload {
            name: "log.txt".to_owned(),
            mimetype: "text/plain".to_owned(),
            bytes: request.body.to_vec(),
        };
        state.files.insert(id.to_owned(), file);
        return Some(on_the_wire(200, "", &json!({})));
    }
    let path = request.path.trim_start_matches("/api/");
    let (method, query) = path.split_once('?').unwrap_or((path, ""));
    state.calls.push(method.to_owned());
    let place = state.faults.iter().position(|(of, _)| of == method);
    let fault = place.and_then(|place| state.faults.remove(place));
    match fault.map(|(_, fault)| fault) {
        Some(SlackFault::RateLimited { seconds }) => {
            let header = format!("Retry-After: {seconds}\r\n");
            return Some(on_the_wire(429, &header, &json!({"ok": false})));
        }
        Some(SlackFault::Error(error)) => return Some(refused(error)),
        Some(SlackFault::Status(status)) => return Some(on_the_wire(status, "", &json!({}))),
        Some(SlackFault::CutAfter) => {
            let _ = act(request, method, query, state);
            return None;
        }
        None => {}
    }
    Some(match act(request, method, query, state) {
        Ok(body) => {
            let header = format!("X-OAuth-Scopes: {}\r\n", state.scopes);
            on_the_wire(200, &header, &body)
        }
        Err(error) => refused(error),
    })
}

/// A file, or the page of the sign-in.
fn file(request: &Request, id: &str, state: &State) -> Vec<u8> {
    let is_known = is_authorized(request, SLACK_TOKEN) && state.scopes.contains("files:read");
    let (kind, body) = match (state.files.get(id), is_known) {
        (Some(file), true) => (file.mimetype.as_str(), file.bytes.as_slice()),
        (None, true) => return on_the_wire(404, "", &json!({})),
        (_, false) => ("text/html; charset=utf-8", &b"<html>Sign in</html>"[..]),
    };
    let head = format!(
        "HTTP/1.1 200 Answer\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// As events and `files.info` describe a file.
fn described(id: &str, state: &State) -> Option<Value> {
    let file = state.files.get(id)?;
    let url = format!("{}/files/{id}", state.base);
    Some(json!({
        "id": id, "name": file.name, "mimetype": file.mimetype, "mode": "hosted",
        "url_private": url, "url_private_download": url,
    }))
}

fn is_authorized(request: &Request, token: &str) -> bool {
    request.headers.get("authorization") == Some(format!("Bearer {token}").as_str())
}

fn refused(error: &str) -> Vec<u8> {
    on_the_wire(200, "", &json!({"ok": false, "error": error}))
}

fn act(
    request: &Request,
    method: &str,
    query: &str,
    state: &mut State,
) -> Result<Value, &'static str> {
    if method == "apps.connections.open" {
        return match is_authorized(request, SLACK_APP_TOKEN) {
            true => Ok(json!({"ok": true, "url": state.sockets.address})),
            false => Err("invalid_auth"),
        };
    }
    if !is_authorized(request, SLACK_TOKEN) {
        return Err("invalid_auth");
    }
    match method {
        "auth.test" => Ok(json!({
            "ok": true, "user": "codespar", "user_id": SLACK_BOT, "team": "Acme",
        })),
        "files.info" => {
            let file = described(&given(query, "file"), state).ok_or("file_not_found")?;
            Ok(json!({"ok": true, "file": file}))
        }
        "chat.postMessage" => Ok(post(json_body(request)?, StreamState::Still, state)),
        "chat.startStream" => stream::start(&json_body(request)?, state),
        "chat.appendStream" => stream::append(&json_body(request)?, state),
        "chat.stopStream" => stream::stop(&json_body(request)?, state),
        "agents.sessions.setStatus" => stream::set_status(&json_body(request)?, state),
        "chat.update" => {
            let body = json_body(request)?;
            let is_it = |one: &&mut SlackMessage| {
                body["ts"] == one.ts.as_str() && body["channel"] == one.channel.as_str()
            };
            let found = state.messages.iter_mut().find(is_it);
            let found = found.ok_or("message_not_found")?;
            if found.state == StreamState::Streaming {
                return Err("streaming_state_conflict");
            }
            found.revisions.push(body.clone());
            Ok(json!({"ok": true, "ts": found.ts}))
        }
        "files.getUploadURLExternal" => {
            let id = format!("FUP{}", state.files.len());
            let url = format!("{}/upload/{id}", state.base);
            Ok(json!({"ok": true, "file_id": id, "upload_url": url}))
        }
        "files.completeUploadExternal" => {
            let body = json_body(request)?;
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let file = state.files.get(&text(&body["files"][0]["id"]));
            let file = file.ok_or("file_not_found")?;
            state.shared.push(SharedFile {
                thread: text(&body["thread_ts"]),
                title: text(&body["files"][0]["title"]),
                text: String::from_utf8_lossy(&file.bytes).into_owned(),
            });
            Ok(json!({"ok": true, "files": [{"id": body["files"][0]["id"]}]}))
        }
        "conversations.replies" => Ok(replies(query, &given(query, "ts"), state)),
        "conversations.history" => Ok(replies(query, "", state)),
        _ => Err("unknown_method"),
    }
}

/// Keeps a message of the app; the answer of Slack.
fn post(body: Value, stream: StreamState, state: &mut State) -> Value {
    let ts = format!("{}.000100", 1_700_000_000 + state.messages.len());
    let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
    let (channel, thread) = (text("channel"), text("thread_ts"));
    let answer = json!({"ok": true, "channel": channel, "ts": ts});
    state.messages.push(SlackMessage {
        channel,
        thread,
        ts,
        revisions: vec![body],
        state: stream,
    });
    answer
}

fn json_body(request: &Request) -> Result<Value, &'static str> {
    serde_json::from_slice(&request.body).map_err(|_| "invalid_json")
}

fn given(query: &str, name: &str) -> String {
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    let found = pairs.find(|(key, _)| key == name);
    found
        .map(|(_, value)| value.into_owned())
        .unwrap_or_default()
}

/// The messages of a thread, or of the channel itself, with the metadata, as an app sees it.
fn replies(query: &str, thread: &str, state: &State) -> Value {
    let channel = given(query, "channel");
    let of_thread = |one: &&SlackMessage| one.channel == channel && one.thread == thread;
    let shown = |one: &SlackMessage| {
        let last = one.revisions.last().cloned().unwrap_or_default();
        let mut shown = json!({"ts": one.ts, "user": SLACK_BOT, "text": last["text"]});
        if !last["metadata"].is_null() {
            shown["metadata"] = last["metadata"].clone();
        }
        shown
    };
    let of_people = state.said.iter().filter(|one| {
        let at = one.get("thread_ts").unwrap_or(&one["ts"]);
        one["channel"] == channel && at == thread
    });
    let mut messages: Vec<Value> = of_people.cloned().collect();
    messages.extend(state.messages.iter().filter(of_thread).map(shown));
    let files = state.shared.iter().filter(|one| one.thread == thread);
    messages.extend(files.map(|one| json!({"ts": "9.9", "files": [{"title": one.title}]})));
    json!({"ok": true, "messages": messages})
}

fn on_the_wire(status: u16, headers: &str, body: &Value) -> Vec<u8> {
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 {status} Answer\r\nContent-Type: application/json\r\n{headers}Content-Length: \
         {}\r\n\r\n",
        body.len()
    );
    [head.into_bytes(), body.into_bytes()].concat()
}
