//! The network of sandboxed commands: a list of hosts, reached through a proxy in this process.
//!
//! A command runs in a network namespace of its own that has only a loopback device. Before it
//! starts, [`forward_main`] opens a listening socket on that device and hands it out to us
//! through the unix socket of its [`Gateway`]; connections made inside are accepted here. So
//! nothing runs inside on our behalf, and there is no other way out.

mod allow;
mod blocked;
mod client_hello;
mod forward;
mod gate;
mod gateway;
mod handover;
mod host;
mod http;
pub mod packages;
mod relay;
mod socket_dir;
mod socks;
mod tunnel;
mod variables;

use std::{io, path::PathBuf, sync::Arc};

use tokio::sync::{OnceCell, Semaphore};

pub use allow::{AllowedDomain, AllowedDomains, DomainError};
pub use forward::{FORWARD_COMMAND, forward_main};
pub(crate) use gateway::Gateway;
pub(crate) use variables::add_variables;

use gate::{Gate, Resolver, system_resolver};
use packages::PackageConfig;

/// Connections of all commands together. Each takes two file descriptors of this process.
const MOST_CONNECTIONS: usize = 256;

/// Which hosts commands may reach, and how: one for a process.
pub struct Egress {
    named: AllowedDomains,
    packages: Option<PackageConfig>,
    /// The list with the package managers' hosts, found out at the first command.
    allowed: OnceCell<Arc<AllowedDomains>>,
    dir: PathBuf,
    connections: Arc<Semaphore>,
    resolver: Arc<Resolver>,
}

impl Egress {
    /// Lets commands reach `named`. Sockets are made in `dir`, which becomes private to the user;
    /// what a killed process left there is removed.
    pub fn new(named: AllowedDomains, dir: PathBuf) -> Self {
        Self {
            named,
            packages: None,
            allowed: OnceCell::new(),
            dir,
            connections: Arc::new(Semaphore::new(MOST_CONNECTIONS)),
            resolver: system_resolver(),
        }
    }

    /// Lets them reach the hosts that package managers are configured to use, too.
    #[must_use]
    pub fn with_packages(mut self, config: PackageConfig) -> Self {
        self.packages = Some(config);
        self
    }

    /// The hosts that can be reached.
    pub async fn allowed(&self) -> &Arc<AllowedDomains> {
        let find = async || {
            let mut allowed = self.named.clone();
            if let Some(config) = &self.packages {
                allowed.add_configured(config.find().await.hosts);
            }
            Arc::new(allowed)
        };
        self.allowed.get_or_init(find).await
    }

    /// A way out for one command. It is closed when the gateway is dropped.
    pub(crate) async fn open(&self) -> io::Result<Gateway> {
        let gate = Arc::new(Gate {
            allowed: Arc::clone(self.allowed().await),
            resolver: Arc::clone(&self.resolver),
            blocked: blocked::BlockedHosts::default(),
        });
        Gateway::open(&self.dir, gate, Arc::clone(&self.connections))
    }
}

#[cfg(test)]
mod tests;
