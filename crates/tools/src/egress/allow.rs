//! The hosts that commands may reach: `["packages.example.com", "*.corp.example",
//! "localhost:4873"]`.
//!
//! Two sources are kept apart, since they are trusted differently: what the user names in the
//! settings, and what package managers are configured to use. Only an entry of the user's that has
//! both a name without a wildcard and a port reaches addresses that are not public. Otherwise a
//! name in DNS that somebody else controls could lead a command to a service in the user's own
//! network.

use std::{fmt, net::IpAddr, str::FromStr};

use serde::Deserialize;

use super::host::{Destination, HostError, HostName, parse_port, split_port};
use crate::network_address::{is_loopback, is_private_network, is_public};

/// Without a port in the pattern: HTTP and HTTPS.
const USUAL_PORTS: [u16; 2] = [80, 443];

/// One entry of `sandbox.allowedDomains`. Its `Display` is the form it is written in.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct AllowedDomain {
    pattern: Pattern,
    /// `None` for [`USUAL_PORTS`].
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    Exact(HostName),
    /// `*.corp.example`: every name below it, not the name itself.
    Below(HostName),
}

/// An entry that is not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DomainError {
    /// An address instead of a name.
    #[error(
        "`{0}` is an IP address; name a host (for a registry on this machine: `localhost:PORT`)"
    )]
    Address(String),
    /// `*`, or a pattern that covers a whole top-level domain. A list of public suffixes is not
    /// consulted: `*.co.example` is accepted.
    #[error("`{0}` covers too much; name a domain, as in `*.corp.example`")]
    TooWide(String),
    /// Anything else.
    #[error(
        "`{0}` is not a domain; write `packages.example.com`, `*.corp.example` or `host:port`, \
         without a scheme or a path"
    )]
    Malformed(String),
}

impl FromStr for AllowedDomain {
    type Err = DomainError;

    fn from_str(text: &str) -> Result<Self, DomainError> {
        let malformed = || DomainError::Malformed(text.to_owned());
        let (host, port) = split_port(text);
        let port = match port {
            Some(port) => Some(parse_port(port).ok_or_else(malformed)?),
            None => None,
        };
        if host == "*" {
            return Err(DomainError::TooWide(text.to_owned()));
        }
        let (name, is_wildcard) = match host.strip_prefix("*.") {
            Some(rest) => (rest, true),
            None => (host, false),
        };
        let name = HostName::parse(name).map_err(|error| match error {
            HostError::Address => DomainError::Address(text.to_owned()),
            HostError::Malformed => malformed(),
        })?;
        if is_wildcard && !name.as_str().contains('.') {
            return Err(DomainError::TooWide(text.to_owned()));
        }
        let pattern = if is_wildcard {
            Pattern::Below(name)
        } else {
            Pattern::Exact(name)
        };
        Ok(Self { pattern, port })
    }
}

impl TryFrom<String> for AllowedDomain {
    type Error = DomainError;

    fn try_from(text: String) -> Result<Self, DomainError> {
        text.parse()
    }
}

impl fmt::Display for AllowedDomain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.pattern {
            Pattern::Exact(name) => write!(f, "{name}")?,
            Pattern::Below(name) => write!(f, "*.{name}")?,
        }
        match self.port {
            Some(port) => write!(f, ":{port}"),
            None => Ok(()),
        }
    }
}

impl AllowedDomain {
    /// One host at one port, as a package manager's configuration names it. One at port 80 or 443
    /// becomes an entry for both.
    pub(crate) fn exact(host: HostName, port: u16) -> Self {
        let port = (!USUAL_PORTS.contains(&port)).then_some(port);
        Self {
            pattern: Pattern::Exact(host),
            port,
        }
    }

    /// For a wildcard, the rest must end with a dot: `evilcorp.example` is not below
    /// `corp.example`.
    fn covers_host(&self, host: &HostName) -> bool {
        match &self.pattern {
            Pattern::Exact(name) => name == host,
            Pattern::Below(name) => host
                .as_str()
                .strip_suffix(name.as_str())
                .is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
        }
    }

    fn covers_port(&self, port: u16) -> bool {
        match self.port {
            Some(own) => own == port,
            None => USUAL_PORTS.contains(&port),
        }
    }

    /// Whether the user has named exactly this, and so may mean a private address.
    fn is_explicit(&self) -> bool {
        matches!(self.pattern, Pattern::Exact(_)) && self.port.is_some()
    }
}

/// All entries together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowedDomains {
    named: Vec<AllowedDomain>,
    configured: Vec<AllowedDomain>,
}

/// What a destination may resolve to. Decided before the name is resolved, and applied to every
/// address it resolves to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The public internet.
    Public,
    /// Somebody's own network as well: the user named host and port.
    Private,
    /// This machine: the user named `localhost` and a port.
    Loopback,
}

impl Reach {
    pub(crate) fn covers(self, address: IpAddr) -> bool {
        match self {
            Self::Public => is_public(address),
            Self::Private => is_public(address) || is_private_network(address),
            Self::Loopback => is_loopback(address),
        }
    }
}

/// Why a destination is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotAllowed {
    Host,
    Port,
}

impl AllowedDomains {
    /// The entries of the user's settings.
    pub fn new(named: Vec<AllowedDomain>) -> Self {
        Self {
            named,
            configured: Vec::new(),
        }
    }

    /// Adds hosts that package managers are configured to use. They are reached on the public
    /// internet only, whatever port they are at.
    pub fn add_configured(&mut self, hosts: impl IntoIterator<Item = AllowedDomain>) {
        for host in hosts {
            if !self.configured.contains(&host) {
                self.configured.push(host);
            }
        }
    }

