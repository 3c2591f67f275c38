//! A client for GitHub: ring for TLS, the system's certificates, no redirects.
//!
//! The proxy is an explicit value. Environment variables are not consulted, since libraries do not
//! read the environment.

use std::time::Duration;

use url::Url;

use super::text::chain;
use crate::ForgeError;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A client for the API at this address. Build one for all repositories of a host: HTTPS loads the
/// system's root certificates, which takes a while.
pub fn github_client(api: &Url, proxy: Option<&Url>) -> Result<reqwest::Client, ForgeError> {
    // An error only says that a provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let refused = |error: reqwest::Error| {
        ForgeError::Refused(format!(
            "no connection to GitHub can be set up: {}; check the system's root certificates (the \
             ca-certificates package) and the proxy",
            chain(&error.without_url())
        ))
    };
    let mut builder = reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .user_agent(concat!("codespar/", env!("CARGO_PKG_VERSION")))
        // We follow them ourselves, to the same host only: the token goes nowhere else.
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy();
    if let Some(proxy) = proxy {
        builder = builder.proxy(reqwest::Proxy::all(proxy.clone()).map_err(refused)?);
    }
    let secure = [Some(api), proxy];
    if !secure.iter().flatten().any(|url| url.scheme() == "https") {
        builder = builder.tls_certs_only([]);
    }
    builder.build().map_err(refused)
}
