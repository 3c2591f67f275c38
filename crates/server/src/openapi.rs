//! The description of the API, made from the handlers.
//!
//! There is no list beside the handlers: paths, bodies and answers are read from the same items
//! that the router serves, and the roles from the lists of `api/`. So the description cannot say anything that the server does not do.

use codespar_protocol::AccessRole;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        Content, InfoBuilder, OpenApi, OpenApiBuilder, Ref, RefOr, ResponseBuilder,
        path::{Operation, PathItem},
        security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme},
    },
};
use utoipa_axum::router::OpenApiRouter;

use crate::{api, error::ErrorBody, state::Shared};

/// The name of the one way to show who asks; browsers use a cookie instead, which is not for
/// programs.
const SCHEME: &str = "token";

/// A route of the API and the role it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteAccess {
    pub method: &'static str,
    /// With the names of its variable parts in braces.
    pub path: String,
    pub role: AccessRole,
}

/// The routes of the API by the role they need.
pub(crate) fn groups() -> [(AccessRole, OpenApiRouter<Shared>); 4] {
    [
        (AccessRole::Read, api::reading()),
        (AccessRole::Write, api::writing()),
        (AccessRole::Merge, api::merging()),
        (AccessRole::Admin, api::administering()),
    ]
}

/// Every route of the API, with its role.
pub fn route_access() -> Vec<RouteAccess> {
    let mut routes = Vec::new();
    for (role, router) in groups() {
        for (path, mut item) in router.into_openapi().paths.paths {
            for (method, _) in operations(&mut item) {
                let path = path.clone();
                routes.push(RouteAccess { method, path, role });
            }
        }
    }
    routes
}

/// The description that `/api/openapi.json` gives.
pub fn openapi() -> OpenApi {
    let info = InfoBuilder::new()
        .title("CodeSpar")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(
            "Tasks, transcripts, questions and pull requests of the projects of one server. Each \
             operation needs a token of the role that it names.",
        ));
    let mut all = OpenApiBuilder::new().info(info).build();
    for (role, router) in groups() {
        let mut part = router.into_openapi();
        for item in part.paths.paths.values_mut() {
            for (_, operation) in operations(item) {
                describe(operation, role);
            }
        }
        all.merge(part);
    }
    let components = all.components.get_or_insert_default();
    let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
    components.add_security_scheme(SCHEME, SecurityScheme::Http(scheme));
    let mut schemas = vec![(ErrorBody::name().into_owned(), ErrorBody::schema())];
    ErrorBody::schemas(&mut schemas);
    components.schemas.extend(schemas);
    all
}

/// What holds for every operation: a token, a role, and one shape of errors.
fn describe(operation: &mut Operation, role: AccessRole) {
    let none: [&str; 0] = [];
    operation.security = Some(vec![SecurityRequirement::new(SCHEME, none)]);
    let about = operation.description.take().unwrap_or_default();
    operation.description = Some(
        format!("{about}\n\nNeeds the role `{role}`.")
            .trim()
            .to_owned(),
    );
    let mut statuses = vec![
        ("400", "The request cannot be read"),
        ("401", "No valid token"),
        (
            "403",
            "The role is not enough, or the request comes from a foreign page",
        ),
        (
            "404",
            "There is no such thing in the projects of this server",
        ),
        ("405", "This path does not take that method"),
        ("429", "Too many requests"),
        ("500", "The server failed"),
        ("503", "The database or the forge cannot be reached"),
    ];
    if operation.request_body.is_some() {
        statuses.extend([
            ("408", "The body did not arrive in time"),
            ("409", "It does not go with the state of things"),
            ("413", "The body is too large"),
            ("415", "The body is not JSON"),
            ("422", "The body does not say what is needed"),
        ]);
    } else if role != AccessRole::Read {
        statuses.push(("409", "It does not go with the state of things"));
    } else {
        statuses.push(("409", "The project or its forge refuses"));
        statuses.push(("422", "The project's settings are in the way"));
    }
    for (status, about) in statuses {
        let schema = Ref::from_schema_name(ErrorBody::name());
        let response = ResponseBuilder::new()
            .description(about)
            .content("application/json", Content::new(Some(schema)))
            .build();
        let responses = &mut operation.responses.responses;
        responses.insert(status.to_owned(), RefOr::T(response));
    }
}

/// The methods that an item can have here; others are not served.
fn operations(item: &mut PathItem) -> Vec<(&'static str, &mut Operation)> {
    let all = [
        ("GET", item.get.as_mut()),
        ("POST", item.post.as_mut()),
        ("PUT", item.put.as_mut()),
        ("PATCH", item.patch.as_mut()),
        ("DELETE", item.delete.as_mut()),
    ];
    all.into_iter()
        .filter_map(|(method, operation)| Some((method, operation?)))
        .collect()
}
