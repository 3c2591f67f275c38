//! A WebSocket to a platform: connecting to it, and noticing that it is gone. What is said over it
//! is the platform's own format.
//!
//! A connection can be dead without an error, behind a router that has forgotten it. So silence is
//! measured here, once for all platforms: after half a minute the other side is pinged, and a
//! minute later it is given up. Errors never contain the address, which may have a token or a
//! ticket in it.

use std::time::Duration;

use codespar_protocol::Backoff;
use futures::{SinkExt, StreamExt};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::{Instant, sleep_until, timeout},
};
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, client_async_tls_with_config,
    tungstenite::{self, Bytes, Message, protocol::WebSocketConfig},
};
use url::Url;

/// For the connection, TLS and the handshake together, and for each message sent.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Events have a few kilobytes; the largest platforms document is one megabyte.
const MOST_BYTES: usize = 4 * 1024 * 1024;
/// After so much silence the other side is asked whether it is there.
const PING_AFTER: Duration = Duration::from_secs(30);
/// After so much more it is taken to be gone: a connection can be dead without an error.
const GONE_AFTER: Duration = Duration::from_secs(60);
/// How long to wait before connecting again: longer after each failure in a row, and not the same
/// for everybody.
pub(crate) const RECONNECT: Backoff = Backoff {
    first: Duration::from_secs(1),
    longest: Duration::from_secs(60),
};
/// The answer of a proxy is a few lines.
const MOST_OF_PROXY: usize = 8 * 1024;

/// Why a connection cannot be used. Nothing here has the address in it: it may hold a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SocketError {
    #[error("the connection cannot be made: {0}")]
    NotConnected(String),
    /// With the platform's code, where it gave one.
    #[error("the platform closed the connection{}", code_text(*.code))]
    Closed { code: Option<u16> },
    #[error("nothing was heard for {} s", (PING_AFTER + GONE_AFTER).as_secs())]
    Silent,
    #[error("the connection failed: {0}")]
    Failed(String),
}

fn code_text(code: Option<u16>) -> String {
    code.map(|code| format!(" ({code})")).unwrap_or_default()
}

/// An open connection. Pings of the platform are answered while [`Socket::next`] is awaited.
pub(crate) struct Socket {
    stream: WebSocketStream<MaybeTlsStream<TcpStream>>,
    /// When something was heard last.
    heard: Instant,
    /// When the other side was asked whether it is there, since it was heard.
    asked: Option<Instant>,
}

impl Socket {
    /// Connects to a `wss` address (`ws` for a server of one's own), through an HTTP proxy if one is
    /// given.
    pub(crate) async fn connect(url: &Url, proxy: Option<&Url>) -> Result<Self, SocketError> {
        // An error only says that a provider is installed already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let connecting = async {
            let tcp = tcp(url, proxy).await?;
            let _ = tcp.set_nodelay(true);
            let config = WebSocketConfig::default()
                .read_buffer_size(16 * 1024)
                .write_buffer_size(0)
                .max_message_size(Some(MOST_BYTES))
                .max_frame_size(Some(MOST_BYTES));
            client_async_tls_with_config(url.as_str(), tcp, Some(config), None)
                .await
                .map_err(|error| SocketError::NotConnected(error.to_string()))
        };
        let connected = timeout(TIMEOUT, connecting).await;
        let (stream, _) = connected.map_err(|_| not_connected("it takes too long"))??;
        Ok(Self {
            stream,
            heard: Instant::now(),
            asked: None,
        })
    }

    /// The next text. May be dropped and called again without losing one.
    pub(crate) async fn next(&mut self) -> Result<String, SocketError> {
        loop {
            let deadline = match self.asked {
                Some(asked) => asked + GONE_AFTER,
                None => self.heard + PING_AFTER,
            };
            tokio::select! {
                message = self.stream.next() => {
                    self.heard = Instant::now();
                    self.asked = None;
                    if let Some(text) = read(message)? {
                        return Ok(text);
                    }
                }
                () = sleep_until(deadline) => {
                    if self.asked.is_some() {
                        return Err(SocketError::Silent);
                    }
                    self.asked = Some(Instant::now());
                    self.write(Message::Ping(Bytes::new())).await?;
                }
            }
        }
    }

    pub(crate) async fn send(&mut self, text: String) -> Result<(), SocketError> {
        self.write(Message::text(text)).await
    }

    async fn write(&mut self, message: Message) -> Result<(), SocketError> {
        match timeout(TIMEOUT, self.stream.send(message)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(failure(&error)),
            Err(_) => Err(SocketError::Failed("nothing can be sent".to_owned())),
        }
    }

    /// Says goodbye. Whether it was heard does not matter.
    pub(crate) async fn close(mut self) {
        let _ = timeout(Duration::from_secs(1), self.stream.close(None)).await;
    }
}

/// Nothing for what is not text: answers to pings are written by the library.
fn read(
    message: Option<Result<Message, tungstenite::Error>>,
) -> Result<Option<String>, SocketError> {
    match message {
        Some(Ok(Message::Text(text))) => Ok(Some(text.as_str().to_owned())),
        Some(Ok(Message::Close(frame))) => Err(SocketError::Closed {
            code: frame.map(|frame| frame.code.into()),
        }),
        Some(Ok(_)) => Ok(None),
        Some(Err(error)) => Err(failure(&error)),
        None => Err(SocketError::Closed { code: None }),
    }
}