    /// The error says whether another port would be allowed. `localhost` that is not named with its
    /// port is permitted as a public host, upon which its address is refused.
    pub(crate) fn permit(&self, to: &Destination) -> Result<Reach, NotAllowed> {
        let all = || self.named.iter().chain(&self.configured);
        if !all().any(|entry| entry.covers_host(&to.host)) {
            return Err(NotAllowed::Host);
        }
        if !all().any(|entry| entry.covers_host(&to.host) && entry.covers_port(to.port)) {
            return Err(NotAllowed::Port);
        }
        let is_named = self.named.iter().any(|entry| {
            entry.is_explicit() && entry.covers_host(&to.host) && entry.covers_port(to.port)
        });
        Ok(match (is_named, to.host.is_localhost()) {
            (true, true) => Reach::Loopback,
            (true, false) => Reach::Private,
            (false, _) => Reach::Public,
        })
    }

    /// Whether a server on this machine is among them. Programs must then ask the proxy for it, see
    /// `variables`.
    pub(crate) fn names_localhost(&self) -> bool {
        self.named.iter().any(|entry| match &entry.pattern {
            Pattern::Exact(name) | Pattern::Below(name) => name.is_localhost(),
        })
    }
}

impl fmt::Display for AllowedDomains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.named.iter().chain(&self.configured);
        let all: Vec<String> = all.map(ToString::to_string).collect();
        f.write_str(&all.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn domains(entries: &[&str]) -> AllowedDomains {
        AllowedDomains::new(entries.iter().map(|entry| entry.parse().unwrap()).collect())
    }

    fn permit(entries: &[&str], host: &str, port: u16) -> Result<Reach, NotAllowed> {
        let host = HostName::parse(host).unwrap();
        domains(entries).permit(&Destination { host, port })
    }

    #[rstest]
    #[case("packages.example.com", 443, Ok(Reach::Public))]
    #[case("PACKAGES.example.com.", 80, Ok(Reach::Public))]
    #[case("packages.example.com", 22, Err(NotAllowed::Port))]
    #[case("a.packages.example.com", 443, Err(NotAllowed::Host))]
    #[case("example.com", 443, Err(NotAllowed::Host))]
    #[case("a.corp.example", 443, Ok(Reach::Public))]
    #[case("a.b.corp.example", 443, Ok(Reach::Public))]
    #[case("corp.example", 443, Err(NotAllowed::Host))]
    #[case("evilcorp.example", 443, Err(NotAllowed::Host))]
    #[case("corp.example.evil.example", 443, Err(NotAllowed::Host))]
    #[case("mirror.example", 8443, Ok(Reach::Private))]
    #[case("mirror.example", 443, Err(NotAllowed::Port))]
    #[case("localhost", 4873, Ok(Reach::Loopback))]
    #[case("localhost", 80, Err(NotAllowed::Port))]
    fn entries_cover_what_they_name_and_nothing_else(
        #[case] host: &str,
        #[case] port: u16,
        #[case] expected: Result<Reach, NotAllowed>,
    ) {
        let entries = [
            "packages.example.com",
            "*.corp.example",
            "mirror.example:8443",
            "localhost:4873",
        ];
        assert_eq!(permit(&entries, host, port), expected);
    }

    #[test]
    fn a_wildcard_with_a_port_does_not_open_private_networks() {
        assert_eq!(
            permit(&["*.corp.example:8080"], "a.corp.example", 8080),
            Ok(Reach::Public)
        );
    }

    #[test]
    fn a_configured_package_host_does_not_open_private_networks() {
        let mut allowed = AllowedDomains::default();
        let host = HostName::parse("localhost").unwrap();
        allowed.add_configured([AllowedDomain::exact(host.clone(), 4873)]);
        assert_eq!(
            allowed.permit(&Destination { host, port: 4873 }),
            Ok(Reach::Public)
        );
    }

    #[rstest]
    #[case(Reach::Public, "1.1.1.1", true)]
    #[case(Reach::Public, "10.0.0.1", false)]
    #[case(Reach::Public, "127.0.0.1", false)]
    #[case(Reach::Private, "10.0.0.1", true)]
    #[case(Reach::Private, "127.0.0.1", false)]
    #[case(Reach::Private, "169.254.169.254", false)]
    #[case(Reach::Loopback, "127.0.0.1", true)]
    #[case(Reach::Loopback, "::1", true)]
    #[case(Reach::Loopback, "10.0.0.1", false)]
    fn how_far_an_entry_reaches(
        #[case] reach: Reach,
        #[case] address: IpAddr,
        #[case] expected: bool,
    ) {
        assert_eq!(reach.covers(address), expected);
    }

    #[rstest]
    #[case("*", DomainError::TooWide("*".to_owned()))]
    #[case("*.com", DomainError::TooWide("*.com".to_owned()))]
    #[case("127.0.0.1:4873", DomainError::Address("127.0.0.1:4873".to_owned()))]
    #[case("[::1]:80", DomainError::Address("[::1]:80".to_owned()))]
    #[case("https://a.example", DomainError::Malformed("https://a.example".to_owned()))]
    #[case("a.example/x", DomainError::Malformed("a.example/x".to_owned()))]
    #[case("a.*.example", DomainError::Malformed("a.*.example".to_owned()))]
    #[case("a.example:0", DomainError::Malformed("a.example:0".to_owned()))]
    #[case("a.example:70000", DomainError::Malformed("a.example:70000".to_owned()))]
    #[case("", DomainError::Malformed(String::new()))]
    fn entries_that_are_no_domain_are_refused(#[case] text: &str, #[case] error: DomainError) {
        assert_eq!(text.parse::<AllowedDomain>(), Err(error));
    }
}
