//! Socket Mode: the side of Slack. A connection is greeted, envelopes are sent to the newest one, and
//! what is acknowledged is kept.

use std::{io, sync::Arc};

use futures::{SinkExt, StreamExt};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::mpsc,
};
use tokio_tungstenite::{accept_async, tungstenite::Message};

/// What is done with a connection.
enum Order {
    Send(String),
    /// Ended without a word.
    Cut,
}

#[derive(Default)]
struct Sockets {
    /// Of the connections that are open, in the order of opening.
    open: Vec<(usize, mpsc::UnboundedSender<Order>)>,
    opened: usize,
    envelopes: usize,
    acknowledgements: Vec<Value>,
}

/// The connections of Socket Mode.
#[derive(Clone)]
pub(super) struct SocketMode {
    sockets: Arc<Mutex<Sockets>>,
    pub(super) address: String,
}

impl SocketMode {
    pub(super) async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = format!("ws://{}/link/?ticket=secret-ticket", listener.local_addr()?);
        let sockets: Arc<Mutex<Sockets>> = Arc::default();
        let kept = sockets.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // Nobody is left to ask for connections.
                if Arc::strong_count(&kept) == 1 {
                    return;
                }
                tokio::spawn(converse(stream, kept.clone()));
            }
        });
        Ok(Self { sockets, address })
    }

    pub(super) fn opened(&self) -> usize {
        self.sockets.lock().opened
    }

    pub(super) fn open(&self) -> usize {
        self.sockets.lock().open.len()
    }

    /// Sends an envelope to the connection that was opened last; its id. Nothing without one.
    pub(super) fn send(&self, kind: &str, payload: &Value) -> Option<String> {
        let mut sockets = self.sockets.lock();
        sockets.envelopes += 1;
        let id = format!("envelope-{}", sockets.envelopes);
        let envelope = json!({
            "type": kind, "envelope_id": id, "payload": payload,
            "accepts_response_payload": kind == "slash_commands",
        });
        let (_, newest) = sockets.open.last()?;
        newest.send(Order::Send(envelope.to_string())).ok()?;
        Some(id)
    }

    /// What an envelope was acknowledged with.
    pub(super) fn acknowledgement(&self, id: &str) -> Option<Value> {
        let sockets = self.sockets.lock();
        let mut all = sockets.acknowledgements.iter();
        all.find(|one| one["envelope_id"] == id).cloned()
    }

    /// Announces to the oldest connection that it will be closed.
    pub(super) fn announce_end(&self, reason: &str) {
        let frame = json!({"type": "disconnect", "reason": reason, "debug_info": {"host": "x"}});
        if let Some((_, oldest)) = self.sockets.lock().open.first() {
            let _ = oldest.send(Order::Send(frame.to_string()));
        }
    }

    /// Ends the oldest connection without a word.
    pub(super) fn cut(&self) {
        if let Some((_, oldest)) = self.sockets.lock().open.first() {
            let _ = oldest.send(Order::Cut);
        }
    }
}

async fn converse(stream: TcpStream, sockets: Arc<Mutex<Sockets>>) {
    let Ok(mut socket) = accept_async(stream).await else {
        return;
    };
    let hello = json!({"type": "hello", "num_connections": 1, "connection_info": {"app_id": "A1"}});
    if socket.send(Message::text(hello.to_string())).await.is_err() {
        return;
    }
    let (sender, mut orders) = mpsc::unbounded_channel();
    let number = {
        let mut sockets = sockets.lock();
        sockets.opened += 1;
        let number = sockets.opened;
        sockets.open.push((number, sender));
        number
    };
    loop {
        tokio::select! {
            order = orders.recv() => match order {
                Some(Order::Send(text)) => {
                    if socket.send(Message::text(text)).await.is_err() {
                        break;
                    }
                }
                Some(Order::Cut) | None => break,
            },
            message = socket.next() => match message {
                Some(Ok(Message::Text(text))) => {
                    if let Ok(value) = serde_json::from_str(text.as_str()) {
                        sockets.lock().acknowledgements.push(value);
                    }
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => break,
            },
        }
    }
    sockets.lock().open.retain(|(one, _)| *one != number);
}
