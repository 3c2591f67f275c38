//! Webhooks of chat platforms: `/hooks/<channel>`.
//!
//! No token is asked for: a delivery is believed by its signature alone, which the channel checks
//! over the raw body. What is refused is counted, without its content.

use std::{collections::HashMap, sync::Arc};

use axum::{
    extract::{FromRequest, Path, RawQuery, Request, State},
    http::{HeaderMap, Method, StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use codespar_channels::{HookMethod, HookRequest, Webhook};

pub(crate) use codespar_channels::MOST_HOOK_BYTES;

use crate::{error::ApiError, state::Shared};

/// Where these paths begin.
pub(crate) const PREFIX: &str = "/hooks/";

/// The channels that deliver to this server.
#[derive(Default)]
pub struct Webhooks {
    /// By the name of the channel.
    pub by_channel: HashMap<String, Arc<dyn Webhook>>,
}

/// A delivery. A channel that is not set up is not there.
pub(crate) async fn receive(
    State(state): State<Shared>,
    Path(channel): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    request: Request,
) -> Result<Response, ApiError> {
    let Some(hook) = state.hooks.by_channel.get(&channel) else {
        return Err(ApiError::not_found("there is nothing at this path"));
    };
    let method = match *request.method() {
        Method::GET => HookMethod::Get,
        _ => HookMethod::Post,
    };
    let body = match read(&state, request).await {
        Ok(body) => body,
        Err(error) => {
            state.metrics.count_webhook(&channel, "unreadable");
            return Err(error);
        }
    };
    let answer = hook
        .handle(HookRequest {
            method,
            query: query.as_deref().unwrap_or_default(),
            headers: &headers,
            body: &body,
        })
        .await;
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let outcome = match status {
        StatusCode::OK => "accepted",
        StatusCode::UNAUTHORIZED => "bad_signature",
        StatusCode::SERVICE_UNAVAILABLE => "not_recorded",
        _ => "unreadable",
    };
    state.metrics.count_webhook(&channel, outcome);
    let content_type = [(CONTENT_TYPE, answer.content_type)];
    Ok((status, content_type, answer.body).into_response())
}

async fn read(state: &Shared, request: Request) -> Result<Bytes, ApiError> {
    let read = Bytes::from_request(request, state);
    match tokio::time::timeout(state.limits.body_time, read).await {
        Err(_) => Err(ApiError::timeout()),
        Ok(Ok(body)) => Ok(body),
        Ok(Err(rejection)) if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE => {
            Err(ApiError::too_large(MOST_HOOK_BYTES))
        }
        Ok(Err(rejection)) => Err(ApiError::bad_request(rejection.body_text())),
    }
}
