//! Who asks, and what they may.
//!
//! A request shows a token (`Authorization: Bearer cspr_…`) or the cookie of a browser that signed
//! in with one. A cookie is sent by the browser whatever page asks for it, so a change with a cookie
//! must come from a page of this server ([`origin`]); a token must be known to whoever sends it. A
//! proxy that the user vouches for may name people instead ([`proxy`]). Who signed in at a provider
//! (`providers/`) keeps the role that the settings give them, and no longer than they do.

mod limiter;
mod origin;
mod person_token;
mod proxy;
mod secret;
mod sign_in;

use std::net::IpAddr;

use axum::{
    extract::{Request, State},
    http::{HeaderMap, Method, header},
    middleware::Next,
    response::Response,
};
use codespar_protocol::AccessRole;
use codespar_store::{AccessToken, SecretHash};
use jiff::{SignedDuration, Timestamp};

use self::limiter::RateLimiter;
pub(crate) use self::{
    origin::{is_own_page, refuse_foreign_page},
    person_token::person_token,
    sign_in::{SignIns, begin_session, cookie, cookie_header, cookies, no_cookie},
};
pub use self::{
    proxy::{ProxySignIn, ProxySignInError},
    secret::{Secret, SecretKind, create_token},
    sign_in::SignInCode,
};
use crate::{config::ServerLimits, error::ApiError, providers::is_granted, state::Shared};

/// The address of the client's end of the connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// How a request showed who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Credential {
    Token(SecretHash),
    Cookie(SecretHash),
    /// By the name that a trusted proxy gives.
    Proxy,
    /// By having started the process.
    Within,
}

impl Credential {
    /// Whether a browser sends it with whatever a page of another site asks for.
    fn is_sent_by_itself(&self) -> bool {
        matches!(self, Self::Cookie(_) | Self::Proxy)
    }
}

/// Who asks, once that is known.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(crate) token: AccessToken,
    pub(crate) credential: Credential,
}

impl Client {
    /// For the record: answers, stops and pull requests.
    pub(crate) fn name(&self) -> String {
        format!("{} (API)", self.token.name)
    }
}

/// The limits on clients, and sign-ins that wait for their browser.
pub(crate) struct Access {
    requests: RateLimiter<String>,
    failures: RateLimiter<IpAddr>,
    pub(crate) sign_ins: SignIns,
    /// Held while the token of a person is looked up or made: each has one.
    people: tokio::sync::Mutex<()>,
}

impl Access {
    pub(crate) fn new(limits: &ServerLimits) -> Self {
        Self {
            requests: RateLimiter::new(limits.request_burst, f64::from(limits.requests_per_second)),
            failures: RateLimiter::new(
                limits.failure_burst,
                f64::from(limits.failures_per_minute) / 60.0,
            ),
            sign_ins: SignIns::default(),
            people: tokio::sync::Mutex::default(),
        }
    }

    /// The error for a credential that is not valid. After too many, the client is told to wait;
    /// a valid credential always passes, so nobody is locked out by others at the same address.
    pub(crate) fn failed(&self, peer: Option<Peer>) -> ApiError {
        match peer {
            Some(Peer(address)) if !self.failures.allows(&address) => {
                ApiError::too_many("too many attempts without a valid token; wait a minute")
            }
            _ => ApiError::unauthorized(),
        }
    }
}

pub(crate) async fn require_read(
    State(state): State<Shared>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    require(AccessRole::Read, state, request, next).await
}

pub(crate) async fn require_write(
    State(state): State<Shared>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    require(AccessRole::Write, state, request, next).await
}

pub(crate) async fn require_merge(
    State(state): State<Shared>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    require(AccessRole::Merge, state, request, next).await
}

pub(crate) async fn require_admin(
    State(state): State<Shared>,
    request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    require(AccessRole::Admin, state, request, next).await
}

