//! Requests to GitHub's API for the channel: one try each, since the outbox tries again. A token of
//! an app that GitHub refuses is renewed once.
//!
//! Waiting for another try in a call would hold up everything that is sent after it, and would be
//! lost with the process. So an error only says whether another attempt makes sense, and when.

use std::time::Duration;

use codespar_runtime::{GitHubAccess, TokenRenewal};
use jiff::Timestamp;
use reqwest::{
    Method, Response, StatusCode,
    header::{ACCEPT, CONTENT_TYPE, ETAG, HeaderMap, IF_NONE_MATCH, RETRY_AFTER},
};
use secrecy::ExposeSecret;
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

use super::{GitHubChannelSetup, event::is_repository};
use crate::{
    ClientError, SendError,
    client::{client, retry_after, temporary},
    text::shortened,
};

const VERSION: &str = "2022-11-28";
const JSON: &str = "application/vnd.github+json";
/// With the text as HTML, which has addresses of pictures that can be fetched.
pub(super) const FULL: &str = "application/vnd.github.full+json";
const LONGEST_WAIT: Duration = Duration::from_secs(3_600);

/// GitHub, with what we may do there.
pub(super) struct GitHubApi {
    pub(super) http: reqwest::Client,
    pub(super) base: Url,
    pub(super) access: GitHubAccess,
}

/// A request about one repository.
pub(super) struct Ask<'a> {
    pub(super) repository: &'a str,
    pub(super) method: Method,
    /// Below the repository: `["issues", "5", "comments"]`.
    pub(super) parts: &'a [&'a str],
    pub(super) query: &'a [(&'a str, &'a str)],
    pub(super) accept: &'static str,
    pub(super) body: Option<&'a Value>,
    /// Of an answer that is known.
    pub(super) tag: Option<&'a str>,
}

impl<'a> Ask<'a> {
    pub(super) fn get(repository: &'a str, parts: &'a [&'a str]) -> Self {
        Self {
            repository,
            method: Method::GET,
            parts,
            query: &[],
            accept: JSON,
            body: None,
            tag: None,
        }
    }

    pub(super) fn send(
        method: Method,
        repository: &'a str,
        parts: &'a [&'a str],
        body: &'a Value,
    ) -> Self {
        Self {
            method,
            body: Some(body),
            ..Self::get(repository, parts)
        }
    }
}

/// A good answer, or that nothing has changed.
pub(super) struct Told {
    pub(super) is_unchanged: bool,
    pub(super) headers: HeaderMap,
    bytes: Vec<u8>,
}

impl Told {
    pub(super) fn read<T: DeserializeOwned>(&self) -> Result<T, SendError> {
        let read = serde_json::from_slice(&self.bytes);
        read.map_err(|error| SendError::Permanent(format!("GitHub's answer is unknown: {error}")))
    }

    pub(super) fn tag(&self) -> Option<String> {
        let tag = self.headers.get(ETAG)?;
        tag.to_str().ok().map(str::to_owned)
    }
}

impl GitHubApi {
    pub(super) fn new(setup: &GitHubChannelSetup) -> Result<Self, ClientError> {
        Ok(Self {
            http: client("GitHub", &setup.api, setup.proxy.as_ref())?,
            base: setup.api.clone(),
            access: setup.access.clone(),
        })
    }

    pub(super) async fn read<T: DeserializeOwned>(&self, ask: &Ask<'_>) -> Result<T, SendError> {
        self.ask(ask).await?.read()
    }

    /// What is not there, or not for us, is [`SendError::CannotEdit`].
    pub(super) async fn ask(&self, ask: &Ask<'_>) -> Result<Told, SendError> {
        if !is_repository(ask.repository) {
            return Err(SendError::Permanent("this is no repository".to_owned()));
        }
        let (owner, name) = ask.repository.split_once('/').unwrap_or_default();
        let mut renewed = false;
        loop {
            let token = self.access.token_for(owner, name).await;
            let token = token.map_err(|error| SendError::Temporary(error.to_string()))?;
            let response = self.exchange(ask, token.expose_secret()).await?;
            let is_refused = response.status() == StatusCode::UNAUTHORIZED && !renewed;
            if is_refused && self.access.refused(owner, name, &token) == TokenRenewal::Possible {
                renewed = true;
                continue;
            }
            return told(response).await;
        }
    }

