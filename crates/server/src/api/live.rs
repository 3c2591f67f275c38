//! Live events as a stream.
//!
//! Server-sent events and no WebSocket: browsers connect again by themselves and name the last
//! event that they know, and the same stream can be read with `curl`.

use axum::{
    body::Body,
    extract::State,
    http::{HeaderMap, header},
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use utoipa::IntoParams;

use super::extract::Params;
use crate::{
    access::Client,
    error::ApiError,
    events::{EventQuery, EventStream},
    state::Shared,
};

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct EventParams {
    /// The id of the last event that is known; the header `Last-Event-ID` wins over it. Without
    /// either, events from now on.
    after: Option<u64>,
    /// Only what concerns this task.
    task: Option<String>,
    /// Only what concerns this session.
    session: Option<String>,
}

/// Follow what happens, as server-sent events.
///
/// `ready` (first), `task`, `entry` and `question` tell of changes on record, each with an id to go
/// on from; `message` tells that something was said or edited in a thread of the page; `agent` tells what an agent of this process does at the moment; `resync` says that the
/// place is too old and everything is to be read anew; `restart` ends the stream when the server
/// stops.
#[utoipa::path(
    get, path = "/api/v1/events", tag = "events", params(EventParams),
    responses((status = 200, content_type = "text/event-stream", body = String))
)]
pub(super) async fn events(
    State(state): State<Shared>,
    client: Client,
    headers: HeaderMap,
    Params(params): Params<EventParams>,
) -> Result<Response, ApiError> {
    let task = match &params.task {
        Some(id) => Some(state.scope.task(id).await?.task_id),
        None => None,
    };
    let session = match &params.session {
        Some(id) => Some(state.scope.session(id).await?.0.id),
        None => None,
    };
    let query = EventQuery {
        after: last_event(&headers)?.or(params.after),
        task,
        session,
    };
    let stream = EventStream::open(state, client, query)?;
    let kind = [(header::CONTENT_TYPE, "text/event-stream")];
    Ok((kind, Body::from_stream(stream.into_bytes())).into_response())
}

fn last_event(headers: &HeaderMap) -> Result<Option<u64>, ApiError> {
    let Some(value) = headers.get("last-event-id") else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or("-").trim();
    if text.is_empty() {
        return Ok(None);
    }
    let read = text.parse().map(Some);
    read.map_err(|_| ApiError::bad_request("`Last-Event-ID` is not the id of an event"))
}
