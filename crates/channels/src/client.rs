//! HTTP to platforms: one way to set it up, and what their answers have in common.

use std::time::Duration;

use reqwest::{Response, header::RETRY_AFTER};
use url::Url;

use crate::SendError;

const TIMEOUT: Duration = Duration::from_secs(20);
/// Where the platform does not say how long.
pub(crate) const USUAL_WAIT: Duration = Duration::from_secs(30);
const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// A platform cannot be reached at all.
#[derive(Debug, thiserror::Error)]
#[error("no connection to {platform} can be set up: {reason}")]
pub struct ClientError {
    pub(crate) platform: &'static str,
    pub(crate) reason: String,
}

/// Why a call of a platform failed. None has an address in it, which may have a token in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CallError {
    #[error("the platform asks to wait {} s", .0.as_secs())]
    Wait(Duration),
    /// The connection, or the platform itself: it may work later.
    #[error("{0}")]
    Temporary(String),
    /// With the platform's own code and text.
    #[error("{description}")]
    Refused { code: i64, description: String },
}

impl CallError {
    pub(crate) fn connection(error: reqwest::Error) -> Self {
        Self::Temporary(error.without_url().to_string())
    }

    /// What it means for a message that was to be sent. `is_final` tells the refusals that say that
    /// a message cannot be edited any more.
    pub(crate) fn for_message(self, is_final: impl Fn(i64, &str) -> bool) -> SendError {
        match self {
            Self::Wait(wait) => SendError::RetryAfter(wait.min(LONGEST_WAIT)),
            Self::Temporary(text) => SendError::Temporary(text),
            Self::Refused { code, description } => match is_final(code, &description) {
                true => SendError::CannotEdit,
                false => SendError::Permanent(description),
            },
        }
    }
}

/// A client for the API of a platform. Tokens go nowhere else: redirections are not followed.
pub fn client(
    platform: &'static str,
    api: &Url,
    proxy: Option<&Url>,
) -> Result<reqwest::Client, ClientError> {
    // An error only says that a provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let failed = |error: reqwest::Error| ClientError {
        platform,
        reason: error.without_url().to_string(),
    };
    let mut builder = reqwest::Client::builder()
        .timeout(TIMEOUT)
        .user_agent(concat!("codespar/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy();
    if let Some(proxy) = proxy {
        builder = builder.proxy(reqwest::Proxy::all(proxy.clone()).map_err(failed)?);
    }
    if api.scheme() != "https" && proxy.is_none() {
        builder = builder.tls_certs_only([]);
    }
    builder.build().map_err(failed)
}

/// An error of the connection, without the address, which may have a token in it.
pub(crate) fn temporary(error: reqwest::Error) -> SendError {
    SendError::Temporary(error.without_url().to_string())
}

/// How long the platform asks to wait.
pub(crate) fn retry_after(response: &Response) -> Duration {
    let header = response.headers().get(RETRY_AFTER);
    let seconds = header
        .and_then(|value| value.to_str().ok())
        .and_then(|text| text.trim().parse::<f64>().ok())
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.unwrap_or(USUAL_WAIT).min(LONGEST_WAIT)
}

/// The body of an answer, if it has at most so many bytes. It is counted while it is read: what a
/// server says of the length is not relied on. The error is for people.
pub async fn read_at_most(mut response: Response, most: usize) -> Result<Vec<u8>, String> {
    let too_large = || format!("it has more than {} MB", most / (1024 * 1024));
    let mut bytes = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if bytes.len() + chunk.len() > most => return Err(too_large()),
            Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
            Ok(None) => return Ok(bytes),
            Err(error) => return Err(error.without_url().to_string()),
        }
    }
}
