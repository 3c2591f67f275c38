//! Sends requests to the API: headers, tries, limits, kept answers.
//!
//! One call passes through these functions, outermost first:
//!
//! ```text
//! make     for requests that create something: after a lost answer, look before sending again
//! send     waits while a limit is in force, repeats what may be repeated
//! follow   redirects, to the same host only
//! once     one HTTP exchange, with If-None-Match for kept answers
//! ```
//!
//! Whether a failed request may be repeated depends on what may have happened. A connection that
//! was never made had no effect; an answer that got lost, or a 5xx, may follow an effect. The first
//! is always repeated, the second only where repeating does no harm ([`Repeat`]).
//!
//! Dropping the future cancels the request. GitHub may still carry it out, which is the same case
//! as a lost answer.

use std::{fmt, time::Duration};

use bytes::Bytes;
use jiff::Timestamp;
use reqwest::{
    Method, StatusCode,
    header::{
        ACCEPT, AUTHORIZATION, CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH, LOCATION,
    },
};
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

use super::{
    Patience,
    credentials::{Credentials, TokenRenewal},
    failure::{Effect, Failure, Said, message_of},
    kept::Kept,
    limits::{Limits, refused_until},
    links::next_page,
    text::chain,
};
use crate::ForgeError;

/// Sent with each request, so that GitHub does not change the format of its answers under us.
const API_VERSION: &str = "2022-11-28";
/// Exchanges for one call, the first included.
const MOST_REDIRECTS: usize = 3;
pub(super) const JSON: &str = "application/vnd.github+json";

/// A request, and how to speak of it. `what` and `needs` exist for error messages only: they let a
/// refusal say which object it is about and which permission the token probably lacks.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub(super) method: Method,
    pub(super) url: Url,
    /// The media type; GitHub gives the same address as JSON, as a diff or as raw bytes. Part of
    /// the key under which an answer is kept.
    pub(super) accept: &'static str,
    pub(super) body: Option<Value>,
    /// What it is about: `pull request #7 of owner/name`.
    pub(super) what: String,
    /// The permission it takes.
    pub(super) needs: &'static str,
    pub(super) repeat: Repeat,
}

/// Whether a request that may have had its effect is sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeat {
    /// It changes nothing the second time. Reads, updates to a fixed value, deletions, and new git
    /// objects, which nothing refers to yet.
    Free,
    /// The caller looks for its result first. [`Api::send`] does not repeat it after a lost answer;
    /// [`Api::make`] does.
    AfterLooking,
}

impl Call {
    pub(super) fn get(url: Url, what: impl Into<String>, needs: &'static str) -> Self {
        Self {
            method: Method::GET,
            url,
            accept: JSON,
            body: None,
            what: what.into(),
            needs,
            repeat: Repeat::Free,
        }
    }

    pub(super) fn with(
        method: Method,
        url: Url,
        body: Value,
        what: impl Into<String>,
        needs: &'static str,
    ) -> Self {
        Self {
            method,
            body: Some(body),
            ..Self::get(url, what, needs)
        }
    }

    pub(super) fn query(mut self, pairs: &[(&str, &str)]) -> Self {
        self.url.query_pairs_mut().extend_pairs(pairs);
        self
    }

    pub(super) fn accepting(mut self, form: &'static str) -> Self {
        self.accept = form;
        self
    }

    /// Marks a call that must not have its effect twice. Use it with [`Api::make`].
    pub(super) fn once(mut self) -> Self {
        self.repeat = Repeat::AfterLooking;
        self
    }

    /// The limit that it counts against. GitHub counts several budgets of requests. The name is the
    /// one that it uses in `x-ratelimit-resource`.
    fn kind(&self) -> &'static str {
        let path = self.url.path();
        if path.ends_with("/graphql") {
            "graphql"
        } else if path.ends_with("/search/code") {
            "code_search"
        } else {
            "core"
        }
    }

    pub(super) fn error(&self, reason: impl fmt::Display) -> ForgeError {
        ForgeError::Unavailable {
            what: self.what.clone(),
            reason: reason.to_string(),
        }
    }
}

