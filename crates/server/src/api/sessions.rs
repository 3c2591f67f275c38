//! Conversations and their transcripts.
//!
//! Entries are asked for by their place, which never changes, so reading on is safe while the
//! conversation grows. A page is bounded in bytes as well as in entries: one entry may hold a whole
//! file.

use axum::{Json, extract::State};
use codespar_protocol::{Entry, SessionId};
use codespar_store::{SessionPage, SessionRecord};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

use super::{
    extract::{Named, Params, page_size},
    schema::ApiUsage,
};
use crate::{
    error::ApiError,
    scope::{Placed, ProjectKey},
    state::Shared,
};

const PAGE: u32 = 50;
const MOST_SESSIONS: u32 = 200;
const ENTRIES: u32 = 100;
const MOST_ENTRIES: u32 = 500;
/// A page of entries ends when it is so large, even if more were asked for.
const MOST_BYTES: usize = 4 << 20;

/// A conversation with its sums.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ApiSession {
    session_id: String,
    /// The first line of the first prompt.
    title: Option<String>,
    /// The key of its project.
    project: Option<String>,
    /// The task of the agent whose conversation it is.
    task_id: Option<String>,
    model: String,
    created_at: Timestamp,
    updated_at: Timestamp,
    /// The place of the last entry.
    last_seq: u64,
    usage: ApiUsage,
    /// Absent while a price is unknown.
    cost_usd: Option<f64>,
}

impl ApiSession {
    fn of(session: SessionRecord, placed: Option<Placed>) -> Self {
        let root = placed.as_ref().map(|placed| ProjectKey::of(&placed.root));
        Self {
            session_id: session.id.to_string(),
            title: session.title,
            project: root.map(|key| key.as_str().to_owned()),
            task_id: placed.and_then(|placed| placed.task.map(|id| id.to_string())),
            model: session.model,
            created_at: session.created_at,
            updated_at: session.updated_at,
            last_seq: session.last_seq,
            usage: session.usage.into(),
            cost_usd: session.cost.known().map(|usd| usd.dollars()),
        }
    }
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ListParams {
    /// Only those of the project with this key.
    project: Option<String>,
    /// The `next` of the page before.
    cursor: Option<String>,
    /// At most so many, 50 by default.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct Sessions {
    /// Most recently used first.
    sessions: Vec<ApiSession>,
    /// The `cursor` of the next page; absent on the last.
    next: Option<String>,
}

/// List conversations that work in a project, most recently used first.
#[utoipa::path(
    get, path = "/api/v1/sessions", tag = "sessions", params(ListParams),
    responses((status = 200, body = Sessions))
)]
pub(super) async fn list(
    State(state): State<Shared>,
    Params(params): Params<ListParams>,
) -> Result<Json<Sessions>, ApiError> {
    let limit = page_size(params.limit, PAGE, MOST_SESSIONS)?;
    let roots = match &params.project {
        Some(key) => vec![state.scope.root_by_key(key)?.to_path_buf()],
        None => state.scope.roots().to_vec(),
    };
    let before: Option<Result<SessionId, _>> = params.cursor.as_deref().map(str::parse);
    let before = before
        .transpose()
        .map_err(|_| ApiError::bad_request("`cursor` is not the `next` of a page"))?;
    let page = SessionPage {
        roots,
        before,
        // One more tells whether there is another page.
        limit: limit + 1,
    };
    let mut found = state.store().sessions_page(page).await?;
    let is_last = found.len() <= limit as usize;
    found.truncate(limit as usize);
    let next = found.last().filter(|_| !is_last);
    let next = next.map(|session| session.id.to_string());
    let mut sessions = Vec::with_capacity(found.len());
    for session in found {
        let placed = state.scope.place(session.id).await?;
        sessions.push(ApiSession::of(session, placed));
    }
    Ok(Json(Sessions { sessions, next }))
}

/// Show a conversation.
#[utoipa::path(
    get, path = "/api/v1/sessions/{id}", tag = "sessions", params(("id" = String, Path)),
    responses((status = 200, body = ApiSession))
)]
pub(super) async fn get(
    State(state): State<Shared>,
    Named(id): Named<String>,
) -> Result<Json<ApiSession>, ApiError> {
    let (session, placed) = state.scope.session(&id).await?;
    Ok(Json(ApiSession::of(session, Some(placed))))
}

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct EntryParams {
    /// The place of the first, from 1.
    from: Option<u64>,
    /// At most so many, 100 by default.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<u32>,
}

#[derive(Serialize, ToSchema)]
pub(super) struct Entries {
    entries: Vec<ApiEntry>,
    /// The next `from`; absent at the end of the transcript.
    next: Option<u64>,
}

/// An entry of a transcript.
#[derive(Serialize, ToSchema)]
pub(super) struct ApiEntry {
    id: String,
    /// Its place, counted from 1 without gaps.
    seq: u64,
    at: Timestamp,
    /// An object with one field, which is its kind: `user`, `assistant`, `tool_started`,
    /// `tool_result`, `side_call`, `compaction` or `rewound`.
    #[schema(value_type = Object)]
    body: Value,
}

/// Read a transcript from a place on. Secrets are left out.
#[utoipa::path(
    get, path = "/api/v1/sessions/{id}/entries", tag = "sessions",
    params(("id" = String, Path), EntryParams),
    responses((status = 200, body = Entries))
)]
pub(super) async fn entries(
    State(state): State<Shared>,
    Named(id): Named<String>,
    Params(params): Params<EntryParams>,
) -> Result<Json<Entries>, ApiError> {
    let limit = page_size(params.limit, ENTRIES, MOST_ENTRIES)?;
    let (session, _) = state.scope.session(&id).await?;
    let from = params.from.unwrap_or(1).max(1);
    let found = match i64::try_from(from) {
        Ok(_) => state.store().entries_page(session.id, from, limit).await?,
        Err(_) => Vec::new(),
    };
    let redactor = state.runtime.redactor();
    let (mut entries, mut bytes) = (Vec::new(), 0);
    let mut next = from;
    for entry in &found {
        let mut body = serde_json::to_value(&entry.body).map_err(ApiError::internal)?;
        redactor.redact_json(&mut body);
        // `rewound` without content and the like are objects, too.
        if !body.is_object() {
            body = json!({ "other": body });
        }
        bytes += body.to_string().len();
        if bytes > MOST_BYTES && !entries.is_empty() {
            break;
        }
        next = entry.seq + 1;
        entries.push(ApiEntry {
            id: entry.id.to_string(),
            seq: entry.seq,
            at: entry.at,
            body,
        });
    }
    Ok(Json(Entries {
        next: (next <= session.last_seq && !entries.is_empty()).then_some(next),
        entries,
    }))
}

/// An entry as events carry it.
pub(crate) fn entry_json(entry: &Entry) -> Value {
    json!({
        "id": entry.id,
        "seq": entry.seq,
        "at": entry.at,
        "body": serde_json::to_value(&entry.body).unwrap_or_default(),
    })
}
