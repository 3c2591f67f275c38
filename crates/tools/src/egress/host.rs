//! Names of hosts as clients and settings write them, in one form that can be compared.
//!
//! A name has many spellings (case, a trailing dot, Unicode, percent signs) and so have addresses.
//! Comparing texts would let one of them past the list, so everything is parsed into [`HostName`]
//! first and only that is compared, resolved and shown.

use std::fmt;

use url::Host;

/// The longest name DNS has.
const LONGEST: usize = 253;

/// A host's name: lower case, ASCII, without a trailing dot, and not an address. Parsing its text
/// again gives the same name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct HostName(String);

/// Why a text is not the name of a host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HostError {
    #[error("it is an IP address; only names are allowed")]
    Address,
    #[error("it is not the name of a host")]
    Malformed,
}

impl HostName {
    /// Reads a name. Every spelling of an address (`127.1`, `0x7f.1`, `2130706433`, `[::1]`) is
    /// recognised as one, also with dots behind it.
    pub(crate) fn parse(text: &str) -> Result<Self, HostError> {
        // The parser below decodes percent signs, which no client has a reason to send.
        if text.is_empty() || text.len() > 4 * LONGEST || text.contains('%') {
            return Err(HostError::Malformed);
        }
        let text = text.strip_suffix('.').unwrap_or(text);
        if text.contains(':') || text.starts_with('[') {
            let inner = text.trim_start_matches('[').trim_end_matches(']');
            return match inner.parse::<std::net::Ipv6Addr>() {
                Ok(_) => Err(HostError::Address),
                Err(_) => Err(HostError::Malformed),
            };
        }
        match Host::parse(text) {
            Ok(Host::Domain(name)) => Self::checked(name),
            Ok(Host::Ipv4(_) | Host::Ipv6(_)) => Err(HostError::Address),
            // A name that ends in a number is an address that went wrong.
            Err(_) => Err(HostError::Malformed),
        }
    }

    /// The URL parser accepts characters that DNS names do not have.
    fn checked(name: String) -> Result<Self, HostError> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let is_whole = |label: &str| !label.is_empty() && label.len() <= 63;
        let holds =
            name.len() <= LONGEST && name.bytes().all(is_plain) && name.split('.').all(is_whole);
        if holds {
            Ok(Self(name))
        } else {
            Err(HostError::Malformed)
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// `localhost` and names below it, which mean this machine whatever DNS says.
    pub(crate) fn is_localhost(&self) -> bool {
        self.0 == "localhost" || self.0.ends_with(".localhost")
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `host:port`, where a client wants to go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Destination {
    pub(crate) host: HostName,
    pub(crate) port: u16,
}

/// Splits `host:port`; the port is digits only. Brackets around an address keep its colons. A text
/// with several colons and no brackets is left whole.
pub(crate) fn split_port(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(':') {
        Some((host, port)) if !host.contains(':') || host.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    }
}

/// A port: digits only, not zero.
pub(crate) fn parse_port(text: &str) -> Option<u16> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits
        .then(|| text.parse().ok())
        .flatten()
        .filter(|port| *port != 0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("packages.example.com", "packages.example.com")]
    #[case("Packages.EXAMPLE.com.", "packages.example.com")]
    #[case("bücher.example", "xn--bcher-kva.example")]
    #[case("BÜCHER.example", "xn--bcher-kva.example")]
    #[case("pack\u{ad}ages.example", "packages.example")]
    #[case("packages。example", "packages.example")]
    #[case("a_b.example", "a_b.example")]
    #[case("localhost", "localhost")]
    fn names_have_one_form(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(HostName::parse(text).unwrap().as_str(), expected);
    }

    #[rstest]
    #[case("127.0.0.1")]
    #[case("127.0.0.1.")]
    #[case("127.1")]
    #[case("2130706433")]
    #[case("0x7f000001")]
    #[case("0177.0.0.1")]
    #[case("0x7f.1")]
    #[case("0")]
    #[case("1.1.1.1")]
    #[case("１２７.0.0.1")]
    #[case("::1")]
    #[case("[::1]")]
    #[case("[::ffff:127.0.0.1]")]
    fn addresses_are_recognised_in_every_spelling(#[case] text: &str) {
        assert_eq!(HostName::parse(text), Err(HostError::Address));
    }

    #[rstest]
    #[case("")]
    #[case(".")]
    #[case("a..b")]
    #[case("a.example..")]
    #[case("a b")]
    #[case("a\r\nb")]
    #[case("a/b")]
    #[case("user@a.example")]
    #[case("a%2eexample")]
    #[case("999.1.1.1.1")]
    #[case("[x]")]
    #[case("*.example")]
    fn what_is_no_name_is_refused(#[case] text: &str) {
        assert_eq!(HostName::parse(text), Err(HostError::Malformed));
    }

    proptest! {
        #[test]
        fn a_parsed_name_is_plain_and_parses_to_itself(text in "\\PC{0,40}") {
            if let Ok(name) = HostName::parse(&text) {
                prop_assert_eq!(HostName::parse(name.as_str()), Ok(name.clone()));
                prop_assert!(name.as_str().parse::<std::net::IpAddr>().is_err());
            }
        }
    }
}