/// A good answer. The body is shared, not copied, when it comes from the kept answers.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) body: Bytes,
    /// The content type without its parameters, in lower case; empty if GitHub names none.
    pub(super) kind: String,
    /// Where the next page is.
    pub(super) next: Option<Url>,
}

impl Answer {
    /// Whether it is the JSON form of something, also of what can be had in other forms: GitHub's
    /// names for those end in `+json` too, so the whole name counts.
    pub(super) fn is_json(&self) -> bool {
        self.kind == "application/json"
    }

    /// An answer in a form that was not asked for: the page of a proxy, mostly.
    pub(super) fn unexpected(&self, call: &Call, wanted: &str) -> ForgeError {
        let found = match self.kind.as_str() {
            "" => "something of no named type",
            kind => kind,
        };
        call.error(format!(
            "GitHub answers with {found} instead of {wanted}; a proxy or a sign-in page may be in \
             between"
        ))
    }

    pub(super) fn read<T: DeserializeOwned>(&self, call: &Call) -> Result<T, ForgeError> {
        if !self.kind.is_empty() && !self.kind.contains("json") {
            return Err(self.unexpected(call, "JSON"));
        }
        serde_json::from_slice(&self.body).map_err(|error| {
            call.error(format!("GitHub's answer is not what it should be: {error}"))
        })
    }
}

/// What came of a request that makes something. `T` is whatever the caller's search returns.
pub(super) enum Made<T> {
    Now(Answer),
    /// An earlier try had made it.
    Before(T),
}

/// The API of a host.
pub(super) struct Api {
    pub(super) base: Url,
    pub(super) graphql: Url,
    pub(super) patience: Patience,
    http: reqwest::Client,
    credentials: Credentials,
    kept: Kept,
    limits: Limits,
}

impl Api {
    /// Fails with [`ForgeError::Refused`] for a token that is empty or cannot be a header value,
    /// and for an address with another scheme than `http` or `https`.
    pub(super) fn new(
        base: Url,
        credentials: Credentials,
        http: reqwest::Client,
        patience: Patience,
    ) -> Result<Self, ForgeError> {
        if !matches!(base.scheme(), "http" | "https") || base.cannot_be_a_base() {
            return Err(ForgeError::Refused(
                "the address of GitHub's API must begin with https://".to_owned(),
            ));
        }
        credentials.check()?;
        Ok(Self {
            graphql: graphql_of(&base),
            base,
            patience,
            http,
            credentials,
            kept: Kept::default(),
            limits: Limits::default(),
        })
    }

    /// Sends it; a refusal is an error.
    pub(super) async fn ask(&self, call: &Call) -> Result<Answer, ForgeError> {
        self.send(call)
            .await
            .map_err(|failure| failure.explain(call))
    }

    /// Sends it and reads the answer.
    pub(super) async fn read<T: DeserializeOwned>(&self, call: &Call) -> Result<T, ForgeError> {
        self.ask(call).await?.read(call)
    }

    /// The same, with `None` for "not found". GitHub also answers 404 where the token may not see
    /// the object.
    pub(super) async fn find<T: DeserializeOwned>(
        &self,
        call: &Call,
    ) -> Result<Option<T>, ForgeError> {
        match self.send(call).await {
            Ok(answer) => answer.read(call).map(Some),
            Err(Failure::Said(said)) if said.status == 404 => Ok(None),
            Err(failure) => Err(failure.explain(call)),
        }
    }

