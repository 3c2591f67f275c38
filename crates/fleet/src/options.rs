//! How the Temporal server is reached, by the variables that its SDKs and its command line share.

use std::{path::PathBuf, str::FromStr, time::Duration};

use url::Url;

/// After so long without a heartbeat Temporal takes a worker for lost.
const HEARTBEAT_TIMEOUT: Duration = Duration::from_secs(15);
const NAMESPACE: &str = "default";

/// Where the server is, and who we are there.
#[derive(Clone)]
pub struct TemporalOptions {
    pub(crate) target: Url,
    pub(crate) namespace: String,
    pub(crate) api_key: Option<String>,
    pub(crate) tls: Option<TemporalTls>,
    pub(crate) heartbeat_timeout: Duration,
}

/// Certificates, as files in the PEM format. What is absent is the system's own, or not needed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TemporalTls {
    pub(crate) server_ca: Option<PathBuf>,
    pub(crate) client: Option<(PathBuf, PathBuf)>,
    pub(crate) server_name: Option<String>,
}

#[derive(Debug, thiserror::Error)]
#[error("{variable}: {problem}")]
pub struct TemporalOptionsError {
    variable: &'static str,
    problem: String,
}

impl TemporalOptions {
    /// From `TEMPORAL_ADDRESS` and the other variables. Files are read when the server is connected.
    pub fn read<'a>(
        address: &str,
        var: impl Fn(&str) -> Option<&'a str>,
    ) -> Result<Self, TemporalOptionsError> {
        let api_key = var("TEMPORAL_API_KEY").map(str::to_owned);
        let tls = tls(&var)?;
        let uses_tls = match var("TEMPORAL_TLS") {
            Some(text) => yes_or_no("TEMPORAL_TLS", text)?,
            None => tls != TemporalTls::default() || api_key.is_some(),
        };
        let heartbeat_timeout = match var("CODESPAR_TEMPORAL_HEARTBEAT_TIMEOUT") {
            None => HEARTBEAT_TIMEOUT,
            Some(text) => seconds("CODESPAR_TEMPORAL_HEARTBEAT_TIMEOUT", text)?,
        };
        Ok(Self {
            target: target(address, uses_tls)?,
            namespace: var("TEMPORAL_NAMESPACE").unwrap_or(NAMESPACE).to_owned(),
            api_key,
            tls: uses_tls.then_some(tls),
            heartbeat_timeout,
        })
    }

    /// Without secrets, for messages.
    pub fn describe(&self) -> String {
        format!("{} (namespace {})", self.target, self.namespace)
    }
}

/// `host:port`, or a URL.
fn target(address: &str, uses_tls: bool) -> Result<Url, TemporalOptionsError> {
    let refused = |problem: String| TemporalOptionsError {
        variable: "TEMPORAL_ADDRESS",
        problem,
    };
    let scheme = if uses_tls { "https" } else { "http" };
    let text = match address.contains("://") {
        true => address.to_owned(),
        false => format!("{scheme}://{address}"),
    };
    let url = Url::parse(&text)
        .map_err(|error| refused(format!("`{address}` is not host:port or a URL: {error}")))?;
    match url.scheme() {
        "http" | "https" if url.has_host() => Ok(url),
        other => Err(refused(format!(
            "`{address}` has the scheme `{other}`; give host:port, http:// or https://"
        ))),
    }
}

fn tls<'a>(var: &impl Fn(&str) -> Option<&'a str>) -> Result<TemporalTls, TemporalOptionsError> {
    let path = |name: &str| var(name).map(PathBuf::from);
    let client = match (
        path("TEMPORAL_TLS_CLIENT_CERT_PATH"),
        path("TEMPORAL_TLS_CLIENT_KEY_PATH"),
    ) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (None, None) => None,
        _ => {
            return Err(TemporalOptionsError {
                variable: "TEMPORAL_TLS_CLIENT_CERT_PATH",
                problem:
                    "a certificate needs its key in TEMPORAL_TLS_CLIENT_KEY_PATH, and the key \
                          its certificate"
                        .to_owned(),
            });
        }
    };
    Ok(TemporalTls {
        server_ca: path("TEMPORAL_TLS_SERVER_CA_CERT_PATH"),
        client,
        server_name: var("TEMPORAL_TLS_SERVER_NAME").map(str::to_owned),
    })
}

fn yes_or_no(variable: &'static str, text: &str) -> Result<bool, TemporalOptionsError> {
    bool::from_str(&text.to_ascii_lowercase()).map_err(|_| TemporalOptionsError {
        variable,
        problem: format!("`{text}` is neither true nor false"),
    })
}

fn seconds(variable: &'static str, text: &str) -> Result<Duration, TemporalOptionsError> {
    match text.parse() {
        Ok(seconds @ 3..=3_600) => Ok(Duration::from_secs(seconds)),
        _ => Err(TemporalOptionsError {
            variable,
            problem: format!("`{text}` is not a number of seconds from 3 to 3600"),
        }),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "these are tests")]
mod tests {
    use super::*;

    fn read(
        address: &str,
        vars: &[(&str, &'static str)],
    ) -> Result<TemporalOptions, TemporalOptionsError> {
        TemporalOptions::read(address, |name| {
            let found = vars.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| *value)
        })
    }

    #[test]
    fn an_address_is_enough() {
        let options = read("temporal:7233", &[]).unwrap();
        assert_eq!(
            options.describe(),
            "http://temporal:7233/ (namespace default)"
        );
        assert_eq!(options.heartbeat_timeout, Duration::from_secs(15));
        assert!(options.tls.is_none());
    }

    #[test]
    fn a_key_or_a_certificate_means_tls() {
        let key = read("cloud:7233", &[("TEMPORAL_API_KEY", "secret")]).unwrap();
        assert_eq!(key.target.scheme(), "https");
        assert!(!key.describe().contains("secret"));
        let certificates = [
            ("TEMPORAL_TLS_CLIENT_CERT_PATH", "/c.pem"),
            ("TEMPORAL_TLS_CLIENT_KEY_PATH", "/k.pem"),
            ("TEMPORAL_TLS_SERVER_NAME", "inner"),
            ("TEMPORAL_NAMESPACE", "agents"),
        ];
        let mutual = read("cloud:7233", &certificates).unwrap();
        let tls = mutual.tls.unwrap();
        assert_eq!(tls.client, Some(("/c.pem".into(), "/k.pem".into())));
        assert_eq!(tls.server_name.as_deref(), Some("inner"));
        assert_eq!(mutual.namespace, "agents");
        let plain = [("TEMPORAL_API_KEY", "secret"), ("TEMPORAL_TLS", "false")];
        assert!(read("local:7233", &plain).unwrap().tls.is_none());
    }

    #[test]
    fn what_cannot_be_meant_is_refused_by_its_variable() {
        let half = [("TEMPORAL_TLS_CLIENT_CERT_PATH", "/c.pem")];
        let cases = [
            (
                read("ftp://x", &[]),
                "TEMPORAL_ADDRESS: `ftp://x` has the scheme",
            ),
            (read("a b", &[]), "TEMPORAL_ADDRESS: `a b` is not host:port"),
            (
                read("x:1", &half),
                "TEMPORAL_TLS_CLIENT_CERT_PATH: a certificate needs its key",
            ),
            (
                read("x:1", &[("TEMPORAL_TLS", "maybe")]),
                "neither true nor false",
            ),
            (
                read("x:1", &[("CODESPAR_TEMPORAL_HEARTBEAT_TIMEOUT", "1")]),
                "from 3 to 3600",
            ),
        ];
        for (found, expected) in cases {
            let error = found.err().unwrap().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
