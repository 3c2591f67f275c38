//! From a host that a client names to a connection: allowed, resolved and checked here.
//!
//! The one place where a host is allowed or refused, for both protocols. A name goes through the
//! parser (`host`), the list (`allow`), DNS, and the check of every address found; only then is
//! anything connected to. The proxy settings of our own environment are not used.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use futures::future::BoxFuture;
use tokio::{net::TcpStream, time::timeout};

use super::{
    allow::{AllowedDomains, NotAllowed},
    blocked::{BlockedHost, BlockedHosts, Reason},
    host::{Destination, HostName},
};

/// How long asking DNS may take.
const RESOLVE_TIME: Duration = Duration::from_secs(15);

/// How long one address may take to answer. They are tried one after the other.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// Finds the addresses of a host. Tests put their own in place of the system's.
pub(super) type Resolver =
    dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync;

/// The system's own resolver.
pub(super) fn system_resolver() -> Arc<Resolver> {
    Arc::new(|host| {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    })
}

/// Decides for one command, and notes what it refused. Shared by all connections of the command.
pub(super) struct Gate {
    pub(super) allowed: Arc<AllowedDomains>,
    pub(super) resolver: Arc<Resolver>,
    pub(super) blocked: BlockedHosts,
}

/// No connection. The text is the answer that the client gets.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    /// Forbidden, and shown to the user.
    #[error("blocked: {0}. Commands reach only the hosts of sandbox.allowedDomains.")]
    Blocked(BlockedHost),
    /// Allowed, but DNS or the host itself does not answer. Not noted.
    #[error("{0}")]
    Unreachable(String),
}

impl Gate {
    /// Connects to a host if that is allowed. The address that was checked is the one connected to,
    /// so a name that resolves differently the next time gains nothing.
    pub(super) async fn connect(
        &self,
        host: &str,
        port: u16,
    ) -> Result<(TcpStream, Destination), Refusal> {
        let checked = self.check(host, port).await;
        if let Err(Refusal::Blocked(blocked)) = &checked {
            self.blocked.note(blocked.clone());
        }
        let (to, addresses) = checked?;
        let mut problem = format!("{} has no address", to.host);
        for address in addresses {
            let connecting = TcpStream::connect(SocketAddr::new(address, port));
            match timeout(CONNECT_TIME, connecting).await {
                Ok(Ok(stream)) => {
                    // Small messages should not wait for each other; without it they only do.
                    let _ = stream.set_nodelay(true);
                    return Ok((stream, to));
                }
                Ok(Err(error)) => problem = format!("{}:{port}: {error}", to.host),
                Err(_) => problem = format!("{}:{port} does not answer", to.host),
            }
        }
        Err(Refusal::Unreachable(problem))
    }

    /// Nothing is asked of DNS for a host that is not on the list: the question itself could carry
    /// data out.
    async fn check(&self, host: &str, port: u16) -> Result<(Destination, Vec<IpAddr>), Refusal> {
        let host = HostName::parse(host)
            .map_err(|error| Refusal::Blocked(BlockedHost::unnamed(host, &error)))?;
        let to = Destination { host, port };
        let blocked = |reason| Refusal::Blocked(BlockedHost::named(&to, reason));
        let reach = self.allowed.permit(&to).map_err(|not| match not {
            NotAllowed::Host => blocked(Reason::NotAllowed),
            NotAllowed::Port => blocked(Reason::Port(port)),
        })?;
        let unknown = |why: &dyn std::fmt::Display| {
            Refusal::Unreachable(format!("{} cannot be resolved: {why}", to.host))
        };
        let asked = (self.resolver)(to.host.to_string());
        let addresses = match timeout(RESOLVE_TIME, asked).await {
            Ok(found) => found.map_err(|error| unknown(&error))?,
            Err(_) => return Err(unknown(&"DNS does not answer")),
        };
        // One address that is not covered spoils them all: it is a trick or a mistake.
        match addresses.iter().find(|address| !reach.covers(**address)) {
            Some(address) => Err(blocked(Reason::Resolves(*address))),
            None => Ok((to, addresses)),
        }
    }

    /// Whether a name found in TLS is the one the tunnel was made for; notes it if not. The
    /// spelling does not matter, as both are compared in the same form.
    pub(super) fn is_same_host(&self, name: &str, to: &Destination) -> bool {
        let blocked = match HostName::parse(name) {
            Ok(host) if host == to.host => return true,
            Ok(host) => BlockedHost {
                host: host.to_string(),
                reason: Reason::Inside(to.host.clone()),
            },
            Err(error) => BlockedHost::unnamed(name, &error),
        };
        self.blocked.note(blocked);
        false
    }
}
