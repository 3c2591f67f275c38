//! Which path leads where, and through which checks.

use axum::{Json, Router, extract::DefaultBodyLimit, middleware::from_fn_with_state, routing::get};
use codespar_protocol::AccessRole;

use crate::{
    access, error::ApiError, health, hooks, mcp, metrics, openapi, shield, state::Shared, web,
};

/// All routes of a server.
pub(crate) fn router(state: &Shared) -> Router {
    let description = openapi::openapi();
    let mut router = Router::new()
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route(
            "/metrics",
            get(metrics::show).route_layer(from_fn_with_state(state.clone(), access::require_read)),
        )
        .route(
            "/api/openapi.json",
            get(move || async { Json(description) }),
        )
        .merge(web::pages(state))
        .route(
            "/hooks/{channel}",
            get(hooks::receive)
                .post(hooks::receive)
                .layer(DefaultBodyLimit::max(hooks::MOST_HOOK_BYTES)),
        );
    for (role, routes) in openapi::groups() {
        let (routes, _) = routes.split_for_parts();
        let checked = match role {
            AccessRole::Read => {
                routes.route_layer(from_fn_with_state(state.clone(), access::require_read))
            }
            AccessRole::Write => {
                routes.route_layer(from_fn_with_state(state.clone(), access::require_write))
            }
            AccessRole::Merge => {
                routes.route_layer(from_fn_with_state(state.clone(), access::require_merge))
            }
            AccessRole::Admin => {
                routes.route_layer(from_fn_with_state(state.clone(), access::require_admin))
            }
        };
        router = router.merge(checked);
    }
    router
        .fallback(|| async { ApiError::not_found("there is nothing at this path") })
        .method_not_allowed_fallback(|| async { ApiError::method_not_allowed() })
        .layer(DefaultBodyLimit::max(state.limits.body_bytes))
        .layer(from_fn_with_state(state.clone(), shield::guard))
        .with_state(state.clone())
}

/// The routes of a server that is for MCP alone. A client with any role may connect; what it may do
/// is decided for each call.
pub(crate) fn mcp_router(state: &Shared) -> Router {
    Router::new()
        .route_service(mcp::PATH, mcp::http_service(state))
        .route_layer(from_fn_with_state(state.clone(), access::require_read))
        .route("/healthz", get(health::alive))
        .fallback(|| async { ApiError::not_found("there is nothing at this path") })
        .layer(from_fn_with_state(state.clone(), shield::guard))
        .with_state(state.clone())
}
