//! Who the client is.

use axum::Json;
use codespar_protocol::AccessRole;
use serde::Serialize;
use utoipa::ToSchema;

use super::schema::RoleSchema;
use crate::access::Client;

/// The token that a request was made with.
#[derive(Serialize, ToSchema)]
pub(super) struct Me {
    token_id: String,
    name: String,
    #[schema(value_type = RoleSchema)]
    role: AccessRole,
    /// The version of the server.
    version: &'static str,
}

/// Show which token a request is made with, and its role.
#[utoipa::path(get, path = "/api/v1/me", tag = "access", responses((status = 200, body = Me)))]
pub(super) async fn show(client: Client) -> Json<Me> {
    Json(Me {
        token_id: client.token.id.to_string(),
        name: client.token.name,
        role: client.token.role,
        version: env!("CARGO_PKG_VERSION"),
    })
}
