//! One place to send requests to: a single try, from the request to a stream of events.
//!
//! Everything that concerns one exchange is here: the timeout for a silent connection (content that
//! stalls is watched in `call.rs`), limits on size, and the removal of our own keys from whatever a
//! server says. Retries are decided by the caller, from the [`Failure`].

use std::{fmt, time::Duration};

use bytes::Bytes;
use futures::{StreamExt, stream, stream::BoxStream};
use jiff::Timestamp;
use reqwest::{
    Response,
    header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use secrecy::{ExposeSecret, SecretString};
use sse_stream::{Sse, SseStream};
use tokio::time::timeout;
use url::Url;

use crate::{
    ModelError, RetryPolicy, SetupError,
    base_url::without_credentials,
    failure::{ErrorBody, Failure, excerpt},
    http::chain,
    retry::Advice,
    wire::WHOLE_BODY,
};

/// The events of one answer.
pub(crate) type Events = BoxStream<'static, Result<Sse, ModelError>>;

/// No answer is this long; a server that sends more is out of order. In bytes of the stream. It
/// bounds the memory that a broken or hostile server can take.
const LONGEST_ANSWER: usize = 256 << 20;
/// Of an error answer, this much is read.
const LONGEST_ERROR: usize = 64 << 10;

/// Where and how to send requests.
pub(crate) struct Endpoint {
    pub(crate) provider: &'static str,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    /// Never to appear in an error, even when the server quotes them.
    pub(crate) secrets: Vec<SecretString>,
    /// What to do about a 401.
    pub(crate) key_advice: &'static str,
    pub(crate) retry: RetryPolicy,
    pub(crate) client: reqwest::Client,
    /// How long to wait for the headers, and then for each chunk.
    pub(crate) silence: Duration,
    /// How long an answer may go without content, whatever else is sent.
    pub(crate) stall: Duration,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("provider", &self.provider)
            .field("url", &without_credentials(&self.url))
            .field("retry", &self.retry)
            .finish_non_exhaustive()
    }
}

impl Endpoint {
    /// Sends the body once and gives the events of the answer. `Ok` as soon as the headers say that
    /// an event stream follows; a JSON body is read first and is one event. Redirects arrive here as
    /// errors, because the client does not follow them.
    pub(crate) async fn send(&self, body: Bytes) -> Result<Events, Failure> {
        let request = self
            .client
            .post(self.url.clone())
            .headers(self.headers.clone())
            .body(body)
            .send();
        let response = match timeout(self.silence, request).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => {
                let url = without_credentials(&self.url);
                return Err(Failure::connection(self.provider, url, error));
            }
            Err(_) => {
                return Err(Failure::in_stream(ModelError::BrokenStream {
                    provider: self.provider,
                    message: silent_for(self.silence),
                }));
            }
        };
        if !response.status().is_success() {
            return Err(self.refused(response).await);
        }
        match content_of(&response) {
            Content::Events => Ok(events(self.provider, response, self.silence)),
            Content::Json => self.whole_body(response).await,
            Content::Page(kind) => Err(self.wrong_content(&kind, response).await),
        }
    }

    /// An answer that is not streamed, as the one event [`WHOLE_BODY`]. Bounded like a stream; one
    /// that breaks off is no answer.
    async fn whole_body(&self, mut response: Response) -> Result<Events, Failure> {
        let broken = |message: String| {
            Failure::in_stream(ModelError::BrokenStream {
                provider: self.provider,
                message,
            })
        };
        let mut bytes = Vec::new();
        loop {
            match timeout(self.silence, response.chunk()).await {
                Ok(Ok(Some(chunk))) if bytes.len() + chunk.len() <= LONGEST_ANSWER => {
                    bytes.extend_from_slice(&chunk);
                }
                Ok(Ok(Some(_))) => return Err(broken("the answer is endless".to_owned())),
                Ok(Ok(None)) => break,
                Ok(Err(error)) => return Err(broken(chain(&error.without_url()))),
                Err(_) => return Err(broken(silent_for(self.silence))),
            }
        }
        let event = Sse {
            event: Some(WHOLE_BODY.to_owned()),
            data: Some(String::from_utf8_lossy(&bytes).into_owned()),
            ..Sse::default()
        };
        Ok(stream::once(async { Ok(event) }).boxed())
    }

    /// The message of the provider, with what to do about it for a rejected key and for an address
    /// that looks wrong.
    async fn refused(&self, response: Response) -> Failure {
        let status = response.status().as_u16();
        let advice = Advice::read(response.headers(), Timestamp::now());
        let text = self.read_text(response).await;
        let mut said = ErrorBody::read(&text);
        if status == 401 {
            said.message = format!("{}; {}", said.message, self.key_advice);
        }
        if (300..400).contains(&status) || (status == 404 && said.kind == "unknown") {
            let url = without_credentials(&self.url);
            said.message = format!("{} (asked at {url}; check the base URL)", said.message);
        }
        Failure::status(self.provider, status, said, advice)
    }

    async fn wrong_content(&self, kind: &str, response: Response) -> Failure {
        let text = self.read_text(response).await;
        // A login page or a wrong base URL: the same would come again.
        Failure::never(ModelError::Malformed {
            provider: self.provider,
            message: format!("{kind} instead of an event stream: {}", excerpt(&text)),
        })
    }

    /// The beginning of a body, without our secrets.
    async fn read_text(&self, mut response: Response) -> String {
        let mut bytes = Vec::new();
        while let Ok(Ok(Some(chunk))) = timeout(self.silence, response.chunk()).await {
            bytes.extend_from_slice(&chunk);
            if bytes.len() >= LONGEST_ERROR {
                break;
            }
        }
        self.without_secrets(&String::from_utf8_lossy(&bytes))
    }

    fn without_secrets(&self, text: &str) -> String {
        self.secrets.iter().fold(text.to_owned(), |text, secret| {
            text.replace(secret.expose_secret(), "[redacted]")
        })
    }

    /// A failure of the stream, our secrets taken out of what the server said.
    pub(crate) fn broken(&self, mut error: ModelError) -> Failure {
        if let ModelError::Api { message, .. }
        | ModelError::BrokenStream { message, .. }
        | ModelError::Malformed { message, .. }
        | ModelError::ContextWindowExceeded { message } = &mut error
        {
            *message = self.without_secrets(message);
        }
        Failure::in_stream(error)
    }
}

