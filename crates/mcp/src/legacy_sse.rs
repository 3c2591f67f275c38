//! The transport of 2024: one event stream for what the server says, an address for what we say.
//!
//! The stream's first event, `endpoint`, names the address of messages. It must have the origin of
//! the stream: headers and tokens of the user go there. When the stream ends, the connection has
//! ended.

use std::{collections::HashMap, sync::Arc};

use futures::{StreamExt, stream::BoxStream};
use http::{HeaderName, HeaderValue};
use rmcp::{
    RoleClient,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::streamable_http_client::{
        AuthRequiredError, SseError, StreamableHttpClient, StreamableHttpError,
    },
};
use sse_stream::Sse;
use url::Url;

use crate::http_client::{HttpClient, MAX_EVENT};

type Failure = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;

/// An open stream.
pub(super) struct LegacySse {
    client: HttpClient,
    headers: Headers,
    endpoint: Url,
    events: BoxStream<'static, Result<Sse, SseError>>,
}

fn unexpected(text: impl Into<String>) -> Failure {
    StreamableHttpError::UnexpectedServerResponse(text.into().into())
}

impl LegacySse {
    /// Opens the stream and waits for the address of messages.
    pub(super) async fn open(
        url: &Url,
        client: HttpClient,
        headers: Headers,
    ) -> Result<Self, Failure> {
        let uri = Arc::<str>::from(url.as_str());
        let mut events = client
            .get_stream_with_max_sse_event_size(uri, None, None, None, headers.clone(), MAX_EVENT)
            .await?;
        let endpoint = loop {
            let event = events.next().await;
            let event = event.ok_or(StreamableHttpError::UnexpectedEndOfStream)??;
            if event.event.as_deref() == Some("endpoint") {
                break endpoint(url, event.data.as_deref().unwrap_or_default())?;
            }
        };
        Ok(Self {
            client,
            headers,
            endpoint,
            events,
        })
    }

    pub(super) fn send(
        &self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Failure>> + Send + 'static {
        let (client, endpoint) = (self.client.clone(), self.endpoint.clone());
        let headers: http::HeaderMap = self.headers.clone().into_iter().collect();
        async move {
            let body = serde_json::to_vec(&message)?;
            client
                .with_token(|token| {
                    let mut request = client.http.post(endpoint.clone());
                    if let Some(token) = token {
                        request = request.bearer_auth(token);
                    }
                    let request = request
                        .headers(headers.clone())
                        .header(http::header::CONTENT_TYPE, "application/json")
                        .body(body.clone());
                    async move { accepted(&request.send().await?) }
                })
                .await
        }
    }

    /// What is not a message is passed over.
    pub(super) async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let event = self.events.next().await?.ok()?;
            let is_message = matches!(event.event.as_deref(), None | Some("message"));
            let data = event.data.unwrap_or_default();
            if let Some(message) = is_message
                .then(|| serde_json::from_str(&data).ok())
                .flatten()
            {
                return Some(message);
            }
        }
    }
}

/// The answer to a message has no content: what the server has to say comes by the stream.
fn accepted(answer: &reqwest::Response) -> Result<(), Failure> {
    if answer.status() == http::StatusCode::UNAUTHORIZED {
        let header = answer.headers().get(http::header::WWW_AUTHENTICATE);
        let header = header.and_then(|value| value.to_str().ok());
        let header = header.unwrap_or_default().to_owned();
        return Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(
            header,
        )));
    }
    match answer.status().is_success() {
        true => Ok(()),
        false => Err(unexpected(format!("HTTP {}", answer.status()))),
    }
}

fn endpoint(stream: &Url, named: &str) -> Result<Url, Failure> {
    let url = stream
        .join(named.trim())
        .map_err(|error| unexpected(format!("its endpoint is no address: {error}")))?;
    match url.origin() == stream.origin() {
        true => Ok(url),
        false => Err(unexpected(
            "its endpoint is at another host than its stream; nothing was sent there",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_go_to_the_host_of_the_stream_alone() {
        let stream: Url = "https://a.example/sse".parse().unwrap();
        let named = |text: &str| endpoint(&stream, text).ok().map(String::from);
        assert_eq!(
            named("/messages?session=1").as_deref(),
            Some("https://a.example/messages?session=1")
        );
        assert_eq!(
            named("https://a.example/m").as_deref(),
            Some("https://a.example/m")
        );
        for elsewhere in [
            "https://b.example/m",
            "//b.example/m",
            "http://a.example/m",
            "https://a.example:444/m",
        ] {
            assert_eq!(named(elsewhere), None, "{elsewhere}");
        }
    }
}
