//! A message to a server's address, and its answer, which is never read past a limit.
//!
//! The client library bounds events and reads other bodies to their end. A server that sends one
//! without end would take all memory, so bodies are read here.

use futures::{StreamExt, TryStreamExt, future};
use http::{HeaderMap, StatusCode, header};
use rmcp::{
    model::{ClientJsonRpcMessage, ClientRequest, ErrorData, ServerJsonRpcMessage},
    transport::{
        common::http_header::{EVENT_STREAM_MIME_TYPE, HEADER_SESSION_ID, JSON_MIME_TYPE},
        streamable_http_client::{
            AuthRequiredError, HttpStatusError, InsufficientScopeError, StreamableHttpError,
            StreamableHttpPostResponse,
        },
    },
};
use sse_stream::SseStream;

use crate::http_client::{Failure, Headers};

/// Of an error there is not more to tell than this, in bytes.
const MAX_REFUSAL: usize = 64 << 10;

/// Headers that belong to the protocol; the configuration cannot set them.
const RESERVED: [&str; 3] = ["accept", "mcp-session-id", "last-event-id"];

/// What is sent, and what it is sent with.
pub(super) struct Post<'a> {
    pub(super) message: &'a ClientJsonRpcMessage,
    pub(super) session: Option<&'a str>,
    pub(super) token: Option<String>,
    pub(super) headers: &'a Headers,
    /// The longest event or body of an answer, in bytes.
    pub(super) largest: usize,
}

impl Post<'_> {
    /// Sends it and reads the answer, or the beginning of a stream of events.
    pub(super) async fn send(
        self,
        http: &reqwest::Client,
        uri: &str,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let accepted = format!("{EVENT_STREAM_MIME_TYPE}, {JSON_MIME_TYPE}");
        let mut request = http.post(uri).header(header::ACCEPT, accepted);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        for (name, value) in self.headers {
            if RESERVED.contains(&name.as_str()) {
                return Err(StreamableHttpError::ReservedHeaderConflict(
                    name.to_string(),
                ));
            }
            request = request.header(name, value);
        }
        if let Some(session) = self.session {
            request = request.header(HEADER_SESSION_ID, session);
        }
        let answer = request.json(self.message).send().await?;
        challenged(answer.status(), answer.headers())?;
        match answer.status() {
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT => {
                Ok(StreamableHttpPostResponse::Accepted)
            }
            StatusCode::NOT_FOUND if self.session.is_some() => {
                Err(StreamableHttpError::SessionExpired)
            }
            status if status.is_success() => self.answered(answer).await,
            _ => self.refused(answer).await,
        }
    }

    /// Notifications and answers of ours get none themselves.
    fn wants_answer(&self) -> bool {
        matches!(self.message, ClientJsonRpcMessage::Request(_))
    }

    async fn answered(
        &self,
        answer: reqwest::Response,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        // Some servers say 200 with nothing in it instead of 202.
        if answer.content_length() == Some(0) && !self.wants_answer() {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let session = session_of(answer.headers());
        let kind = content_type(answer.headers());
        let is = |wanted: &str| kind.as_deref().is_some_and(|kind| kind.starts_with(wanted));
        if is(EVENT_STREAM_MIME_TYPE) {
            let mut events = EventSize::new(self.largest);
            let bytes = answer.bytes_stream().map_err(std::io::Error::other);
            let bounded = bytes.and_then(move |part| future::ready(events.add(part)));
            // After an error nothing more is read.
            let bounded = bounded.scan(false, |is_over, part| {
                let was_over = std::mem::replace(is_over, part.is_err());
                future::ready((!was_over).then_some(part))
            });
            let events = SseStream::from_bytes_stream(bounded).boxed();
            return Ok(StreamableHttpPostResponse::Sse(events, session));
        }
        if !is(JSON_MIME_TYPE) {
            return Err(StreamableHttpError::UnexpectedContentType(kind));
        }
        let body = body(answer, self.largest).await?;
        match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
            Ok(message) => Ok(StreamableHttpPostResponse::Json(message, session)),
            Err(_) if !self.wants_answer() => Ok(StreamableHttpPostResponse::Accepted),
            Err(error) => Err(StreamableHttpError::UnexpectedServerResponse(
                format!("its answer is not a message of MCP: {error}").into(),
            )),
        }
    }

    /// A refusal may hold an error of the protocol, which says more than a status.
    async fn refused(
        &self,
        answer: reqwest::Response,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let (status, session) = (answer.status(), session_of(answer.headers()));
        let is_json =
            content_type(answer.headers()).is_some_and(|kind| kind.starts_with(JSON_MIME_TYPE));
        let is_busy = status == StatusCode::TOO_MANY_REQUESTS;
        let failed = (is_busy || status.is_server_error()).then(|| {
            let retry = answer.headers().get(header::RETRY_AFTER);
            let retry = retry.and_then(|value| value.to_str().ok());
            HttpStatusError::new(status.as_u16(), retry.map(str::to_owned))
        });
        let failed = match failed {
            Some(failed) if is_busy || !is_json => return Err(failed.into()),
            failed => failed,
        };
        let body = body(answer, MAX_REFUSAL).await.unwrap_or_default();
        let said = match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
            Ok(ServerJsonRpcMessage::Error(error)) => Some(error),
            _ => None,
        };
        let is_denied = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        let text = format!("HTTP {status}: {}", String::from_utf8_lossy(&body));
        // A server of an older protocol does not know how to be discovered; the answer goes by the
        // id of the question, which such a server may not have read.
        if let ClientJsonRpcMessage::Request(asked) = self.message
            && matches!(asked.request, ClientRequest::DiscoverRequest(_))
            && self.session.is_none()
            && status.is_client_error()
            && !is_denied
        {
            let error = match said {
                Some(said) => said.error,
                None => ErrorData::invalid_request(text, None),
            };
            let error = ServerJsonRpcMessage::error(error, Some(asked.id.clone()));
            return Ok(StreamableHttpPostResponse::Json(error, None));
        }
        match (said, failed) {
            (Some(said), _) if !is_denied && is_json => Ok(StreamableHttpPostResponse::Json(
                ServerJsonRpcMessage::Error(said),
                session,
            )),
            (_, Some(failed)) => Err(failed.into()),
            _ => Err(StreamableHttpError::UnexpectedServerResponse(text.into())),
        }
    }
}

