//! Chat completions at OpenAI, other vendors and local servers.
//!
//! The format is in `wire/openai`. Servers that claim compatibility differ in many details; the
//! wire layer tolerates the differences that are known.

use std::sync::Arc;

use bytes::Bytes;
use futures::stream::BoxStream;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

use crate::{
    BaseUrl, HttpClient, Model, ModelError, ModelEvent, Request, RetryPolicy, SetupError,
    anthropic::unwritable,
    call,
    endpoint::{Endpoint, searchable, secret_header},
    wire::openai::{LimitField, OpenAiAnswer, PROVIDER, body},
};

/// How to reach a chat completions API.
#[derive(Debug, Clone)]
pub struct OpenAiConfig {
    /// `OPENAI_BASE_URL`, which usually ends in `/v1`; `/chat/completions` is appended.
    pub base_url: BaseUrl,
    /// `OPENAI_API_KEY`, sent as a bearer token. Local servers need none.
    pub api_key: Option<SecretString>,
    /// When to try again.
    pub retry: RetryPolicy,
}

impl OpenAiConfig {
    /// Where the API lives unless told otherwise.
    pub const DEFAULT_BASE_URL: &'static str = "https://api.openai.com/v1";

    /// No key and the default patience.
    pub fn new(base_url: BaseUrl) -> Self {
        Self {
            base_url,
            api_key: None,
            retry: RetryPolicy::default(),
        }
    }
}

/// A model behind a chat completions API.
///
/// The limit on the answer is sent as `max_tokens`, which local servers and most vendors read;
/// to api.openai.com, whose newer models refuse that name, as `max_completion_tokens`.
#[derive(Debug, Clone)]
pub struct OpenAiModel {
    endpoint: Arc<Endpoint>,
    limit: LimitField,
}

impl OpenAiModel {
    /// Checks the configuration and sets the connection pool up; nothing is sent yet.
    pub fn new(config: &OpenAiConfig, http: &HttpClient) -> Result<Self, SetupError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(key) = &config.api_key {
            let variable = "OPENAI_API_KEY";
            secret_header(&mut headers, "authorization", "Bearer ", key, variable)?;
        }
        let url = config.base_url.join("chat/completions");
        let endpoint = Endpoint {
            provider: PROVIDER,
            client: http.client_for(&url)?,
            silence: http.silence(),
            stall: http.stall(),
            url,
            headers,
            secrets: searchable([config.api_key.as_ref(), None]),
            key_advice: "set OPENAI_API_KEY to a valid key",
            retry: config.retry,
        };
        Ok(Self {
            endpoint: Arc::new(endpoint),
            limit: LimitField::for_host(config.base_url.host()),
        })
    }
}

impl Model for OpenAiModel {
    fn stream(
        &self,
        request: Request,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        let body = match body(&request, self.limit) {
            Ok(body) => Bytes::from(body),
            Err(error) => return unwritable(PROVIDER, &error),
        };
        let Request {
            model, messages, ..
        } = request;
        let begin = move || Box::new(OpenAiAnswer::new(model.clone(), messages.clone())) as Box<_>;
        call::run(self.endpoint.clone(), body, Box::new(begin), cancel)
    }

    fn provider(&self) -> &'static str {
        PROVIDER
    }
}
