//! Tokens of the API.
//!
//! The secret of a token is shown once, when it is created, and the store has only its hash. A
//! token that was revoked stays in the list: what was done with it is on record under its name.

use axum::{Json, extract::State, http::StatusCode, response::IntoResponse};
use codespar_protocol::{AccessRole, TokenId};
use codespar_store::AccessToken;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    extract::{Body, Named, checked_text},
    schema::RoleSchema,
};
use crate::{access::create_token, error::ApiError, state::Shared};

const MOST_NAME: usize = 100;

#[derive(Serialize, ToSchema)]
pub(super) struct ApiToken {
    id: String,
    name: String,
    #[schema(value_type = RoleSchema)]
    role: AccessRole,
    created_at: Timestamp,
    /// Exact to a minute.
    last_used_at: Option<Timestamp>,
    revoked_at: Option<Timestamp>,
}

impl From<AccessToken> for ApiToken {
    fn from(token: AccessToken) -> Self {
        Self {
            id: token.id.to_string(),
            name: token.name,
            role: token.role,
            created_at: token.created_at,
            last_used_at: token.last_used_at,
            revoked_at: token.revoked_at,
        }
    }
}

#[derive(Serialize, ToSchema)]
pub(super) struct Tokens {
    /// In order of creation; revoked ones too.
    tokens: Vec<ApiToken>,
}

/// List tokens, without their secrets.
#[utoipa::path(
    get, path = "/api/v1/tokens", tag = "access", responses((status = 200, body = Tokens))
)]
pub(super) async fn list(State(state): State<Shared>) -> Result<Json<Tokens>, ApiError> {
    let tokens = state.store().tokens().await?;
    Ok(Json(Tokens {
        tokens: tokens.into_iter().map(ApiToken::from).collect(),
    }))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewTokenOrder {
    /// Shown in lists and in the record of what was done with it.
    #[schema(min_length = 1, max_length = 100)]
    name: String,
    #[schema(value_type = RoleSchema)]
    role: AccessRole,
}

#[derive(Serialize, ToSchema)]
pub(super) struct CreatedToken {
    token: ApiToken,
    /// Shown this once.
    secret: String,
}

/// Create a token. Its secret is in the answer, and nowhere else.
#[utoipa::path(
    post, path = "/api/v1/tokens", tag = "access", request_body = NewTokenOrder,
    responses((status = 201, body = CreatedToken))
)]
pub(super) async fn create(
    State(state): State<Shared>,
    Body(new): Body<NewTokenOrder>,
) -> Result<impl IntoResponse, ApiError> {
    checked_text("name", &new.name, MOST_NAME)?;
    let (token, secret) = create_token(&**state.store(), &new.name, new.role).await?;
    let created = CreatedToken {
        token: token.into(),
        secret: secret.reveal().to_owned(),
    };
    Ok((StatusCode::CREATED, Json(created)))
}

/// Revoke a token; browsers that signed in with it are signed out.
#[utoipa::path(
    post, path = "/api/v1/tokens/{id}/revoke", tag = "access", params(("id" = String, Path)),
    responses((status = 200, body = ApiToken))
)]
pub(super) async fn revoke(
    State(state): State<Shared>,
    Named(id): Named<String>,
) -> Result<Json<ApiToken>, ApiError> {
    let id: Result<TokenId, String> = id.parse();
    let id = id.map_err(|_| ApiError::not_found("there is no such token"))?;
    Ok(Json(state.store().revoke_token(&id).await?.into()))
}