    async fn exchange(&self, ask: &Ask<'_>, token: &str) -> Result<Response, SendError> {
        let mut url = self.base.clone();
        match url.path_segments_mut() {
            Ok(mut path) => {
                path.pop_if_empty().push("repos");
                path.extend(ask.repository.split('/')).extend(ask.parts);
            }
            Err(()) => return Err(SendError::Permanent("the address is no base".to_owned())),
        }
        if !ask.query.is_empty() {
            url.query_pairs_mut().extend_pairs(ask.query);
        }
        let mut request = self
            .http
            .request(ask.method.clone(), url)
            .bearer_auth(token)
            .header(ACCEPT, ask.accept)
            .header("x-github-api-version", VERSION);
        if let Some(tag) = ask.tag {
            request = request.header(IF_NONE_MATCH, tag);
        }
        if let Some(body) = ask.body {
            request = request
                .header(CONTENT_TYPE, "application/json")
                .body(body.to_string());
        }
        request.send().await.map_err(temporary)
    }

    /// Who the token belongs to, and the scopes that GitHub tells of a classic one.
    pub(super) async fn user(&self, token: &str) -> Result<(String, Option<String>), SendError> {
        let mut url = self.base.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().push("user");
        }
        let request = self.http.get(url).bearer_auth(token).header(ACCEPT, JSON);
        let told = told(request.send().await.map_err(temporary)?).await?;
        let scopes = told.headers.get("x-oauth-scopes");
        let scopes = scopes
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned);
        let user: Value = told.read()?;
        let login = user["login"].as_str().unwrap_or_default().to_owned();
        Ok((login, scopes))
    }
}

/// Why something could not be looked up, for the person who asked.
pub(super) fn reason(error: SendError) -> String {
    match error {
        SendError::CannotEdit => "it is not there, or is not shown to us".to_owned(),
        error => error.to_string(),
    }
}

async fn told(response: Response) -> Result<Told, SendError> {
    let status = response.status();
    let headers = response.headers().clone();
    let named_wait = headers
        .contains_key(RETRY_AFTER)
        .then(|| retry_after(&response));
    let bytes = response.bytes().await.map_err(temporary)?.to_vec();
    if status.is_success() || status == StatusCode::NOT_MODIFIED {
        return Ok(Told {
            is_unchanged: status == StatusCode::NOT_MODIFIED,
            headers,
            bytes,
        });
    }
    let message: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let message = message["message"].as_str().unwrap_or_default();
    Err(refusal(status, &headers, named_wait, message))
}

/// GitHub uses 403 for limits as well as for missing rights. A secondary limit names the time to
/// wait, or is to be waited out for a minute at least.
fn refusal(
    status: StatusCode,
    headers: &HeaderMap,
    named_wait: Option<Duration>,
    message: &str,
) -> SendError {
    let code = status.as_u16();
    if matches!(code, 403 | 429) {
        let is_limit = code == 429 || message.to_ascii_lowercase().contains("rate limit");
        let wait = named_wait.or_else(|| until_reset(headers));
        if let Some(wait) = wait.or(is_limit.then_some(Duration::from_secs(60))) {
            return SendError::RetryAfter(wait.min(LONGEST_WAIT));
        }
    }
    let said = format!("GitHub says {code} {}", shortened(message, 200));
    match code {
        404 | 410 => SendError::CannotEdit,
        // A key or token that is being replaced.
        401 | 408 | 500..=599 => SendError::Temporary(said),
        _ => SendError::Permanent(said),
    }
}

/// How long the requests of the hour are used up.
fn until_reset(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok();
    if text("x-ratelimit-remaining")? != "0" {
        return None;
    }
    let reset = Timestamp::from_second(text("x-ratelimit-reset")?.parse().ok()?).ok()?;
    let wait = reset.duration_since(Timestamp::now());
    Some(Duration::try_from(wait).unwrap_or_default())
}