/// Lets a request through if its client has the role; handlers find the client in its extensions.
async fn require(
    role: AccessRole,
    state: Shared,
    mut request: Request,
    next: Next,
) -> Result<Response, ApiError> {
    let peer = request.extensions().get::<Peer>().copied();
    // A call of the MCP server is a request within the process, whose client was checked before.
    let client = match request.extensions().get::<Client>().cloned() {
        Some(known) => known,
        None => authenticate(&state, request.headers(), peer)
            .await?
            .ok_or_else(|| state.access.failed(peer))?,
    };
    if !state.access.requests.allows(&client.token.id.to_string()) {
        return Err(ApiError::too_many("too many requests; slow down"));
    }
    if client.credential.is_sent_by_itself() && is_change(request.method()) {
        refuse_foreign_page(request.headers())?;
    }
    if !client.token.role.allows(role) {
        return Err(ApiError::forbidden(
            "role",
            format!(
                "this needs the role `{role}`; the token `{}` has `{}`",
                client.token.name, client.token.role
            ),
        ));
    }
    request.extensions_mut().insert(client);
    Ok(next.run(request).await)
}

fn is_change(method: &Method) -> bool {
    !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// The client that the headers name, if they name a valid one. A token wins over a cookie; a token
/// that is wrong is not made up for by a cookie.
pub(crate) async fn authenticate(
    state: &Shared,
    headers: &HeaderMap,
    peer: Option<Peer>,
) -> Result<Option<Client>, ApiError> {
    let found = match shown(headers) {
        Some(credential) => {
            let token = token_of(state, &credential).await?;
            token.map(|token| (token, credential))
        }
        // A token that cannot be read is a wrong one, and no reason to look further.
        None if headers.contains_key(header::AUTHORIZATION) => None,
        None => {
            let token = proxy::token_by_proxy(state, headers, peer).await?;
            token.map(|token| (token, Credential::Proxy))
        }
    };
    let Some((token, credential)) = found else {
        return Ok(None);
    };
    if is_due(token.last_used_at) {
        state.store().touch_token(&token.id).await?;
    }
    Ok(Some(Client { token, credential }))
}

/// Whether the use of a token is worth a write: even one that changes nothing waits for the writers
/// of other processes.
fn is_due(last: Option<Timestamp>) -> bool {
    let age = last.map(|last| Timestamp::now().duration_since(last));
    age.is_none_or(|age| age >= SignedDuration::from_mins(1))
}

/// Whether a client that was let in still may come in: its token may have been revoked since.
pub(crate) async fn is_still_valid(state: &Shared, client: &Client) -> Result<bool, ApiError> {
    let token = match client.credential {
        Credential::Proxy => state.store().token(&client.token.id).await?,
        _ => token_of(state, &client.credential).await?,
    };
    Ok(token.is_some())
}

/// The settings of now may give whoever signed in at a provider another role, or none.
async fn token_of(
    state: &Shared,
    credential: &Credential,
) -> Result<Option<AccessToken>, ApiError> {
    let token = match credential {
        Credential::Token(hash) => state.store().token_by_hash(hash).await?,
        Credential::Cookie(hash) => state.store().browser_token(hash).await?,
        // Its token is found by the name that the proxy gives.
        Credential::Proxy | Credential::Within => None,
    };
    Ok(match token {
        Some(token) if is_granted(state, &token)? => Some(token),
        _ => None,
    })
}

fn shown(headers: &HeaderMap) -> Option<Credential> {
    if let Some(value) = headers.get(header::AUTHORIZATION) {
        let text = value.to_str().ok()?;
        let (scheme, secret) = text.split_once(' ')?;
        let secret = Secret::parse(SecretKind::Token, secret.trim())?;
        return scheme
            .eq_ignore_ascii_case("bearer")
            .then(|| Credential::Token(secret.hash()));
    }
    sign_in::cookie(headers).map(|secret| Credential::Cookie(secret.hash()))
}
