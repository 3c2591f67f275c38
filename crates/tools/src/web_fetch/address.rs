//! Which addresses may be connected to: those of the public internet.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

/// Decides about addresses. The exceptions come from a constructor, never from input.
#[derive(Debug, Clone, Default)]
pub(super) struct Gate {
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

pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, d] = address.octets();
    let special = match (a, b, c) {
        // This network, private, loopback, multicast and what is reserved above it.
        (0 | 10 | 127 | 224.., _, _) => true,
        // Between a carrier and its customers.
        (100, 64..=127, _) => true,
        // Link-local, with the metadata services of clouds.
        (169, 254, _) => true,
        (172, 16..=31, _) | (192, 168, _) => true,
        // Protocol assignments, documentation, the 6to4 relay, benchmarks.
        (192, 0, 0 | 2) | (192, 88, 99) | (198, 18 | 19, _) => true,
        (198, 51, 100) | (203, 0, 113) => true,
        // A cloud's host agent, at an address that looks public.
        (168, 63, 129) => d == 16,
        _ => false,
    };
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    if let Some(mapped) = address.to_ipv4_mapped() {
        return is_public_v4(mapped);
    }
    if let [0x64, 0xff9b, 0, 0, 0, 0, high, low] = segments {
        // Translated on the way: what counts is who gets it.
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        return is_public_v4(Ipv4Addr::new(a, b, c, d));
    }
    let special = match segments {
        // Protocol assignments, Teredo among them; documentation; 6to4.
        [0x2001, 0..=0x01ff, ..] | [0x2001, 0x0db8, ..] | [0x2002, ..] => true,
        [0x3fff, 0..=0x0fff, ..] => true,
        _ => false,
    };
    segments[0] & 0xe000 == 0x2000 && !special
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