    /// Sends something that makes a thing; after an answer that was lost it looks for the thing
    /// before it sends again. `look` is the caller's search for the thing, by key or by name. It
    /// also runs after the last try, so a lost answer becomes an error only if the thing is really
    /// not there. The call must be marked with [`Call::once`].
    pub(super) async fn make<T, L, F>(&self, call: &Call, look: L) -> Result<Made<T>, Failure>
    where
        L: Fn() -> F,
        F: Future<Output = Result<Option<T>, ForgeError>>,
    {
        let mut tries = 1;
        loop {
            match self.send(call).await {
                Ok(answer) => return Ok(Made::Now(answer)),
                Err(
                    failure @ Failure::Lost {
                        effect: Effect::Perhaps,
                        ..
                    },
                ) => {
                    tokio::time::sleep(self.patience.delay(tries)).await;
                    if let Some(found) = look().await? {
                        return Ok(Made::Before(found));
                    }
                    if tries >= self.patience.max_tries {
                        return Err(failure);
                    }
                    tries += 1;
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Sends it as often as it may and should be. Waiting for a limit does not count as a try but
    /// adds up over the call; beyond `longest_limit_wait` the call fails with [`Failure::Limited`].
    /// If a limit is known to be used up, nothing is sent before it is lifted.
    pub(super) async fn send(&self, call: &Call) -> Result<Answer, Failure> {
        let mut waited = Duration::ZERO;
        let mut tries = 1;
        loop {
            if let Some(until) = self.limits.shut_until(call.kind()) {
                self.wait_until(until, &mut waited).await?;
            }
            match self.follow(call).await {
                Err(Failure::Limited(until)) => self.wait_until(until, &mut waited).await?,
                Err(Failure::Lost { effect, .. })
                    if tries < self.patience.max_tries
                        && (effect == Effect::None || call.repeat == Repeat::Free) =>
                {
                    tokio::time::sleep(self.patience.delay(tries)).await;
                    tries += 1;
                }
                outcome => return outcome,
            }
        }
    }

    async fn wait_until(&self, until: Timestamp, waited: &mut Duration) -> Result<(), Failure> {
        let wait = Duration::try_from(until.duration_since(Timestamp::now())).unwrap_or_default();
        *waited += wait;
        if *waited > self.patience.longest_limit_wait {
            return Err(Failure::Limited(until));
        }
        tracing::debug!(?wait, "waiting for GitHub's limit on requests");
        tokio::time::sleep(wait).await;
        Ok(())
    }

    /// Sends it to where it is redirected within the host: repositories are renamed.
    async fn follow(&self, call: &Call) -> Result<Answer, Failure> {
        let mut call = call.clone();
        for _ in 0..MOST_REDIRECTS {
            match self.once(&call).await? {
                Outcome::Answered(answer) => return Ok(answer),
                Outcome::Elsewhere(url) => call.url = self.same_host(&call, url)?,
            }
        }
        Err(call
            .error("GitHub sends us from one address to the next")
            .into())
    }

    /// Scheme, host and port must be those of the API. Otherwise an answer could make us send the
    /// token elsewhere.
    pub(super) fn same_host(&self, call: &Call, url: Url) -> Result<Url, ForgeError> {
        if url.origin() == self.base.origin() {
            return Ok(url);
        }
        let host = url.host_str().unwrap_or_default();
        Err(call.error(format!(
            "GitHub points to another host, {host}; the token is not sent there"
        )))
    }

    /// One exchange; a second one with a new token where the token of an installation is refused:
    /// it may have been revoked before its time.
    async fn once(&self, call: &Call) -> Result<Outcome, Failure> {
        let (authorization, token) = self.credentials.header().await?;
        match self.exchange(call, authorization).await {
            Err(Failure::Said(said))
                if said.status == 401
                    && self.credentials.refused(&token) == TokenRenewal::Possible =>
            {
                let (authorization, _) = self.credentials.header().await?;
                self.exchange(call, authorization).await
            }
            outcome => outcome,
        }
    }

    /// A GET for which an answer is kept asks with its tag; `304` gives the kept answer and costs
    /// nothing of the limit. The limits are noted for every status.
    async fn exchange(&self, call: &Call, authorization: HeaderValue) -> Result<Outcome, Failure> {
        let key = (call.url.to_string(), call.accept);
        let kept = (call.method == Method::GET)
            .then(|| self.kept.get(&key))
            .flatten();
        let mut request = self
            .http
            .request(call.method.clone(), call.url.clone())
            .timeout(self.patience.timeout)
            .header(ACCEPT, call.accept)
            .header(AUTHORIZATION, authorization)
            .header("x-github-api-version", API_VERSION);
        if let Some((tag, _)) = &kept {
            request = request.header(IF_NONE_MATCH, tag);
        }
        if let Some(body) = &call.body {
            request = request
                .header(CONTENT_TYPE, "application/json")
                .body(body.to_string());
        }
        let response = request.send().await.map_err(lost)?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = response.bytes().await.map_err(lost)?;
        self.limits.note(call.kind(), &headers);
        match (status, kept) {
            (StatusCode::NOT_MODIFIED, Some((_, answer))) => Ok(Outcome::Answered(answer)),
            (status, _) if status.is_success() => {
                let answer = Answer {
                    body,
                    kind: kind_of(&headers),
                    next: next_page(&headers),
                };
                if let (&Method::GET, Some(tag)) = (&call.method, headers.get(ETAG)) {
                    self.kept.put(key, tag.clone(), answer.clone());
                }
                Ok(Outcome::Answered(answer))
            }
            (status, _) => refusal(call, status.as_u16(), &headers, &body),
        }
    }
}

fn kind_of(headers: &HeaderMap) -> String {
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let name = kind.and_then(|kind| kind.split(';').next());
    name.unwrap_or_default().trim().to_ascii_lowercase()
}

/// Of one exchange that is no failure.
enum Outcome {
    Answered(Answer),
    Elsewhere(Url),
}

/// Sorts a status that is no success. Limits are recognised first, because GitHub uses 403 for them
/// as well as for missing permissions. 301 and 302 are followed for GET only, since HTTP does not
/// keep other methods there.
fn refusal(call: &Call, status: u16, headers: &HeaderMap, body: &[u8]) -> Result<Outcome, Failure> {
    let message = message_of(body);
    if let Some(until) = refused_until(status, headers, &message) {
        return Err(Failure::Limited(until));
    }
    match status {
        301 | 302 if call.method == Method::GET => elsewhere(call, headers),
        307 | 308 => elsewhere(call, headers),
        408 | 500..=599 => Err(Failure::Lost {
            reason: format!("GitHub answers {status} {message}"),
            effect: Effect::Perhaps,
        }),
        _ => Err(Failure::Said(Said {
            status,
            message,
            permissions: headers
                .get("x-accepted-github-permissions")
                .and_then(|value| value.to_str().ok())
                .map(|value| value.replace('=', ": ").replace(';', " or ")),
        })),
    }
}

fn elsewhere(call: &Call, headers: &HeaderMap) -> Result<Outcome, Failure> {
    let location = headers.get(LOCATION).and_then(|value| value.to_str().ok());
    match location.and_then(|location| call.url.join(location).ok()) {
        Some(url) => Ok(Outcome::Elsewhere(url)),
        None => Err(call
            .error("GitHub sends us elsewhere without saying where")
            .into()),
    }
}

/// Without the address: it is told with the repository's name, and can hold a query.
fn lost(error: reqwest::Error) -> Failure {
    let effect = if error.is_connect() || error.is_builder() {
        Effect::None
    } else {
        Effect::Perhaps
    };
    Failure::Lost {
        reason: chain(&error.without_url()),
        effect,
    }
}

/// `…/api/v3` has its GraphQL at `…/api/graphql`; github.com has it beside the rest.
fn graphql_of(base: &Url) -> Url {
    let mut url = base.clone();
    let path = base.path().trim_end_matches('/');
    let above = path.strip_suffix("/v3").unwrap_or(path);
    url.set_path(&format!("{above}/graphql"));
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enterprise_has_its_graphql_beside_the_version() {
        for (base, graphql) in [
            ("https://api.github.com", "https://api.github.com/graphql"),
            (
                "https://git.acme.example/api/v3/",
                "https://git.acme.example/api/graphql",
            ),
        ] {
            assert_eq!(graphql_of(&base.parse().unwrap()).as_str(), graphql);
        }
    }
}
