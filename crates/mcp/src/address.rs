//! HTTP clients for an address, and whether it is on this machine.

use reqwest::ClientBuilder;
use url::{Host, Url};

use crate::connection::McpSetup;

/// By what is written, not by what a name resolves to.
pub(crate) fn is_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// A client for each connection, since proxy and certificates depend on the address. Addresses on
/// this machine are never sent through the proxy.
pub(crate) fn client(url: &Url, setup: &McpSetup) -> reqwest::Result<ClientBuilder> {
    // An error only says that a provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder()
        .connect_timeout(setup.connect_timeout)
        .user_agent(concat!("codespar/", env!("CARGO_PKG_VERSION")))
        // A redirect would carry the headers to wherever it points.
        .redirect(reqwest::redirect::Policy::none())
        // A connection with an unread rest of an answer stalls the next request.
        .pool_max_idle_per_host(0)
        .no_gzip()
        .no_proxy();
    if let Some(proxy) = setup.proxy.as_deref().filter(|_| !is_this_machine(url)) {
        builder = builder.proxy(reqwest::Proxy::all(proxy)?);
    }
    if url.scheme() == "http" {
        // Loading the system's certificates is slow, and nobody asks for them.
        builder = builder.tls_certs_only([]);
    }
    Ok(builder)
}
