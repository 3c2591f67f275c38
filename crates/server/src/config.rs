//! Where a server listens, and what it allows: the rules about addresses, and the limits.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

/// The files of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// PEM, the server's own certificate first.
    pub certificate: PathBuf,
    /// PEM.
    pub key: PathBuf,
}

/// How bytes reach the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// Only programs of this machine can connect.
    Loopback,
    Tls(TlsFiles),
    /// A proxy in front speaks TLS.
    BehindProxy,
}

/// An address that may be listened on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenPlan {
    pub address: SocketAddr,
    pub transport: Transport,
    /// Names by which browsers may reach it, besides addresses and `localhost`.
    pub hosts: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ListenError {
    #[error(
        "{0} can be reached from other machines: give --tls-cert and --tls-key, or --behind-proxy \
         if a proxy in front speaks TLS"
    )]
    NeedsTls(SocketAddr),
    #[error("`{0}` is not a host name; write it without scheme, port and path")]
    NotAHost(String),
}

impl ListenPlan {
    /// Other machines reach a server only with TLS, or through a proxy that the user vouches for.
    pub fn new(
        address: SocketAddr,
        tls: Option<TlsFiles>,
        proxy: ProxyChoice,
        hosts: &[String],
    ) -> Result<Self, ListenError> {
        let is_host = |host: &&String| {
            !host.is_empty()
                && host
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '.')
        };
        if let Some(wrong) = hosts.iter().find(|host| !is_host(host)) {
            return Err(ListenError::NotAHost(wrong.clone()));
        }
        let transport = match (tls, proxy) {
            (Some(files), _) => Transport::Tls(files),
            (None, ProxyChoice::InFront) => Transport::BehindProxy,
            (None, ProxyChoice::None) if address.ip().is_loopback() => Transport::Loopback,
            (None, ProxyChoice::None) => return Err(ListenError::NeedsTls(address)),
        };
        let hosts = hosts.iter().map(|host| host.to_lowercase()).collect();
        Ok(Self {
            address,
            transport,
            hosts,
        })
    }

    /// Whether browsers get the cookie over TLS alone.
    pub fn cookie_scope(&self) -> CookieScope {
        match self.transport {
            Transport::Loopback => CookieScope::Plain,
            Transport::Tls(_) | Transport::BehindProxy => CookieScope::SecureOnly,
        }
    }
}

/// Whether the user vouches for a proxy in front.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyChoice {
    InFront,
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CookieScope {
    Plain,
    SecureOnly,
}

/// What one server takes on. The defaults are for one team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerLimits {
    pub connections: usize,
    /// Live event streams; each holds a connection.
    pub event_streams: usize,
    /// Bytes of a request's body.
    pub body_bytes: usize,
    /// For the head of a request, and between two requests of a connection.
    pub header_time: Duration,
    /// For the body of a request.
    pub body_time: Duration,
    /// A client that takes nothing for so long is disconnected.
    pub stall_time: Duration,
    /// Requests of one token: so many at once, and so many a second.
    pub request_burst: u32,
    pub requests_per_second: u32,
    /// Wrong tokens from one address: so many at once, and so many a minute.
    pub failure_burst: u32,
    pub failures_per_minute: u32,
    /// Between two signs of life on an event stream.
    pub heartbeat: Duration,
    /// How long requests under way may take when the server stops.
    pub drain_time: Duration,
    pub browser_session: Duration,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            connections: 1024,
            event_streams: 512,
            body_bytes: 256 * 1024,
            header_time: Duration::from_secs(15),
            body_time: Duration::from_secs(20),
            stall_time: Duration::from_secs(30),
            request_burst: 200,
            requests_per_second: 50,
            failure_burst: 20,
            failures_per_minute: 20,
            heartbeat: Duration::from_secs(15),
            drain_time: Duration::from_secs(10),
            browser_session: Duration::from_secs(7 * 24 * 3600),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(address: &str, tls: bool, proxy: ProxyChoice) -> Result<Transport, ListenError> {
        let files = TlsFiles {
            certificate: "c".into(),
            key: "k".into(),
        };
        let tls = tls.then_some(files);
        let address = address.parse().unwrap_or_else(|e| panic!("{e}"));
        ListenPlan::new(address, tls, proxy, &[]).map(|plan| plan.transport)
    }

    #[test]
    fn other_machines_need_tls_or_a_proxy() {
        let none = ProxyChoice::None;
        assert_eq!(plan("127.0.0.1:80", false, none), Ok(Transport::Loopback));
        assert_eq!(plan("[::1]:80", false, none), Ok(Transport::Loopback));
        for open in ["0.0.0.0:80", "[::]:80", "192.168.1.5:80"] {
            let refused = plan(open, false, none);
            assert!(matches!(refused, Err(ListenError::NeedsTls(_))), "{open}");
            assert!(matches!(plan(open, true, none), Ok(Transport::Tls(_))));
            let behind = plan(open, false, ProxyChoice::InFront);
            assert_eq!(behind, Ok(Transport::BehindProxy));
        }
    }

    #[test]
    fn hosts_are_names_alone() {
        let address = SocketAddr::from(([127, 0, 0, 1], 80));
        let plan =
            |host: &str| ListenPlan::new(address, None, ProxyChoice::None, &[host.to_owned()]);
        assert_eq!(
            plan("Spar.Example").map(|p| p.hosts),
            Ok(vec!["spar.example".to_owned()])
        );
        for wrong in ["", "https://a", "a:80", "a/b", "*"] {
            assert!(plan(wrong).is_err(), "{wrong}");
        }
    }
}
