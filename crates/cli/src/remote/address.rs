//! The address of a server: a token is sent there, so it must not be readable on the way.

use std::{fmt, str::FromStr};

use url::{Host, Url};

/// `https`, or `http` on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerAddress(Url);

impl ServerAddress {
    /// The address of a path of the API.
    pub(crate) fn join(&self, path: &str) -> String {
        format!("{self}{path}")
    }

    pub(crate) fn url(&self) -> &Url {
        &self.0
    }
}

impl FromStr for ServerAddress {
    type Err = String;

    /// A user or password in the address would end up in messages and in the history of a shell, so
    /// it is refused.
    fn from_str(text: &str) -> Result<Self, String> {
        let url = Url::parse(text.trim()).map_err(|error| {
            format!("{error}; the address of a server looks like https://spar.example.com")
        })?;
        let is_plain = url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none();
        if !is_plain {
            return Err("the address of a server has no user, query or fragment".to_owned());
        }
        let is_here = match url.host() {
            Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        };
        match url.scheme() {
            "https" => Ok(Self(url)),
            "http" if is_here => Ok(Self(url)),
            "http" => Err(
                "the token would be sent readable to all on the way: use https (http is for this \
                 machine alone)"
                    .to_owned(),
            ),
            other => Err(format!("{other} is not the scheme of a server; use https")),
        }
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str().trim_end_matches('/'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_sent_over_tls_or_within_this_machine() {
        for good in [
            "https://spar.example.com",
            "https://spar.example.com:8443/spar/",
            "http://127.0.0.1:4180",
            "http://[::1]:4180",
            "http://localhost:4180/",
        ] {
            let address: ServerAddress = good.parse().unwrap_or_else(|e| panic!("{good}: {e}"));
            assert_eq!(
                address.join("/x"),
                format!("{}/x", good.trim_end_matches('/'))
            );
        }
        for bad in [
            "http://spar.example.com",
            "http://192.168.1.5:4180",
            "http://localhost.evil.example",
            "ftp://spar.example.com",
            "https://user:secret@spar.example.com",
            "https://spar.example.com/?token=x",
            "spar.example.com",
            "",
        ] {
            assert!(bad.parse::<ServerAddress>().is_err(), "{bad}");
        }
    }
}
