//! Requests to a server's address, with the token of the user's login where there is one.
//!
//! A request goes out with the stored token, if any. If the server refuses the token, it is
//! refreshed once and the request is made again; any other refusal is the caller's to tell the user
//! of. What is refused for its scope is noted for the next login.

use std::{collections::HashMap, sync::Arc};

use futures::stream::BoxStream;
use http::{HeaderName, HeaderValue};
use rmcp::{
    model::ClientJsonRpcMessage,
    transport::streamable_http_client::{
        SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    },
};
use sse_stream::Sse;

use crate::{http_post::Post, oauth::Bearer};

/// What rmcp takes by default, too.
pub(super) const MAX_EVENT: usize = 16 << 20;

pub(super) type Headers = HashMap<HeaderName, HeaderValue>;
pub(super) type Failure = StreamableHttpError<reqwest::Error>;

/// A client for one address. Cheap to clone.
#[derive(Clone)]
pub(super) struct HttpClient {
    pub(super) http: reqwest::Client,
    /// `None` where the configuration has a header of its own.
    pub(super) bearer: Option<Arc<Bearer>>,
}

impl HttpClient {
    pub(super) async fn with_token<T, F>(
        &self,
        request: impl Fn(Option<String>) -> F,
    ) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let Some(bearer) = &self.bearer else {
            return request(None).await;
        };
        let token = bearer.token().await?;
        let refused = match request(token.clone()).await {
            Err(StreamableHttpError::AuthRequired(refused)) if token.is_some() => refused,
            Err(StreamableHttpError::InsufficientScope(refused)) => {
                let scopes = refused.get_required_scope().unwrap_or_default();
                bearer.want(&refused.www_authenticate_header, scopes);
                return Err(StreamableHttpError::InsufficientScope(refused));
            }
            answer => return answer,
        };
        match bearer.renewed(token.as_deref()).await? {
            Some(token) => request(Some(token)).await,
            None => Err(StreamableHttpError::AuthRequired(refused)),
        }
    }
}

impl StreamableHttpClient for HttpClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        self.post_message_with_max_sse_event_size(uri, message, session, token, headers, MAX_EVENT)
            .await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _: Option<String>,
        headers: Headers,
        largest: usize,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        self.with_token(|token| {
            let post = Post {
                message: &message,
                session: session.as_deref(),
                token,
                headers: &headers,
                largest,
            };
            post.send(&self.http, &uri)
        })
        .await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        _: Option<String>,
        headers: Headers,
    ) -> Result<(), Failure> {
        self.with_token(|token| {
            let (uri, session) = (uri.clone(), session.clone());
            self.http
                .delete_session(uri, session, token, headers.clone())
        })
        .await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        self.get_stream_with_max_sse_event_size(uri, session, last, token, headers, MAX_EVENT)
            .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last: Option<String>,
        _: Option<String>,
        headers: Headers,
        largest: usize,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        self.with_token(|token| {
            let (uri, session) = (uri.clone(), session.clone());
            let (last, headers) = (last.clone(), headers.clone());
            self.http
                .get_stream_with_max_sse_event_size(uri, session, last, token, headers, largest)
        })
        .await
    }
}
