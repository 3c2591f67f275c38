//! Requests in a trace, in the terms of OpenTelemetry's conventions for HTTP.

use axum::{
    extract::{MatchedPath, Request},
    http::StatusCode,
};
use codespar_protocol::TRACE_TARGET;
use codespar_tasks::continue_trace;
use tracing::{Span, field::Empty};

/// What is asked for every few seconds says nothing.
const UNWATCHED: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// A request, below the span that its client names. It is called after its route: a path has ids in
/// it, and webhooks what their sender likes.
pub(crate) fn of(request: &Request) -> Span {
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map_or("", MatchedPath::as_str);
    if UNWATCHED.contains(&route) {
        return Span::none();
    }
    let span = tracing::info_span!(
        target: TRACE_TARGET,
        "request",
        otel.name = format!("{} {route}", request.method()),
        otel.kind = "server",
        otel.status_code = Empty,
        http.request.method = %request.method(),
        http.route = route,
        http.response.status_code = Empty,
    );
    let parent = request.headers().get("traceparent");
    continue_trace(span, parent.and_then(|parent| parent.to_str().ok()))
}

pub(crate) fn tell_status(span: &Span, status: StatusCode) {
    span.record("http.response.status_code", status.as_u16());
    if status.is_server_error() {
        span.record("otel.status_code", "ERROR");
    }
}
