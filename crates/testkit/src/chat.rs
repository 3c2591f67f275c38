//! What servers of chat platforms have in common: HTTP, a record of what was posted, and faults.

use std::{collections::VecDeque, io, sync::Arc};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinSet,
};

use crate::http::{Connection, Request};

/// A message of the bot, with everything it has said.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatMessage {
    /// The chat, channel or person that it was posted to.
    pub conversation: String,
    pub id: String,
    /// The bodies of the calls, the last one as it stands.
    pub revisions: Vec<Value>,
}

impl ChatMessage {
    /// The text as it stands, under the name that the platform has for it.
    pub fn text(&self) -> &str {
        let Some(body) = self.revisions.last() else {
            return "";
        };
        let places = ["/text/body", "/interactive/body/text", "/text", "/content"];
        let mut texts = places.iter().filter_map(|at| body.pointer(at)?.as_str());
        texts.next().unwrap_or_default()
    }
}

/// What goes wrong with the next call of a method.
#[derive(Debug, Clone, PartialEq)]
pub enum ChatFault {
    /// 429, in the form of the platform.
    RateLimited { seconds: u64 },
    /// This status with this body.
    Refused(u16, Value),
    /// The call has its effect, and the connection ends before the answer.
    CutAfter,
}

/// What a platform keeps.
#[derive(Default)]
pub(crate) struct ChatRecord {
    pub(crate) messages: Vec<ChatMessage>,
    pub(crate) files: Vec<(String, Vec<u8>)>,
    pub(crate) faults: VecDeque<(String, ChatFault)>,
    pub(crate) calls: Vec<(String, Value)>,
}

impl ChatRecord {
    /// Notes a call and gives the fault that it meets.
    pub(crate) fn fault_of(&mut self, method: &str, body: &Value) -> Option<ChatFault> {
        self.calls.push((method.to_owned(), body.clone()));
        let place = self.faults.iter().position(|(of, _)| of == method)?;
        self.faults.remove(place).map(|(_, fault)| fault)
    }

    pub(crate) fn post(&mut self, conversation: String, id: String, body: Value) {
        self.messages.push(ChatMessage {
            conversation,
            id,
            revisions: vec![body],
        });
    }

    /// Whether there is such a message.
    pub(crate) fn edit(&mut self, conversation: &str, id: &str, body: Value) -> Option<()> {
        let is_it = |one: &&mut ChatMessage| one.conversation == conversation && one.id == id;
        let found = self.messages.iter_mut().find(is_it)?;
        found.revisions.push(body);
        Some(())
    }

    pub(crate) fn file(&self, id: &str) -> Option<&[u8]> {
        let mut files = self.files.iter();
        files
            .find(|(of, _)| of == id)
            .map(|(_, bytes)| bytes.as_slice())
    }
}

/// What a call is answered with.
pub(crate) enum ChatReply {
    Json(u16, Value),
    /// 429 with `Retry-After` and this body.
    Limited(u64, Value),
    Bytes(Vec<u8>),
    /// 302 to this address.
    Redirect(String),
    /// The connection ends.
    Cut,
}

impl ChatReply {
    fn on_the_wire(self) -> Option<Vec<u8>> {
        const JSON: &str = "application/json";
        let text = |body: Value| body.to_string().into_bytes();
        let (status, header, kind, body) = match self {
            Self::Json(204, _) => return Some(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec()),
            Self::Json(status, body) => (status, String::new(), JSON, text(body)),
            Self::Limited(seconds, body) => {
                let header = format!("Retry-After: {seconds}\r\n");
                (429, header, JSON, text(body))
            }
            Self::Redirect(to) => {
                let header = format!("Location: {to}\r\n");
                (302, header, JSON, Vec::new())
            }
            Self::Bytes(bytes) => (200, String::new(), "application/octet-stream", bytes),
            Self::Cut => return None,
        };
        let head = format!(
            "HTTP/1.1 {status} Answer\r\nContent-Type: {kind}\r\n{header}Content-Length: \
             {}\r\n\r\n",
            body.len()
        );
        Some([head.into_bytes(), body].concat())
    }
}

/// Serves until it is dropped.
pub(crate) struct ChatServer {
    /// `http://127.0.0.1:PORT`.
    pub(crate) base: String,
    _stop: oneshot::Sender<()>,
}

impl ChatServer {
    /// Answers each request with what `answer` gives for it.
    pub(crate) async fn start<A, F>(answer: A) -> io::Result<Self>
    where
        A: Fn(Request) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = ChatReply> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let base = format!("http://{}", listener.local_addr()?);
        let (stop, stopped) = oneshot::channel();
        tokio::spawn(accept(listener, answer, stopped));
        Ok(Self { base, _stop: stop })
    }
}

async fn accept<A, F>(listener: TcpListener, answer: A, stop: oneshot::Receiver<()>)
where
    A: Fn(Request) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = ChatReply> + Send + 'static,
{
    let mut connections = JoinSet::new();
    let accepting = async {
        loop {
            if let Ok((stream, _)) = listener.accept().await {
                connections.spawn(converse(stream, answer.clone()));
            }
            while connections.try_join_next().is_some() {}
        }
    };
    tokio::select! {
        () = accepting => {}
        _ = stop => {}
    }
}

async fn converse<A, F>(stream: TcpStream, answer: A)
where
    A: Fn(Request) -> F,
    F: Future<Output = ChatReply>,
{
    let Ok(mut connection) = Connection::new(stream) else {
        return;
    };
    while let Ok(Some(request)) = connection.read_request().await {
        let close = request.wants_close();
        let Some(bytes) = answer(request).await.on_the_wire() else {
            return connection.reset();
        };
        if connection.send(&bytes).await.is_err() || close {
            return;
        }
    }
}

/// The body of a request as JSON; null if it is none.
pub(crate) fn json_body(request: &Request) -> Value {
    serde_json::from_slice(&request.body).unwrap_or_default()
}

/// A number or a text, as text.
pub(crate) fn id_of(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// What a test does with the server of any platform.
pub struct ChatControl {
    pub(crate) record: Arc<Mutex<ChatRecord>>,
}

impl ChatControl {
    /// The next call of a method fails so; faults of a method are taken in order.
    pub fn inject(&self, method: &str, fault: ChatFault) {
        let mut record = self.record.lock();
        record.faults.push_back((method.to_owned(), fault));
    }

    /// The messages of the bot, in the order in which they were posted.
    pub fn messages(&self) -> Vec<ChatMessage> {
        self.record.lock().messages.clone()
    }

    /// The methods that were called and their bodies, in order.
    pub fn calls(&self) -> Vec<(String, Value)> {
        self.record.lock().calls.clone()
    }

    /// How often a method was called.
    pub fn count(&self, method: &str) -> usize {
        let record = self.record.lock();
        record.calls.iter().filter(|(of, _)| of == method).count()
    }

    /// Keeps a file that a message can refer to.
    pub fn keep_file(&self, id: &str, bytes: &[u8]) {
        let mut record = self.record.lock();
        record.files.push((id.to_owned(), bytes.to_vec()));
    }
}

/// An answer without content.
pub(crate) fn nothing_there() -> ChatReply {
    ChatReply::Json(404, json!({"message": "404: Not Found", "code": 0}))
}
