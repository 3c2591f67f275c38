//! Signing in at a provider: the way there, the way back, and what is shown when it fails.
//!
//! Both ways are plain links and redirections; no script takes part. What the browser brings back
//! is believed only with the cookie of the attempt that it began (`providers/attempt.rs`), so an
//! answer that somebody else received cannot sign this browser in. The page of a failure says what
//! the person can do; what the provider wrote is in the log, since it may contain anything.

use axum::{
    extract::{Path, Query, State, rejection::QueryRejection},
    http::{Extensions, HeaderMap, StatusCode},
    response::{Html, IntoResponse, Redirect, Response},
};
use codespar_runtime::printable;
use maud::html;
use serde::Deserialize;

use super::{
    gate::own_path,
    layout,
    sign_in::{brand, signed_in, with_cookie},
};
use crate::{
    access::Peer,
    error::ApiError,
    providers::{Attempts, SignInFailure, SignInProvider, role_of, token_for},
    state::Shared,
};

/// Where the person wanted to go. Only a path of this server is taken for it, or a link could lead
/// elsewhere after the sign-in.
#[derive(Deserialize)]
pub(crate) struct BeginParams {
    next: Option<String>,
}

/// Sends the browser to the provider, with a cookie that its answer must fit.
pub(crate) async fn begin(
    State(state): State<Shared>,
    Path(name): Path<String>,
    Query(params): Query<BeginParams>,
) -> Result<Response, ApiError> {
    let provider = found(&state, &name)?;
    let next = own_path(params.next.as_deref());
    let attempts = &state.providers.attempts;
    let attempt = attempts.begin(&provider.name, next)?;
    match provider.page(&attempt).await {
        Ok(page) => {
            let cookie = attempts.cookie(&attempt, state.plan.cookie_scope())?;
            Ok(with_cookie(
                Redirect::to(page.as_str()).into_response(),
                cookie,
            ))
        }
        Err(failure) => Ok(failed(&state, provider, None, &failure)),
    }
}

/// What the provider sends a browser back with.
#[derive(Deserialize)]
pub(crate) struct CallbackParams {
    code: Option<String>,
    state: Option<String>,
    /// The issuer (RFC 9207).
    iss: Option<String>,
    error: Option<String>,
}

/// Signs the browser in that the provider sends back.
pub(crate) async fn finish(
    State(state): State<Shared>,
    Path(name): Path<String>,
    headers: HeaderMap,
    extensions: Extensions,
    params: Result<Query<CallbackParams>, QueryRejection>,
) -> Result<Response, ApiError> {
    let provider = found(&state, &name)?;
    let peer = extensions.get::<Peer>().copied();
    let scope = state.plan.cookie_scope();
    let attempt = params.ok().and_then(|Query(params)| {
        let asked = params.state.as_deref()?;
        let attempts = &state.providers.attempts;
        let attempt = attempts.take(&headers, scope, &provider.name, asked)?;
        Some((attempt, params))
    });
    let Some((attempt, params)) = attempt else {
        // The cookie stays: it may be that of an attempt of this browser which somebody disturbs.
        return Ok(failed(&state, provider, peer, &SignInFailure::Stale));
    };
    let done = match (params.error, params.code) {
        (Some(error), _) => Err(SignInFailure::Declined(error)),
        (None, None) => Err(SignInFailure::Unbelieved("there is no code".to_owned())),
        (None, Some(code)) => {
            let who = provider.who(&attempt, &code, params.iss.as_deref()).await;
            match who {
                Ok(person) => match role_of(&state, &provider.name, &person)? {
                    Some(role) => token_for(&state, &provider.name, &person, role).await?,
                    None => Err(SignInFailure::NoRole(person.shown().to_owned())),
                },
                Err(failure) => Err(failure),
            }
        }
    };
    let response = match done {
        Ok(token) => signed_in(&state, &token, &attempt.next).await?,
        Err(failure) => failed(&state, provider, peer, &failure),
    };
    Ok(with_cookie(response, Attempts::no_cookie(scope)?))
}

/// A name that is not set up is answered as if the page did not exist.
fn found<'a>(state: &'a Shared, name: &str) -> Result<&'a SignInProvider, ApiError> {
    let provider = state.providers.named(name);
    provider.ok_or_else(|| ApiError::not_found("nobody signs in there"))
}

/// A page that says what to do. What providers write is in the log alone.
fn failed(
    state: &Shared,
    provider: &SignInProvider,
    peer: Option<Peer>,
    failure: &SignInFailure,
) -> Response {
    tracing::warn!(
        provider = provider.name,
        "a sign-in failed: {}",
        printable(&failure.to_string())
    );
    let (status, text) = match failure {
        SignInFailure::Stale => (
            StatusCode::BAD_REQUEST,
            "This sign-in was begun in another browser, took too long, or was used before. Begin \
             again."
                .to_owned(),
        ),
        SignInFailure::Declined(code) if code == "access_denied" => (
            StatusCode::FORBIDDEN,
            format!("{} did not let you in, or you declined.", provider.label),
        ),
        SignInFailure::Declined(_) | SignInFailure::Unbelieved(_) => (
            StatusCode::BAD_GATEWAY,
            format!(
                "{} sent an answer that cannot be used; the log of the server has the reason.",
                provider.label
            ),
        ),
        SignInFailure::Unreachable(_) => (
            StatusCode::BAD_GATEWAY,
            format!(
                "{} cannot be reached at the moment; the log of the server has the reason.",
                provider.label
            ),
        ),
        SignInFailure::NoRole(who) | SignInFailure::Revoked(who) => (
            StatusCode::FORBIDDEN,
            format!(
                "{} at {} has no role here. Whoever runs this server can give you one.",
                printable(who),
                provider.label
            ),
        ),
    };
    // Nobody is locked out by others at the same address, but trying is slowed down.
    let status = match peer.map(|peer| state.access.failed(Some(peer)).status()) {
        Some(StatusCode::TOO_MANY_REQUESTS) => StatusCode::TOO_MANY_REQUESTS,
        _ => status,
    };
    let content = html! {
        (brand())
        p.problem role="alert" { (text) }
        p { a href="/login" { "Sign in" } }
    };
    (
        status,
        Html(layout::bare("Sign in", &content).into_string()),
    )
        .into_response()
}
