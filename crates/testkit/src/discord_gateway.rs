//! The gateway of the Discord of this crate: sessions, numbers of events, and what goes wrong.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use futures::{SinkExt, StreamExt};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Notify, broadcast},
};
use tokio_tungstenite::{
    WebSocketStream, accept_async,
    tungstenite::{
        Message,
        protocol::{CloseFrame, frame::coding::CloseCode},
    },
};

use crate::discord::{DISCORD_BOT, DISCORD_TOKEN};

/// What a test has the gateway do to its connections.
#[derive(Debug, Clone)]
enum Order {
    Say(Value),
    Close(u16),
    /// Without a word.
    Drop,
}

#[derive(Default)]
struct Log {
    events: Vec<(String, Value)>,
    /// How many were told to some session.
    told: usize,
    sessions: Vec<String>,
    /// How sessions were begun, in order: `identify` or `resume`.
    introductions: Vec<String>,
}

/// Serves until the process ends or it is dropped.
pub struct FakeGateway {
    /// `ws://127.0.0.1:PORT`.
    pub(crate) url: String,
    log: Mutex<Log>,
    news: Notify,
    orders: broadcast::Sender<Order>,
    /// Whether heartbeats are answered.
    is_deaf: AtomicBool,
    heartbeat: AtomicU64,
}

impl FakeGateway {
    pub(crate) async fn start() -> io::Result<Arc<Self>> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let gateway = Arc::new(Self {
            url: format!("ws://{}", listener.local_addr()?),
            log: Mutex::default(),
            news: Notify::new(),
            orders: broadcast::Sender::new(16),
            is_deaf: AtomicBool::new(false),
            heartbeat: AtomicU64::new(41_250),
        });
        let weak = Arc::downgrade(&gateway);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Some(gateway) = weak.upgrade() else {
                    return;
                };
                tokio::spawn(async move {
                    let _ = gateway.converse(stream).await;
                });
            }
        });
        Ok(gateway)
    }

    /// Tells of an event, now or once somebody listens.
    pub fn dispatch(&self, name: &str, data: &Value) {
        let event = (name.to_owned(), data.clone());
        self.log.lock().events.push(event);
        self.news.notify_waiters();
    }

    /// Where clients connect to.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Asks for a new connection (7).
    pub fn ask_to_reconnect(&self) {
        let _ = self.orders.send(Order::Say(json!({"op": 7, "d": null})));
    }

    /// Forgets all sessions and says so (9).
    pub fn invalidate(&self) {
        self.log.lock().sessions.clear();
        let _ = self.orders.send(Order::Say(json!({"op": 9, "d": false})));
    }

    pub fn close(&self, code: u16) {
        let _ = self.orders.send(Order::Close(code));
    }

    /// Ends the connections without a word.
    pub fn cut(&self) {
        let _ = self.orders.send(Order::Drop);
    }

    /// Heartbeats of later connections are asked for so often, and not answered.
    pub fn stop_answering_heartbeats(&self, every: Duration) {
        let every = u64::try_from(every.as_millis()).unwrap_or(u64::MAX);
        self.heartbeat.store(every, Ordering::SeqCst);
        self.is_deaf.store(true, Ordering::SeqCst);
    }

    /// As usual again.
    pub fn answer_heartbeats(&self) {
        self.is_deaf.store(false, Ordering::SeqCst);
    }

    /// How sessions were begun, in order: `identify` or `resume`.
    pub fn introductions(&self) -> Vec<String> {
        self.log.lock().introductions.clone()
    }

    async fn converse(&self, stream: TcpStream) -> Option<()> {
        let mut socket = accept_async(stream).await.ok()?;
        let every = self.heartbeat.load(Ordering::SeqCst);
        say(
            &mut socket,
            &json!({"op": 10, "d": {"heartbeat_interval": every}}),
        )
        .await?;
        let mut orders = self.orders.subscribe();
        let mut next = self.introduced(&mut socket).await?;
        loop {
            let news = self.news.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            while let Some(event) = self.event(next) {
                next += 1;
                say(&mut socket, &event).await?;
            }
            tokio::select! {
                () = news => {}
                order = orders.recv() => match order.ok()? {
                    Order::Say(payload) => say(&mut socket, &payload).await?,
                    Order::Close(code) => {
                        let code = CloseCode::from(code);
                        let frame = CloseFrame { code, reason: "".into() };
                        return socket.close(Some(frame)).await.ok();
                    }
                    Order::Drop => return None,
                },
                message = socket.next() => {
                    let payload = heard(message?.ok()?);
                    let is_beat = payload["op"] == 1;
                    if is_beat && !self.is_deaf.load(Ordering::SeqCst) {
                        say(&mut socket, &json!({"op": 11})).await?;
                    }
                }
            }
        }
    }

    /// The number of the first event that is to be told.
    async fn introduced(&self, socket: &mut WebSocketStream<TcpStream>) -> Option<usize> {
        loop {
            let payload = heard(socket.next().await?.ok()?);
            let (op, data) = (payload["op"].as_u64(), &payload["d"]);
            if data["token"] != DISCORD_TOKEN && matches!(op, Some(2 | 6)) {
                let code = CloseCode::from(4_004);
                let frame = CloseFrame {
                    code,
                    reason: "Authentication failed.".into(),
                };
                let _ = socket.close(Some(frame)).await;
                return None;
            }
            match op {
                Some(2) => {
                    let (id, next) = {
                        let mut log = self.log.lock();
                        log.introductions.push("identify".to_owned());
                        let id = format!("session-{}", log.introductions.len());
                        log.sessions.push(id.clone());
                        (id, log.told)
                    };
                    let ready = json!({"op": 0, "t": "READY", "s": next, "d": {
                        "v": 10, "session_id": id, "resume_gateway_url": self.url,
                        "user": {"id": DISCORD_BOT, "username": "spar", "bot": true},
                    }});
                    say(socket, &ready).await?;
                    return Some(next);
                }
                Some(6) => {
                    let is_known = {
                        let mut log = self.log.lock();
                        log.introductions.push("resume".to_owned());
                        log.sessions
                            .iter()
                            .any(|id| data["session_id"] == id.as_str())
                    };
                    if !is_known {
                        say(socket, &json!({"op": 9, "d": false})).await?;
                        continue;
                    }
                    let next = usize::try_from(data["seq"].as_u64()?).ok()?;
                    say(
                        socket,
                        &json!({"op": 0, "t": "RESUMED", "s": next, "d": {}}),
                    )
                    .await?;
                    return Some(next);
                }
                _ => {}
            }
        }
    }

    fn event(&self, index: usize) -> Option<Value> {
        let mut log = self.log.lock();
        let (name, data) = log.events.get(index)?.clone();
        log.told = log.told.max(index + 1);
        Some(json!({"op": 0, "t": name, "s": index + 1, "d": data}))
    }
}

fn heard(message: Message) -> Value {
    let text = message.into_text().unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

async fn say(socket: &mut WebSocketStream<TcpStream>, payload: &Value) -> Option<()> {
    let message = Message::text(payload.to_string());
    socket.send(message).await.ok()
}
