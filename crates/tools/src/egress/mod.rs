//! The network of sandboxed commands: a list of hosts, reached through a proxy in this process.
//!
//! A command runs in a network namespace of its own that has only a loopback device. Before it
//! starts, a listening socket is opened on that device, by what sets up the sandbox or, under
//! bubblewrap, by [`forward_main`], and handed out to us through the unix socket of its `Gateway`;
//! connections made inside are accepted here. So nothing runs inside on our behalf, and there is no
//! other way out.
//!
//! ```text
//! client inside -> gateway -> http  -> gate (list, DNS, address) -> tunnel or one request -> host
//!                          -> socks -> gate                      -> tunnel
//! ```
//!
//! Whatever a command sends is untrusted. A host is decided on by its name as the proxy understands
//! it, in one canonical form, and the proxy resolves it and connects to an address it has checked.
//! TLS is not opened. Each command has its own gateway, so refusals are told with the command that
//! caused them; all end when the command does.

mod allow;
mod blocked;
mod client_hello;
mod forward;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
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

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio::sync::{OnceCell, Semaphore};

pub(crate) use allow::Reach;
pub use allow::{AllowedDomain, AllowedDomains, DomainError};
pub use forward::{FORWARD_COMMAND, forward_main};
#[cfg(target_os = "linux")]
pub(crate) use forward::{bring_loopback_up, hand_out_port};
pub(crate) use gateway::Gateway;
pub(crate) use host::{Destination, HostName};

use gate::{Gate, Resolver, system_resolver};
use packages::{PackageConfig, PackageHosts};

/// Connections of all commands together. Each takes two file descriptors of this process.
const MOST_CONNECTIONS: usize = 256;

/// Which hosts commands may reach, and how: one for a process. Made from the settings; it does
/// nothing until a command is run.
pub struct Egress {
    named: AllowedDomains,
    packages: Option<PackageConfig>,
    /// With the package managers' hosts, found out at the first command.
    found: OnceCell<Found>,
    dir: PathBuf,
    connections: Arc<Semaphore>,
    resolver: Arc<Resolver>,
}

/// What the package managers' configuration adds. It is looked for once in a process, so that
/// changes to it are seen by the next one.
struct Found {
    allowed: Arc<AllowedDomains>,
    packages: PackageHosts,
}

impl Egress {
    /// Lets commands reach `named`. Sockets are made in `dir`, which becomes private to the user;
    /// what a killed process left there is removed.
    pub fn new(named: AllowedDomains, dir: PathBuf) -> Self {
        Self {
            named,
            packages: None,
            found: OnceCell::new(),
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
    pub async fn allowed(&self) -> &AllowedDomains {
        &self.found().await.allowed
    }

    /// Why hosts of package managers that are installed are not among them.
    pub async fn notes(&self) -> &[String] {
        &self.found().await.packages.notes
    }

    async fn found(&self) -> &Found {
        let find = async || {
            let mut allowed = self.named.clone();
            let packages = match &self.packages {
                Some(config) => config.find().await,
                None => PackageHosts::default(),
            };
            allowed.add_configured(packages.hosts.iter().cloned());
            Found {
                allowed: Arc::new(allowed),
                packages,
            }
        };
        self.found.get_or_init(find).await
    }

    /// Tells a command's programs of the proxy. Values that are there already are replaced for the
    /// proxy, and kept for registries.
    pub(crate) async fn add_variables(&self, env: &mut Vec<(OsString, OsString)>, cwd: &Path) {
        let found = self.found().await;
        variables::add(env, &found.allowed);
        variables::add_registries(env, &found.packages.variables, cwd);
    }

    /// A way out for one command. It is closed when the gateway is dropped. The first call looks
    /// for the package managers' hosts, which may take some seconds.
    pub(crate) async fn open(&self) -> io::Result<Gateway> {
        let gate = Arc::new(Gate {
            allowed: Arc::clone(&self.found().await.allowed),
            resolver: Arc::clone(&self.resolver),
            blocked: blocked::BlockedHosts::default(),
        });
        Gateway::open(&self.dir, gate, Arc::clone(&self.connections))
    }
}

#[cfg(test)]
mod tests;
