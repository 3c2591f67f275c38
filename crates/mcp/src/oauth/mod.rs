//! OAuth 2.1 with servers that want it: logging in, and tokens for requests.
//!
//! ```text
//! login      discovery, registration, the page in a browser, the code for a token   -> Login
//! loopback   where the browser is sent to with the code
//! store      tokens, a file for each address, readable by the user alone            -> McpTokenStore
//! bearer     the token of a request: the stored one, or a refreshed one
//! wire       the HTTP of all this: bounded, without redirects, no private addresses
//! ```
//!
//! A server decides where discovery leads, so nothing it names is trusted: the metadata of an
//! authorization server must carry the issuer it was looked up by, endpoints must be HTTPS (or on
//! this machine, where the server is), and a token is bound to the address it was issued for. It is
//! sent to that address, to the token endpoint it came from, and nowhere else.

mod bearer;
mod login;
mod loopback;
mod store;
mod wire;

pub(crate) use self::{bearer::Bearer, store::ServerTokens};
pub use self::{
    login::{Login, LoginError, Redirect},
    store::McpTokenStore,
};

/// What the entry of a server says of OAuth. Nothing of it is needed where the authorization server
/// registers clients by itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OAuthSettings {
    /// A client that was registered beforehand.
    pub client_id: Option<String>,
    pub client_secret: Option<String>,
    /// The address of a document that describes the client, for servers that take it as an id.
    pub client_metadata_url: Option<String>,
    /// The port of the redirect, for clients that were registered with one.
    pub callback_port: Option<u16>,
    /// In place of those that the server names.
    pub scopes: Vec<String>,
}
