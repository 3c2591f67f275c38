//! A raw TCP server that answers as told, one script entry for each request, and keeps what it
//! was asked.

use std::{collections::VecDeque, sync::Arc};

use parking_lot::Mutex;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

/// What to do with a request.
pub(crate) enum Reply {
    /// Send these bytes and keep the connection.
    Bytes(String),
    /// Send these bytes and close the connection.
    Cut(String),
    /// Send these bytes, then wait for the client to go away and tell of it.
    Hold(String),
}

pub(crate) struct Server {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<String>>>,
    connections: Arc<Mutex<usize>>,
    gone: Mutex<mpsc::UnboundedReceiver<()>>,
}

impl Server {
    pub(crate) async fn start(script: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(Mutex::new(0));
        let script = Arc::new(Mutex::new(VecDeque::from(script)));
        let (tell, gone) = mpsc::unbounded_channel();
        let (seen, count) = (requests.clone(), connections.clone());
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                *count.lock() += 1;
                tokio::spawn(serve(socket, script.clone(), seen.clone(), tell.clone()));
            }
        });
        Self {
            url,
            requests,
            connections,
            gone: Mutex::new(gone),
        }
    }

    /// Every request so far: head and body.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        *self.connections.lock()
    }

    /// Waits until a held client has gone away.
    pub(crate) async fn client_left(&self) {
        let (_, none) = mpsc::unbounded_channel();
        let mut gone = std::mem::replace(&mut *self.gone.lock(), none);
        gone.recv().await.unwrap();
    }
}

async fn serve(
    mut socket: TcpStream,
    script: Arc<Mutex<VecDeque<Reply>>>,
    seen: Arc<Mutex<Vec<String>>>,
    tell: mpsc::UnboundedSender<()>,
) {
    while let Some(request) = read_request(&mut socket).await {
        seen.lock().push(request);
        let reply = script.lock().pop_front();
        match reply.unwrap_or_else(|| panic!("a request that the script does not expect")) {
            Reply::Bytes(text) => socket.write_all(text.as_bytes()).await.unwrap(),
            Reply::Cut(text) => {
                socket.write_all(text.as_bytes()).await.unwrap();
                return;
            }
            Reply::Hold(text) => {
                socket.write_all(text.as_bytes()).await.unwrap();
                // Nothing more is sent, so an end of input or an error is the client leaving.
                let left = socket.read(&mut [0; 64]).await;
                assert!(matches!(left, Ok(0) | Err(_)));
                tell.send(()).unwrap();
                return;
            }
        }
    }
}

async fn read_request(socket: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_lowercase();
            let length = head.split("content-length: ").nth(1).unwrap();
            let length: usize = length.lines().next().unwrap().trim().parse().unwrap();
            if body.len() >= length {
                return Some(text);
            }
        }
        let mut chunk = [0; 4096];
        match socket.read(&mut chunk).await {
            Ok(0) | Err(_) => return None,
            Ok(read) => bytes.extend_from_slice(&chunk[..read]),
        }
    }
}

/// A whole answer with a length.
pub(crate) fn answer(status: &str, headers: &str, body: &str) -> Reply {
    Reply::Bytes(format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    ))
}

const STREAM_HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// The head of an event stream and some events, without its end.
pub(crate) fn begun(events: &str) -> String {
    if events.is_empty() {
        return STREAM_HEAD.to_owned();
    }
    format!("{STREAM_HEAD}{:x}\r\n{events}\r\n", events.len())
}

/// A whole event stream.
pub(crate) fn stream(events: &str) -> Reply {
    Reply::Bytes(format!("{}0\r\n\r\n", begun(events)))
}
