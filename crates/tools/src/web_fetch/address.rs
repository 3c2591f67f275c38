//! Which addresses may be connected to: those of the public internet.
//!
//! Four checks, each for a way around the one before: of the URL, for addresses written as numbers;
//! of the answers of name resolution, before a connection is made; of the connection as it was
//! made; and of every redirect, by the same three. Proxies from the environment are not used, since
//! they would resolve names themselves.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

use crate::network_address::is_public;

/// Decides about addresses. The exceptions come from a constructor, never from input.
#[derive(Debug, Clone, Default)]
pub(super) struct Gate {
    /// Addresses that count as public: those of test servers.
    allowed: Arc<[SocketAddr]>,
}

/// An address that is not fetched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    #[error("only http and https addresses are fetched, not `{0}:`")]
    Scheme(String),
    #[error("addresses with a user name or password in them are not fetched")]
    UserInfo,
    #[error("the address has no host")]
    NoHost,
    #[error("{host} is at {address}, which is not on the public internet; it is not fetched")]
    NotPublic { host: String, address: IpAddr },
    /// Name resolution succeeded with an empty answer.
    #[error("{0} has no address")]
    Unknown(String),
}

impl Gate {
    pub(super) fn with_allowed(allowed: Vec<SocketAddr>) -> Self {
        Self {
            allowed: allowed.into(),
        }
    }

    /// What can be said without asking for the host's address. A host given as a number is an
    /// address already, in whatever spelling: parsing has made it one.
    pub(super) fn check(&self, url: &Url) -> Result<(), Refusal> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Refusal::Scheme(url.scheme().to_owned()));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refusal::UserInfo);
        }
        let address = match url.host() {
            None => return Err(Refusal::NoHost),
            Some(Host::Domain(_)) => return Ok(()),
            Some(Host::Ipv4(address)) => IpAddr::V4(address),
            Some(Host::Ipv6(address)) => IpAddr::V6(address),
        };
        let port = url.port_or_known_default().unwrap_or(0);
        self.check_connection(url, SocketAddr::new(address, port))
    }

    /// Whether that host may be talked to at that address and port.
    pub(super) fn check_connection(&self, url: &Url, at: SocketAddr) -> Result<(), Refusal> {
        if self.allowed.contains(&at) || is_public(at.ip()) {
            return Ok(());
        }
        Err(Refusal::NotPublic {
            host: url.host_str().unwrap_or_default().to_owned(),
            address: at.ip(),
        })
    }

    /// One address that is not public spoils them all: it is a trick or a mistake.
    fn filter(&self, host: &str, found: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, Refusal> {
        if found.is_empty() {
            return Err(Refusal::Unknown(host.to_owned()));
        }
        let barred = found.iter().map(SocketAddr::ip).find(|address| {
            !is_public(*address) && !self.allowed.iter().any(|at| at.ip() == *address)
        });
        match barred {
            Some(address) => Err(Refusal::NotPublic {
                host: host.to_owned(),
                address,
            }),
            None => Ok(found),
        }
    }
}

/// The addresses given out here are the ones connected to, so a name that answers differently the
/// next time it is asked gains nothing.
impl Resolve for Gate {
    fn resolve(&self, name: Name) -> Resolving {
        let gate = self.clone();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let addresses = gate.filter(name.as_str(), found.collect())?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("http://127.0.0.1/")]
    #[case("http://2130706433/")]
    #[case("http://0x7f.1/")]
    #[case("http://0177.0.0.1/")]
    #[case("http://127.1/")]
    #[case("http://0/")]
    #[case("http://10.1.2.3/")]
    #[case("http://172.31.0.1/")]
    #[case("http://192.168.0.1/")]
    #[case("http://100.64.0.1/")]
    #[case("http://169.254.169.254/latest/meta-data/")]
    #[case("http://168.63.129.16/")]
    #[case("http://224.0.0.1/")]
    #[case("http://255.255.255.255/")]
    #[case("http://198.18.0.1/")]
    #[case("http://[::]/")]
    #[case("http://[::1]/")]
    #[case("http://[::ffff:127.0.0.1]/")]
    #[case("http://[::ffff:a9fe:a9fe]/")]
    #[case("http://[::127.0.0.1]/")]
    #[case("http://[64:ff9b::7f00:1]/")]
    #[case("http://[64:ff9b:1::1]/")]
    #[case("http://[2002:7f00:1::]/")]
    #[case("http://[2001:0:4136:e378::]/")]
    #[case("http://[2001:db8::1]/")]
    #[case("http://[fe80::1]/")]
    #[case("http://[fec0::1]/")]
    #[case("http://[fd00::1]/")]
    #[case("http://[ff02::1]/")]
    fn addresses_off_the_public_internet_are_refused(#[case] url: &str) {
        let refused = Gate::default().check(&Url::parse(url).unwrap());
        assert!(
            matches!(refused, Err(Refusal::NotPublic { .. })),
            "{refused:?}"
        );
    }

    #[rstest]
    #[case("http://1.1.1.1/")]
    #[case("https://172.32.0.1/")]
    #[case("http://[2606:4700::1111]/")]
    #[case("http://[64:ff9b::101:101]/")]
    #[case("https://example.com/")]
    fn public_addresses_pass(#[case] url: &str) {
        assert_eq!(Gate::default().check(&Url::parse(url).unwrap()), Ok(()));
    }

    #[test]
    fn a_name_with_one_private_address_is_refused_whole() {
        let found = vec![
            SocketAddr::from(([1, 1, 1, 1], 0)),
            SocketAddr::from(([10, 0, 0, 1], 0)),
        ];
        assert_eq!(
            Gate::default().filter("rebinds.example", found),
            Err(Refusal::NotPublic {
                host: "rebinds.example".to_owned(),
                address: IpAddr::from([10, 0, 0, 1]),
            })
        );
    }

    #[test]
    fn other_schemes_and_credentials_are_refused() {
        let check = |url: &str| Gate::default().check(&Url::parse(url).unwrap());
        assert_eq!(
            check("file:///etc/passwd"),
            Err(Refusal::Scheme("file".to_owned()))
        );
        assert_eq!(check("http://user@example.com/"), Err(Refusal::UserInfo));
        assert_eq!(check("http://:pass@example.com/"), Err(Refusal::UserInfo));
    }
}
