//! The Anthropic Messages API, or anything that speaks it.
//!
//! This file joins configuration, endpoint and wire format; the format itself is in
//! `wire/anthropic`. Key and token may both be set, and then both are sent.

use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, stream, stream::BoxStream};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

use crate::{
    BaseUrl, HttpClient, Model, ModelError, ModelEvent, Request, RetryPolicy, SetupError, call,
    endpoint::{Endpoint, searchable, secret_header},
    wire::anthropic::{AnthropicAnswer, PROVIDER, body},
};

/// How to reach the Messages API.
#[derive(Debug, Clone)]
pub struct AnthropicConfig {
    /// `ANTHROPIC_BASE_URL`; `/v1/messages` is appended.
    pub base_url: BaseUrl,
    /// `ANTHROPIC_API_KEY`, sent as `x-api-key`.
    pub api_key: Option<SecretString>,
    /// `ANTHROPIC_AUTH_TOKEN`, sent as a bearer token.
    pub auth_token: Option<SecretString>,
    /// `anthropic-version`.
    pub version: String,
    /// When to try again.
    pub retry: RetryPolicy,
    /// Whether the server has Anthropic's search of the web. Other servers of the same API do not
    /// know the tool and refuse the request.
    pub web_search: bool,
}

impl AnthropicConfig {
    /// Where the API lives unless told otherwise.
    pub const DEFAULT_BASE_URL: &'static str = "https://api.anthropic.com";
    /// The version that local servers expect too.
    pub const DEFAULT_VERSION: &'static str = "2023-06-01";

    /// No credentials, the default version and the default patience.
    pub fn new(base_url: BaseUrl) -> Self {
        Self {
            web_search: base_url.host() == "api.anthropic.com",
            base_url,
            api_key: None,
            auth_token: None,
            version: Self::DEFAULT_VERSION.to_owned(),
            retry: RetryPolicy::default(),
        }
    }
}

/// A model behind the Messages API.
#[derive(Debug, Clone)]
pub struct AnthropicModel {
    endpoint: Arc<Endpoint>,
    web_search: bool,
}

impl AnthropicModel {
    /// Checks the configuration and sets the connection pool up; nothing is sent yet.
    pub fn new(config: &AnthropicConfig, http: &HttpClient) -> Result<Self, SetupError> {
        let url = config.base_url.join("v1/messages");
        let endpoint = Endpoint {
            provider: PROVIDER,
            client: http.client_for(&url)?,
            silence: http.silence(),
            stall: http.stall(),
            url,
            headers: headers(config)?,
            secrets: searchable([config.api_key.as_ref(), config.auth_token.as_ref()]),
            key_advice: "set ANTHROPIC_API_KEY (or ANTHROPIC_AUTH_TOKEN for a bearer token) to a \
                         valid key",
            retry: config.retry,
        };
        Ok(Self {
            endpoint: Arc::new(endpoint),
            web_search: config.web_search,
        })
    }
}

fn headers(config: &AnthropicConfig) -> Result<HeaderMap, SetupError> {
    const VERSION: &str = "anthropic-version";
    let version = HeaderValue::from_str(&config.version).map_err(|_| SetupError::Header {
        name: VERSION.to_owned(),
        value: config.version.clone(),
    })?;
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(HeaderName::from_static(VERSION), version);
    if let Some(key) = &config.api_key {
        secret_header(&mut headers, "x-api-key", "", key, "ANTHROPIC_API_KEY")?;
    }
    if let Some(token) = &config.auth_token {
        let variable = "ANTHROPIC_AUTH_TOKEN";
        secret_header(&mut headers, "authorization", "Bearer ", token, variable)?;
    }
    Ok(headers)
}

impl Model for AnthropicModel {
    fn stream(
        &self,
        request: Request,
        cancel: CancellationToken,
    ) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        let body = match body(&request) {
            Ok(body) => Bytes::from(body),
            Err(error) => return unwritable(PROVIDER, &error),
        };
        let Request {
            model, messages, ..
        } = request;
        let begin =
            move || Box::new(AnthropicAnswer::new(model.clone(), messages.clone())) as Box<_>;
        call::run(self.endpoint.clone(), body, Box::new(begin), cancel)
    }

    fn provider(&self) -> &'static str {
        PROVIDER
    }

    fn searches_web(&self) -> bool {
        self.web_search
    }
}

/// The stream of a request that cannot be written as JSON.
pub(crate) fn unwritable(
    provider: &'static str,
    error: &serde_json::Error,
) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
    let error = ModelError::Malformed {
        provider,
        message: format!("the request cannot be written: {error}"),
    };
    stream::once(async { Err(error) }).boxed()
}