/// Adds a header whose value is a secret; surrounding white space, such as the line break of a
/// key read from a file, is not part of it.
pub(crate) fn secret_header(
    headers: &mut HeaderMap,
    name: &'static str,
    prefix: &str,
    secret: &SecretString,
    variable: &'static str,
) -> Result<(), SetupError> {
    let text = format!("{prefix}{}", secret.expose_secret().trim());
    let mut value = HeaderValue::from_str(&text).map_err(|_| SetupError::Secret { variable })?;
    value.set_sensitive(true);
    headers.insert(HeaderName::from_static(name), value);
    Ok(())
}

/// The secrets as they are looked for in texts; an empty one would be found everywhere.
pub(crate) fn searchable(secrets: [Option<&SecretString>; 2]) -> Vec<SecretString> {
    let trimmed = secrets
        .into_iter()
        .flatten()
        .map(|secret| secret.expose_secret().trim());
    trimmed
        .filter(|text| !text.is_empty())
        .map(SecretString::from)
        .collect()
}

/// What the headers say that follows.
enum Content {
    Events,
    Json,
    /// HTML, with the content type.
    Page(String),
}

/// Only JSON and HTML are certain to be no event stream: local servers send those under various
/// types, or name none.
fn content_of(response: &Response) -> Content {
    let kind = response.headers().get(CONTENT_TYPE);
    match kind.and_then(|kind| kind.to_str().ok()) {
        Some(kind) if kind.contains("html") => Content::Page(kind.to_owned()),
        Some(kind) if kind.contains("json") => Content::Json,
        _ => Content::Events,
    }
}

fn silent_for(silence: Duration) -> String {
    format!("nothing came for {} seconds", silence.as_secs_f32())
}

/// The body as events. The clock of the silence runs only while somebody waits for an event.
fn events(provider: &'static str, response: Response, silence: Duration) -> Events {
    let bytes = stream::unfold((response, 0), move |(mut response, seen)| async move {
        let next = match timeout(silence, response.chunk()).await {
            Ok(Ok(Some(chunk))) if seen + chunk.len() <= LONGEST_ANSWER => Ok(chunk),
            Ok(Ok(Some(_))) => Err(Break("the answer is endless".to_owned())),
            Ok(Ok(None)) => return None,
            Ok(Err(error)) => Err(Break(chain(&error.without_url()))),
            Err(_) => Err(Break(silent_for(silence))),
        };
        let seen = seen + next.as_ref().map_or(0, Bytes::len);
        Some((next, (response, seen)))
    });
    decode(provider, bytes).boxed()
}

/// Bytes, cut anywhere, as events. The error of the bytes ends the stream as
/// [`ModelError::BrokenStream`]; text that is no event stream is [`ModelError::Malformed`].
pub(crate) fn decode(
    provider: &'static str,
    bytes: impl stream::Stream<Item = Result<Bytes, Break>> + Send + 'static,
) -> impl stream::Stream<Item = Result<Sse, ModelError>> + Send + 'static {
    SseStream::from_bytes_stream(bytes).map(move |event| {
        event.map_err(|error| match error {
            sse_stream::Error::Body(error) => ModelError::BrokenStream {
                provider,
                message: error.to_string(),
            },
            other => ModelError::Malformed {
                provider,
                message: format!("event stream: {other}"),
            },
        })
    })
}

/// Why the bytes stopped.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Break(pub(crate) String);