fn failure(error: &tungstenite::Error) -> SocketError {
    match error {
        tungstenite::Error::ConnectionClosed | tungstenite::Error::AlreadyClosed => {
            SocketError::Closed { code: None }
        }
        error => SocketError::Failed(error.to_string()),
    }
}

fn not_connected(reason: &str) -> SocketError {
    SocketError::NotConnected(reason.to_owned())
}

async fn tcp(url: &Url, proxy: Option<&Url>) -> Result<TcpStream, SocketError> {
    let io = |error: std::io::Error| SocketError::NotConnected(error.to_string());
    let (host, port) = place(url)?;
    let Some(proxy) = proxy else {
        return TcpStream::connect((host, port)).await.map_err(io);
    };
    if proxy.scheme() != "http" {
        return Err(not_connected("a proxy for WebSockets must be http://"));
    }
    let mut stream = TcpStream::connect(place(proxy)?).await.map_err(io)?;
    let request = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.map_err(io)?;
    let mut answer = Vec::new();
    // Byte by byte: what follows the head belongs to the tunnel.
    while !answer.ends_with(b"\r\n\r\n") && answer.len() < MOST_OF_PROXY {
        answer.push(stream.read_u8().await.map_err(io)?);
    }
    let head = String::from_utf8_lossy(&answer);
    match head.split(' ').nth(1) {
        Some("200") => Ok(stream),
        status => Err(not_connected(&format!(
            "the proxy says {}",
            status.unwrap_or("nothing")
        ))),
    }
}

fn place(url: &Url) -> Result<(&str, u16), SocketError> {
    let host = url.host_str().map(|host| {
        let inner = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        inner.unwrap_or(host)
    });
    let known = match url.scheme() {
        "ws" => Some(80),
        "wss" => Some(443),
        _ => None,
    };
    let port = url.port().or(known).or(url.port_or_known_default());
    host.zip(port)
        .ok_or_else(|| not_connected("the address has no host"))
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    async fn listener() -> (TcpListener, Url) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}/?ticket=secret", listener.local_addr().unwrap());
        (listener, url.parse().unwrap())
    }

    #[tokio::test]
    async fn texts_go_both_ways_and_pings_are_answered() {
        let (listener, url) = listener().await;
        let server = tokio::spawn(async move {
            let (tcp, _) = listener.accept().await.unwrap();
            let mut socket = tokio_tungstenite::accept_async(tcp).await.unwrap();
            socket.send(Message::Ping(Bytes::from("x"))).await.unwrap();
            socket.send(Message::text("hello")).await.unwrap();
            let mut heard = Vec::new();
            while let Some(Ok(message)) = socket.next().await {
                heard.push(message);
                if heard.len() == 2 {
                    socket.close(None).await.unwrap();
                    return heard;
                }
            }
            heard
        });
        let mut socket = Socket::connect(&url, None).await.unwrap();
        assert_eq!(socket.next().await.as_deref(), Ok("hello"));
        socket.send("hi".to_owned()).await.unwrap();
        assert!(matches!(
            socket.next().await,
            Err(SocketError::Closed { .. })
        ));
        let heard = server.await.unwrap();
        assert!(
            heard.contains(&Message::Pong(Bytes::from("x"))),
            "{heard:?}"
        );
        assert!(heard.contains(&Message::text("hi")), "{heard:?}");
    }

    #[tokio::test]
    async fn a_message_that_is_too_large_ends_the_connection() {
        let (listener, url) = listener().await;
        tokio::spawn(async move {
            let (tcp, _) = listener.accept().await.unwrap();
            let mut socket = tokio_tungstenite::accept_async(tcp).await.unwrap();
            let _ = socket.send(Message::text("x".repeat(MOST_BYTES + 1))).await;
            let _ = socket.next().await;
        });
        let mut socket = Socket::connect(&url, None).await.unwrap();
        assert!(matches!(socket.next().await, Err(SocketError::Failed(_))));
    }

    #[tokio::test]
    async fn a_refusal_is_no_connection_and_the_address_is_not_in_the_error() {
        let (listener, url) = listener().await;
        tokio::spawn(async move {
            let (mut tcp, _) = listener.accept().await.unwrap();
            let refusal = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";
            tcp.write_all(refusal).await.unwrap();
        });
        let error = Socket::connect(&url, None).await.err().unwrap();
        assert!(matches!(error, SocketError::NotConnected(_)), "{error}");
        assert!(error.to_string().contains("403"), "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }

    #[tokio::test]
    async fn a_proxy_is_asked_for_the_way() {
        let (listener, proxy) = listener().await;
        let asked = tokio::spawn(async move {
            let (mut tcp, _) = listener.accept().await.unwrap();
            let mut head = vec![0; 256];
            let read = tcp.read(&mut head).await.unwrap();
            tcp.write_all(b"HTTP/1.1 407 No\r\n\r\n").await.unwrap();
            String::from_utf8_lossy(&head[..read]).into_owned()
        });
        let url = "wss://wss.example/?ticket=secret".parse().unwrap();
        let proxy = proxy.as_str().replace("ws://", "http://").parse().unwrap();
        let error = Socket::connect(&url, Some(&proxy)).await.err().unwrap();
        assert_eq!(error, not_connected("the proxy says 407"));
        let asked = asked.await.unwrap();
        assert!(
            asked.starts_with("CONNECT wss.example:443 HTTP/1.1"),
            "{asked}"
        );
        assert!(!asked.contains("secret"), "{asked}");
    }
}