/// A refusal that says how to be let in.
fn challenged(status: StatusCode, headers: &HeaderMap) -> Result<(), Failure> {
    let Some(challenge) = headers.get(header::WWW_AUTHENTICATE) else {
        return Ok(());
    };
    if !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return Ok(());
    }
    let challenge = challenge.to_str().map_err(|_| {
        StreamableHttpError::UnexpectedServerResponse("its WWW-Authenticate is not text".into())
    })?;
    Err(match status {
        StatusCode::UNAUTHORIZED => {
            StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge.to_owned()))
        }
        _ => StreamableHttpError::InsufficientScope(InsufficientScopeError::new(
            challenge.to_owned(),
            scope(challenge),
        )),
    })
}

/// `scope="a b"` or `scope=a` of a challenge.
fn scope(challenge: &str) -> Option<String> {
    let at = challenge.to_ascii_lowercase().find("scope=")?;
    let value = challenge.get(at + "scope=".len()..)?;
    let value = match value.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => value.split([',', ' ']).next(),
    };
    value.filter(|it| !it.is_empty()).map(str::to_owned)
}

fn session_of(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(HEADER_SESSION_ID)?;
    value.to_str().ok().map(str::to_owned)
}

fn content_type(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::CONTENT_TYPE)?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// The whole body; one that is longer is an error as soon as that is known.
async fn body(mut answer: reqwest::Response, most: usize) -> Result<Vec<u8>, Failure> {
    let too_long = || {
        let text = format!("its answer has more than {most} bytes and was not read");
        StreamableHttpError::UnexpectedServerResponse(text.into())
    };
    if answer.content_length().is_some_and(|it| it > most as u64) {
        return Err(too_long());
    }
    let mut body = Vec::new();
    while let Some(part) = answer.chunk().await? {
        if body.len() + part.len() > most {
            return Err(too_long());
        }
        body.extend_from_slice(&part);
    }
    Ok(body)
}

/// Counts the bytes of the event that is being read. Lines may end with any of the three endings.
struct EventSize {
    most: usize,
    event: usize,
    line: usize,
    after_return: bool,
}

impl EventSize {
    const fn new(most: usize) -> Self {
        Self {
            most,
            event: 0,
            line: 0,
            after_return: false,
        }
    }

