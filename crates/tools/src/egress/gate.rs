//! From a host that a client names to a connection: allowed, resolved and checked here.

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

/// How long one address may take to answer.
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// Finds the addresses of a host.
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

/// Decides for one command, and notes what it refused.
pub(super) struct Gate {
    pub(super) allowed: Arc<AllowedDomains>,
    pub(super) resolver: Arc<Resolver>,
    pub(super) blocked: BlockedHosts,
}

/// No connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error("blocked: {0}. Commands reach only the hosts of sandbox.allowedDomains.")]
    Blocked(BlockedHost),
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

    /// Whether a name found in TLS is the one the tunnel was made for; notes it if not.
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
