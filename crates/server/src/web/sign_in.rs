//! Signing a browser in and out.
//!
//! A browser signs in with a token, with the link of a code that `codespar serve` printed, or at a
//! provider. All three end in [`signed_in`], which makes a session of its own for the browser: the
//! token itself is in no cookie, and revoking it ends the sessions that came from it.

use axum::{
    Form,
    extract::{Query, State, rejection::FormRejection},
    http::{Extensions, HeaderMap, HeaderValue, StatusCode, header},
    response::{Html, IntoResponse, Redirect, Response},
};
use codespar_store::AccessToken;
use maud::{Markup, html};
use serde::Deserialize;

use super::{gate::own_path, layout};
use crate::{
    access::{Peer, begin_session, cookie, is_own_page, no_cookie},
    error::ApiError,
    state::Shared,
};

/// Both are of the address and not believed: the code is only put into a form, and the path is
/// checked before it is used.
#[derive(Deserialize)]
pub(crate) struct LoginParams {
    code: Option<String>,
    next: Option<String>,
}

/// Asks for a token; with a code in the address, for a click. The code is used up by the click and
/// not by the address: programs that look at links do not sign anybody in.
pub(crate) async fn login(
    State(state): State<Shared>,
    Query(params): Query<LoginParams>,
) -> Html<String> {
    let next = params.next.as_deref();
    login_page(params.code.as_deref(), next, None, &ways(&state, next))
}

/// The providers at which people can sign in instead, with the addresses where that begins.
fn ways(state: &Shared, next: Option<&str>) -> Vec<(String, String)> {
    let providers = &state.providers;
    let address = |one| providers.start_address(one, own_path(next));
    let all = providers.all().iter();
    all.map(|one| (one.label.clone(), address(one))).collect()
}

/// With a code there is one thing to do, and the other ways are left out.
fn login_page(
    code: Option<&str>,
    next: Option<&str>,
    problem: Option<&str>,
    ways: &[(String, String)],
) -> Html<String> {
    let ways: &[(String, String)] = if code.is_some() { &[] } else { ways };
    let content = html! {
        (brand())
        @if let Some(problem) = problem { p.problem role="alert" { (problem) } }
        @if !ways.is_empty() {
            div.ways {
                @for (label, address) in ways { a.button.primary href=(address) { "Sign in with " (label) } }
            }
            p.or { "or with a token" }
        }
        form.sign-in method="post" action="/login" {
            @if let Some(code) = code {
                p { "This link signs this browser in, once." }
                input type="hidden" name="token" value=(code);
            } @else {
                label for="token" { "Token" }
                input id="token" name="token" type="password" autocomplete="off" required autofocus[ways.is_empty()];
                p.note { code { "codespar token create --role write --name NAME" } " makes one." }
            }
            input type="hidden" name="next" value=(own_path(next));
            button class=(if ways.is_empty() { "primary" } else { "" }) { "Sign in" }
        }
    };
    Html(layout::bare("Sign in", &content).into_string())
}

/// The top of a page without navigation.
pub(super) fn brand() -> Markup {
    html! {
        h1 { img src=(super::assets::address("icon.svg")) alt="" width="28" height="28"; "CodeSpar" }
    }
}

/// The field for the token takes a code as well: which of the two it is, its first letters say.
#[derive(Deserialize)]
pub(crate) struct LoginForm {
    token: String,
    next: Option<String>,
}

/// Signs a browser in by a token or a code.
pub(crate) async fn sign_in(
    State(state): State<Shared>,
    headers: HeaderMap,
    extensions: Extensions,
    form: Result<Form<LoginForm>, FormRejection>,
) -> Result<Response, ApiError> {
    // Another page must not sign the browser in as somebody else.
    if is_own_page(&headers) == Some(false) {
        return Err(ApiError::forbidden(
            "foreign_page",
            "sign in on a page of this server",
        ));
    }
    let Form(form) = form.map_err(|error| match error.status() {
        StatusCode::UNSUPPORTED_MEDIA_TYPE => ApiError::unsupported_media_type(),
        StatusCode::PAYLOAD_TOO_LARGE => ApiError::too_large(state.limits.body_bytes),
        _ => ApiError::bad_request(error.body_text()),
    })?;
    let sign_ins = &state.access.sign_ins;
    let Some(token) = sign_ins.token_for(&**state.store(), &form.token).await? else {
        let error = state.access.failed(extensions.get::<Peer>().copied());
        let problem = match error.status() {
            StatusCode::TOO_MANY_REQUESTS => error.message().to_owned(),
            _ => "This token is not valid, or the link was used before.".to_owned(),
        };
        let next = form.next.as_deref();
        return Ok((
            error.status(),
            login_page(None, next, Some(&problem), &ways(&state, next)),
        )
            .into_response());
    };
    let next = own_path(form.next.as_deref());
    signed_in(&state, &token, next).await
}

/// Gives a browser its cookie and sends it on.
pub(super) async fn signed_in(
    state: &Shared,
    token: &AccessToken,
    next: &str,
) -> Result<Response, ApiError> {
    let scope = state.plan.cookie_scope();
    let lasts = state.limits.browser_session;
    let cookie = begin_session(&**state.store(), token, lasts, scope).await?;
    let next = Redirect::to(own_path(Some(next)));
    Ok(with_cookie(next.into_response(), cookie))
}

/// Ends the session in the store and not only in the browser. A page of another site must not sign
/// somebody out, which costs them what they were typing.
pub(crate) async fn sign_out(
    State(state): State<Shared>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    if let Some(secret) = cookie(&headers) {
        crate::access::refuse_foreign_page(&headers)?;
        state.store().end_browser_session(&secret.hash()).await?;
    }
    let cookie = no_cookie(state.plan.cookie_scope())?;
    Ok(with_cookie(Redirect::to("/login").into_response(), cookie))
}

/// Added to those that are set already: a sign-in at a provider ends one cookie and begins another.
pub(super) fn with_cookie(mut response: Response, cookie: HeaderValue) -> Response {
    response.headers_mut().append(header::SET_COOKIE, cookie);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_the_address_cannot_become_markup() {
        let Html(page) = login_page(Some("\"><script>alert(1)</script>"), None, None, &[]);
        assert!(!page.contains("<script>"), "{page}");
        assert!(page.contains("value=\"&quot;&gt;&lt;script&gt;"), "{page}");
    }
}