    fn add<T: AsRef<[u8]>>(&mut self, part: T) -> std::io::Result<T> {
        for byte in part.as_ref() {
            let is_second_half = self.after_return && *byte == b'\n';
            self.after_return = *byte == b'\r';
            match byte {
                _ if is_second_half => {}
                // An empty line ends the event.
                b'\r' | b'\n' if self.line == 0 => self.event = 0,
                b'\r' | b'\n' => self.line = 0,
                _ => {
                    self.line += 1;
                    self.event += 1;
                }
            }
            if self.event > self.most {
                let text = format!("an event has more than {} bytes", self.most);
                return Err(std::io::Error::other(text));
            }
        }
        Ok(part)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        net::TcpListener,
        thread::JoinHandle,
    };

    use rmcp::model::{ClientRequest, PingRequest, RequestId};

    use super::*;

    const LARGEST: usize = 1 << 20;

    /// A server that answers one request with a head and then the same bytes until the client has
    /// had enough. Gives the number of bytes that it could send.
    fn endless(head: &'static str) -> (String, JoinHandle<usize>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let serving = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 4096]);
            let part = [b' '; 1 << 16];
            let chunk = [format!("{:x}\r\n", part.len()).as_bytes(), &part, b"\r\n"].concat();
            let mut sent = 0;
            let mut going = stream.write_all(head.as_bytes());
            while going.is_ok() {
                sent += chunk.len();
                going = stream.write_all(&chunk);
            }
            sent
        });
        (url, serving)
    }

    /// Off the thread of the runtime, which has the connection to close.
    async fn bytes_sent(serving: JoinHandle<usize>) -> usize {
        let joined = tokio::task::spawn_blocking(move || serving.join().unwrap());
        joined.await.unwrap()
    }

    async fn ping(url: &str) -> Result<StreamableHttpPostResponse, Failure> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let ping = ClientRequest::PingRequest(PingRequest::default());
        let post = Post {
            message: &ClientJsonRpcMessage::request(ping, RequestId::Number(1)),
            session: None,
            token: None,
            headers: &Headers::new(),
            largest: LARGEST,
        };
        post.send(&reqwest::Client::builder().no_proxy().build().unwrap(), url)
            .await
    }

    /// What the sockets of both sides may hold beside what was read.
    const BUFFERED: usize = 32 << 20;

    #[tokio::test]
    async fn a_body_without_end_is_refused_and_not_kept() {
        for (head, why) in [
            (
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\
                 transfer-encoding: chunked\r\n\r\n",
                "more than 1048576 bytes",
            ),
            (
                "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n\
                 transfer-encoding: chunked\r\n\r\n",
                "HTTP 400",
            ),
        ] {
            let (url, serving) = endless(head);
            let refused = ping(&url).await.unwrap_err().to_string();
            assert!(refused.contains(why), "{refused}");
            let sent = bytes_sent(serving).await;
            assert!(sent < LARGEST + BUFFERED, "{sent}");
        }
    }

    #[tokio::test]
    async fn an_event_without_end_ends_the_stream() {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                    transfer-encoding: chunked\r\n\r\n";
        let (url, serving) = endless(head);
        let StreamableHttpPostResponse::Sse(events, _) = ping(&url).await.unwrap() else {
            panic!("no stream");
        };
        let events: Vec<_> = events.collect().await;
        assert_eq!(events.len(), 1);
        assert!(events[0].is_err());
        let sent = bytes_sent(serving).await;
        assert!(sent < LARGEST + BUFFERED, "{sent}");
    }

    #[test]
    fn an_empty_line_begins_a_new_event() {
        let mut size = EventSize::new(8);
        for part in ["data: 1\n", "\n", "data: 2\r\n\r\n", "data: 3\r\r", "data"] {
            assert!(size.add(part).is_ok(), "{part:?}");
        }
        assert!(size.add(": 45").is_err() || size.add("6").is_err());
        let mut lines = EventSize::new(8);
        assert!(lines.add("a: 1\nb: 2\n").is_ok());
        assert!(lines.add("c").is_err());
    }

    #[test]
    fn the_scope_of_a_challenge_is_read() {
        let read = |text: &str| scope(text);
        assert_eq!(read("Bearer Scope=\"a b\", x=1").as_deref(), Some("a b"));
        assert_eq!(read("Bearer scope=a, x=1").as_deref(), Some("a"));
        assert_eq!(read("Bearer realm=x"), None);
    }
}
