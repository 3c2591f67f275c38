//! People whom a proxy in front has signed in: it names them in a header.
//!
//! The header counts only on connections from the addresses of the proxy; from anywhere else it is
//! ignored, as if it were not there. It is sent along with every request of a browser, whatever page
//! makes it, so it is treated as a cookie is: a change must come from a page of this server.
//!
//! Each person acts with a token of their own, which nobody has the secret of. It can be revoked
//! like any other, and is what the audit log and the channel of the page know them by.

use std::{net::IpAddr, sync::Arc};

use axum::http::{HeaderMap, HeaderName};
use codespar_protocol::AccessRole;
use codespar_runtime::{ChannelAccess, Runtime};
use codespar_store::AccessToken;

use super::{Peer, person_token};
use crate::{error::ApiError, state::Shared};

/// The entry of `channels.access` that has the roles of these people.
const ACCESS: &str = "proxy";
const MOST_NAME: usize = 100;

/// Which proxy is believed, and how it names people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxySignIn {
    header: HeaderName,
    addresses: Vec<IpAddr>,
}

/// Why a proxy cannot be believed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProxySignInError {
    #[error("`{0}` is not the name of a header that a proxy could name people in")]
    Header(String),
    #[error(
        "--trusted-proxy-header needs --trusted-proxy: the header is believed from nobody else"
    )]
    Addresses,
}

impl ProxySignIn {
    /// Headers that clients and proxies use for something else name nobody.
    pub fn new(header: &str, addresses: &[IpAddr]) -> Result<Self, ProxySignInError> {
        let taken = [
            "authorization",
            "cookie",
            "host",
            "origin",
            "referer",
            "forwarded",
        ];
        let name = header.trim().to_lowercase();
        let wrong = || ProxySignInError::Header(header.to_owned());
        let parsed: HeaderName = name.parse().map_err(|_| wrong())?;
        if taken.contains(&name.as_str()) || name.starts_with("sec-") {
            return Err(wrong());
        }
        if addresses.is_empty() {
            return Err(ProxySignInError::Addresses);
        }
        Ok(Self {
            header: parsed,
            addresses: addresses.iter().map(IpAddr::to_canonical).collect(),
        })
    }

    /// The person whom the proxy names; nobody where the request is not of the proxy, and where the
    /// header is there twice: one of them would be of the client.
    fn person(&self, headers: &HeaderMap, peer: Option<Peer>) -> Option<String> {
        let Peer(address) = peer?;
        if !self.addresses.contains(&address.to_canonical()) {
            return None;
        }
        let mut values = headers.get_all(&self.header).iter();
        let (Some(value), None) = (values.next(), values.next()) else {
            return None;
        };
        let name = value.to_str().ok()?.trim();
        let is_name = (1..=MOST_NAME).contains(&name.len());
        is_name.then(|| name.to_owned())
    }
}

/// The token of a person whom the proxy names, made when they first come.
pub(super) async fn token_by_proxy(
    state: &Shared,
    headers: &HeaderMap,
    peer: Option<Peer>,
) -> Result<Option<AccessToken>, ApiError> {
    let Some(sign_in) = &state.proxy_sign_in else {
        return Ok(None);
    };
    let Some(person) = sign_in.person(headers, peer) else {
        return Ok(None);
    };
    let role = role_of(&state.runtime, state.scope.roots(), &person)?;
    let name = format!("{ACCESS}:{person}");
    let is_theirs = |token: &AccessToken| token.name == name;
    person_token(state, name.clone(), role, is_theirs).await
}

/// By the settings of now: users by name, then everyone, then read.
fn role_of(
    runtime: &Arc<Runtime>,
    roots: &[std::path::PathBuf],
    person: &str,
) -> Result<AccessRole, ApiError> {
    let nothing = ChannelAccess::default();
    let Some(root) = roots.first() else {
        return Ok(AccessRole::Read);
    };
    let project = runtime.project_at(root)?;
    let access = project.settings.channels.access.get(ACCESS);
    let access = access.unwrap_or(&nothing);
    let named = access.users.get(person).copied();
    Ok(named.or(access.everyone).unwrap_or(AccessRole::Read))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "this is a test")]

    use super::*;

    fn named(peer: &str, values: &[&'static str]) -> Option<String> {
        let addresses = ["127.0.0.1".parse().unwrap(), "2001:db8::7".parse().unwrap()];
        let sign_in = ProxySignIn::new("X-Forwarded-User", &addresses).unwrap();
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append("x-forwarded-user", value.parse().unwrap());
        }
        sign_in.person(&headers, Some(Peer(peer.parse().unwrap())))
    }

    #[test]
    fn only_the_proxy_names_people() {
        let ada = Some("ada@example.com".to_owned());
        assert_eq!(named("127.0.0.1", &["ada@example.com"]), ada);
        assert_eq!(named("::ffff:127.0.0.1", &["ada@example.com"]), ada);
        assert_eq!(named("2001:db8::7", &[" ada@example.com "]), ada);
        for other in ["127.0.0.2", "10.0.0.1", "::1", "2001:db8::8"] {
            assert_eq!(named(other, &["ada@example.com"]), None, "{other}");
        }
        // A client that sends the header through a proxy which adds its own.
        assert_eq!(
            named("127.0.0.1", &["admin@example.com", "ada@example.com"]),
            None
        );
        assert_eq!(named("127.0.0.1", &[""]), None);
        assert_eq!(named("127.0.0.1", &[]), None);
    }

    #[test]
    fn headers_that_mean_something_else_name_nobody() {
        let here = ["127.0.0.1".parse().unwrap()];
        for name in [
            "Cookie",
            "authorization",
            "Host",
            "Sec-Fetch-Site",
            "a b",
            "",
        ] {
            assert!(ProxySignIn::new(name, &here).is_err(), "{name}");
        }
        assert_eq!(
            ProxySignIn::new("Remote-User", &[]),
            Err(ProxySignInError::Addresses)
        );
    }
}
