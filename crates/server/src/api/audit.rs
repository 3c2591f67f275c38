//! The audit log: who asked for what, with which rights, and what came of it.
//!
//! Pages go back from the latest entry by `seq`; `codespar audit export` prints all of it.

use axum::{
    Json,
    body::Body,
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use codespar_channels::WEB;
use codespar_store::AuditEntry;
use futures::stream;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::extract::{Params, page_size};
use crate::{error::ApiError, scope::ProjectKey, state::Shared};

const PAGE: u32 = 100;
const MOST: u32 = 500;
/// Read at once for an export.
const AT_ONCE: u32 = 1_000;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct AuditParams {
    /// Only entries before this `seq`.
    before: Option<u64>,
    /// At most so many, 100 by default.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct AuditPage {
    /// Latest first: `seq`, `time`, `channel`, `conversation`, `thread`, `identity`, `speaker`,
    /// `role`, `action`, `decision`, `detail`, `repository` and `task_id`.
    #[schema(value_type = Vec<Object>)]
    entries: Vec<Value>,
    /// The `before` of the next page; absent on the last.
    next: Option<u64>,
}

/// List the audit log, latest first.
#[utoipa::path(
    get, path = "/api/v1/audit", tag = "audit", params(AuditParams),
    responses((status = 200, body = AuditPage))
)]
pub(super) async fn list(
    State(state): State<Shared>,
    Params(params): Params<AuditParams>,
) -> Result<Json<AuditPage>, ApiError> {
    let limit = page_size(params.limit, PAGE, MOST)?;
    if params.before.is_some_and(|seq| i64::try_from(seq).is_err()) {
        return Err(ApiError::bad_request("`before` is too large"));
    }
    let (entries, next) = page(&state, params.before, limit).await?;
    let entries = entries.iter().map(|entry| shown(&state, entry)).collect();
    Ok(Json(AuditPage { entries, next }))
}

/// A page of the log, and where the next one begins.
pub(crate) async fn page(
    state: &Shared,
    before: Option<u64>,
    limit: u32,
) -> Result<(Vec<AuditEntry>, Option<u64>), ApiError> {
    let mut entries = state.store().latest_audit(before, limit).await?;
    let is_full = entries.len() == limit as usize;
    let next = entries.last().filter(|_| is_full).map(|entry| entry.seq);
    entries.retain(|entry| is_of_server(state, entry));
    Ok((entries, next))
}

/// What was said on the page of another server is not of this one. Chat platforms belong to the
/// state directory, not to a project.
fn is_of_server(state: &Shared, entry: &AuditEntry) -> bool {
    let at = &entry.entry.at;
    let mut roots = state.scope.roots().iter();
    at.channel != WEB || roots.any(|root| ProjectKey::of(root).as_str() == at.conversation)
}

fn shown(state: &Shared, entry: &AuditEntry) -> Value {
    let mut value = serde_json::to_value(entry).unwrap_or_default();
    state.runtime.redactor().redact_json(&mut value);
    value
}

/// Export the audit log as JSON lines, oldest first.
#[utoipa::path(
    get, path = "/api/v1/audit/export", tag = "audit",
    responses((status = 200, content_type = "application/x-ndjson", body = String))
)]
pub(super) async fn export(State(state): State<Shared>) -> Result<Response, ApiError> {
    let lines = stream::try_unfold((state, 0), |(state, after)| async move {
        let entries = state.store().audit(after, AT_ONCE).await?;
        let Some(last) = entries.last().map(|entry| entry.seq) else {
            return Ok::<_, codespar_store::StoreError>(None);
        };
        let own = entries.iter().filter(|entry| is_of_server(&state, entry));
        let text: String = own
            .map(|entry| format!("{}\n", shown(&state, entry)))
            .collect();
        Ok(Some((text, (state, last))))
    });
    let headers = [
        (header::CONTENT_TYPE, "application/x-ndjson"),
        (
            header::CONTENT_DISPOSITION,
            "attachment; filename=\"codespar-audit.jsonl\"",
        ),
    ];
    Ok((headers, Body::from_stream(lines)).into_response())
}
