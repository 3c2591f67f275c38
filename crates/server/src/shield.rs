//! What holds for every request, whoever asks: the name that the server was asked by, the size of the
//! body, the headers that keep browsers from doing more than they should.
//!
//! These checks come before anybody is known, and so before any work that somebody could be made to
//! pay for: a request that fails one of them reads nothing from the store. They are also the only
//! ones for pages that need no sign-in.

use std::net::IpAddr;

use axum::{
    body::Body,
    extract::{Request, State},
    http::{HeaderValue, header},
    middleware::Next,
    response::Response,
};
use futures::StreamExt;
use tracing::Instrument;

use crate::{
    api::{COMMANDS, MOST_COMMAND_BYTES},
    config::ServerLimits,
    error::ApiError,
    hooks, spans,
    state::Shared,
};

/// A client that sends more than it may is listened to for so long, so that it hears the answer
/// before the connection is closed on it.
const MOST_IGNORED: usize = 32 << 20;

/// Nothing is loaded from elsewhere, no inline script runs, no page shows ours in a frame.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; \
     frame-ancestors 'none'";

/// Every response passes here on its way out, also refusals of layers below, and is counted and
/// given its headers.
pub(crate) async fn guard(State(state): State<Shared>, request: Request, next: Next) -> Response {
    let response = match checked(&state, request).await {
        Ok(request) => {
            let span = spans::of(&request);
            let response = next.run(request).instrument(span.clone()).await;
            spans::tell_status(&span, response.status());
            response
        }
        Err(error) => axum::response::IntoResponse::into_response(error),
    };
    state.metrics.count_response(response.status());
    with_headers(response)
}

/// A page of another site can be made to ask for this server under its own name (DNS rebinding).
/// Addresses cannot be taken over like that, names can: only ours are answered.
async fn checked(state: &Shared, request: Request) -> Result<Request, ApiError> {
    let host = request.headers().get(header::HOST);
    let host = host.and_then(|host| host.to_str().ok()).unwrap_or("");
    if !is_own_host(host, &state.plan.hosts) {
        return Err(ApiError::forbidden(
            "host",
            "this server does not answer to that name; --host NAME allows one",
        ));
    }
    let limit = body_limit(request.uri().path(), &state.limits);
    let declared = request.headers().get(header::CONTENT_LENGTH);
    let declared = declared.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if declared.is_some_and(|length| length > limit as u64) {
        ignore_body(state, request.into_body()).await;
        return Err(ApiError::too_large(limit));
    }
    Ok(request)
}

/// Bytes of a body at a path.
pub(crate) fn body_limit(path: &str, limits: &ServerLimits) -> usize {
    match path {
        COMMANDS => MOST_COMMAND_BYTES,
        path if path.starts_with(hooks::PREFIX) => hooks::MOST_HOOK_BYTES,
        _ => limits.body_bytes,
    }
}

/// Reads what a client sends, within bounds, and keeps nothing.
async fn ignore_body(state: &Shared, body: Body) {
    let mut stream = body.into_data_stream();
    let read = async {
        let mut ignored = 0;
        while let Some(Ok(bytes)) = stream.next().await {
            ignored += bytes.len();
            if ignored > MOST_IGNORED {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(state.limits.body_time, read).await;
}

/// An IPv6 address is in brackets. A port is not compared: whoever forwards one may have chosen
/// another.
fn is_own_host(host: &str, own: &[String]) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((address, _)) => address,
            None => return false,
        },
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    let name = name.to_lowercase();
    name == "localhost" || name.parse::<IpAddr>().is_ok() || own.contains(&name)
}

/// A header that a handler has set for caches stays: assets may be kept.
fn with_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    let fixed = [
        (header::CONTENT_SECURITY_POLICY, CONTENT_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // Without any referrer, browsers would not say where a form comes from (`Origin: null`).
        (header::REFERRER_POLICY, "same-origin"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    // What a page shows belongs to whoever is signed in; caches do not know who that is.
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_and_own_names_are_answered() {
        let own = ["spar.example".to_owned()];
        let good = [
            "127.0.0.1",
            "127.0.0.1:4180",
            "[::1]:4180",
            "[::1]",
            "localhost:1",
            "LOCALHOST",
            "192.168.0.7:80",
            "Spar.Example:443",
        ];
        for host in good {
            assert!(is_own_host(host, &own), "{host}");
        }
        let bad = [
            "",
            "evil.example",
            "evil.example:4180",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "spar.example.evil.example",
            "[::1",
            "::1",
        ];
        for host in bad {
            assert!(!is_own_host(host, &own), "{host}");
        }
    }
}
