//! The HTTP requests of a login: bounded, without redirects, and not to addresses that the server
//! has no business to name.
//!
//! A server on the internet names an authorization server, and we ask that one. If it could name
//! any address it would have us ask the services of this machine, of the network it is in, or the
//! metadata service of a cloud. So requests go to public addresses, and to addresses of the kind
//! that the server itself has: this machine if its address says so, a private network if it is in
//! one. Link-local addresses are never asked.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use codespar_tools::network_address::{is_loopback, is_private_network, is_public};
use futures::StreamExt;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use rmcp::transport::auth::{
    OAuthHttpClient, OAuthHttpClientError, OAuthHttpClientFuture, OAuthHttpRequest,
};
use url::{Host, Url};

use crate::{address, connection::McpSetup};

/// Metadata and tokens are small.
const MAX_BODY: usize = 1 << 20;
const TIMEOUT: Duration = Duration::from_secs(30);

pub(super) struct LoginHttp {
    setup: Arc<McpSetup>,
    reach: Reach,
}

/// Which addresses besides public ones may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reach {
    this_machine: bool,
    private: bool,
}

impl Reach {
    fn allows(self, address: IpAddr) -> bool {
        is_public(address)
            || self.this_machine && is_loopback(address)
            || self.private && is_private_network(address)
    }

    /// The kind of the server's own address. A name that leads to this machine does not count as
    /// this machine: its owner chooses where it leads.
    async fn of(server: &Url) -> Self {
        let mut reach = Self {
            this_machine: address::is_this_machine(server),
            private: false,
        };
        match server.host() {
            Some(Host::Ipv4(address)) => reach.private = is_private_network(address.into()),
            Some(Host::Ipv6(address)) => reach.private = is_private_network(address.into()),
            Some(Host::Domain(name)) => {
                let found = tokio::net::lookup_host((name, 0)).await;
                let mut found = found.into_iter().flatten().peekable();
                reach.private =
                    found.peek().is_some() && found.all(|address| is_private_network(address.ip()));
            }
            None => {}
        }
        reach
    }
}

#[derive(Debug, thiserror::Error)]
enum WireError {
    #[error("{0} is not an address that this server may send us to")]
    Address(String),
    #[error("the answer is larger than {MAX_BODY} bytes")]
    Large,
}

/// Resolves names to what may be asked.
struct Names(Reach);

impl Resolve for Names {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = self.0;
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let allowed: Vec<SocketAddr> = found.filter(|one| reach.allows(one.ip())).collect();
            if allowed.is_empty() {
                return Err(WireError::Address(name.as_str().to_owned()).into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

impl LoginHttp {
    pub(super) async fn new(server: &Url, setup: Arc<McpSetup>) -> Self {
        let reach = Reach::of(server).await;
        Self { setup, reach }
    }

    /// Names are checked when they are resolved.
    fn check(&self, url: &Url) -> Result<(), WireError> {
        let address = match url.host() {
            Some(Host::Ipv4(address)) => IpAddr::from(address),
            Some(Host::Ipv6(address)) => IpAddr::from(address),
            _ => return Ok(()),
        };
        match self.reach.allows(address) {
            true => Ok(()),
            false => Err(WireError::Address(address.to_string())),
        }
    }

    async fn send(
        &self,
        request: OAuthHttpRequest,
    ) -> Result<http::Response<Vec<u8>>, OAuthHttpClientError> {
        let request = reqwest::Request::try_from(request.request)?;
        self.check(request.url())?;
        // Redirects are not followed at all: the library follows those of one origin by itself.
        let client = address::client(request.url(), &self.setup)?
            .timeout(TIMEOUT)
            .dns_resolver(Arc::new(Names(self.reach)))
            .build()?;
        let answer = client.execute(request).await?;
        let mut response = http::Response::builder().status(answer.status());
        for (name, value) in answer.headers() {
            response = response.header(name, value);
        }
        let mut body = Vec::new();
        let mut chunks = answer.bytes_stream();
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk?;
            if body.len() + chunk.len() > MAX_BODY {
                return Err(WireError::Large.into());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(response.body(body)?)
    }
}

impl OAuthHttpClient for LoginHttp {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(self.send(request))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn reach(url: &str) -> Reach {
        Reach::of(&url.parse().unwrap()).await
    }

    #[tokio::test]
    async fn a_server_reaches_no_further_than_where_it_is() {
        let public = reach("https://1.1.1.1/mcp").await;
        let here = reach("http://localhost:1/mcp").await;
        let private = reach("https://10.0.0.1/mcp").await;
        let cases = [
            ("1.1.1.1", true, true, true),
            ("127.0.0.1", false, true, false),
            ("::1", false, true, false),
            ("10.0.0.2", false, false, true),
            ("169.254.169.254", false, false, false),
            ("fd00:ec2::254", false, false, false),
        ];
        for (address, from_public, from_here, from_private) in cases {
            let address: IpAddr = address.parse().unwrap();
            assert_eq!(public.allows(address), from_public, "{address}");
            assert_eq!(here.allows(address), from_here, "{address}");
            assert_eq!(private.allows(address), from_private, "{address}");
        }
    }
}
