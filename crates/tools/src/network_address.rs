//! What kind of network an address belongs to.
//!
//! Shared by WebFetch, the proxy of the sandbox and logins at MCP servers. The question is always asked of an address,
//! never of a name: names resolve to what their owner likes, also to `127.0.0.1`. IPv4 addresses
//! inside IPv6 ones (mapped, translated) are judged as the IPv4 address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Whether an address is on the public internet.
pub fn is_public(address: IpAddr) -> bool {
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

/// Global unicast (`2000::/3`) without the ranges in it that lead elsewhere. Everything outside of
/// it (loopback, link-local, unique local, multicast) is not public, so new special ranges there
/// need no line.
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

/// Whether an address is in somebody's own network: private ranges, a carrier's or an overlay's
/// range, unique local addresses. Link-local addresses, where clouds keep their metadata services,
/// are not.
pub fn is_private_network(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            // The shared range holds overlays' addresses, and one cloud's metadata service.
            let is_shared = matches!(address.octets(), [100, 64..=127, ..]);
            address.is_private() || (is_shared && address.octets() != [100, 100, 100, 200])
        }
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(mapped) => is_private_network(IpAddr::V4(mapped)),
            // One cloud's metadata service has a unique local address.
            None => {
                address.is_unique_local() && address.segments()[..5] != [0xfd00, 0xec2, 0, 0, 0]
            }
        },
    }
}

/// Whether an address is this machine's own.
pub fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("10.0.0.1", true)]
    #[case("172.16.0.1", true)]
    #[case("192.168.1.1", true)]
    #[case("100.100.0.1", true)]
    #[case("fd12::1", true)]
    #[case("::ffff:10.0.0.1", true)]
    #[case("169.254.169.254", false)]
    #[case("100.100.100.200", false)]
    #[case("fe80::1", false)]
    #[case("fd00:ec2::254", false)]
    #[case("127.0.0.1", false)]
    #[case("::1", false)]
    #[case("0.0.0.0", false)]
    #[case("1.1.1.1", false)]
    fn private_networks_are_told_from_link_local_and_public_addresses(
        #[case] address: IpAddr,
        #[case] expected: bool,
    ) {
        assert_eq!(is_private_network(address), expected);
    }
}
