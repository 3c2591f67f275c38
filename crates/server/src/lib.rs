//! The HTTP API and the web page of `codespar serve`: tasks, transcripts, questions and pull requests of the projects
//! that a process serves, and live events.
//!
//! A request goes through these layers, from the outside:
//!
//! ```text
//! listen.rs      connections: how many, how long, TLS; graceful shutdown
//! shield.rs      Host header, body size, security headers
//! hooks.rs       deliveries of chat platforms, believed by their signature
//! access/        who asks (token or cookie), with which role, from which page, how often
//! providers/     signing in at an OpenID Connect provider or GitHub
//! api/           one file per resource: typed input, typed output, one shape of errors
//! mcp/           the MCP server, over HTTP or standard streams
//! web/           the pages of a browser, one file per view
//! fleet.rs       who runs what, as far as it is of the projects of this server
//! scope.rs       what belongs to the projects of this server; everything else does not exist
//! ```
//!
//! The API acts with the authority of the projects that it serves. Nothing in a request chooses a
//! sandbox, a permission mode, a rule or a directory.

mod access;
mod api;
mod config;
mod error;
mod events;
mod fleet;
mod health;
mod hooks;
mod listen;
mod mcp;
mod metrics;
mod openapi;
mod providers;
mod routes;
mod scope;
mod shield;
mod spans;
mod stall;
mod state;
mod tls;
mod web;

pub use access::{ProxySignIn, ProxySignInError, Secret, SecretKind, SignInCode, create_token};
pub use config::{
    CookieScope, ListenError, ListenPlan, ProxyChoice, ServerLimits, TlsFiles, Transport,
};
pub use hooks::Webhooks;
pub use listen::{Server, ServerError};
pub use mcp::serve_mcp_stdio;
pub use metrics::WebhookOutcomes;
pub use openapi::{RouteAccess, openapi, route_access};
pub use providers::{ProviderAddress, ProviderSetup, SignInSetup, SignInSetupError};
pub use scope::ProjectKey;
pub use state::{ServedSurface, ServerSetup, WorkerState};
