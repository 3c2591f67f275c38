//! Requests to providers: bounded in time and size, to confidential addresses, without redirections.

use codespar_channels::{platform_client, read_at_most};
use reqwest::{Client, RequestBuilder, StatusCode};
use serde::de::DeserializeOwned;
use url::{Host, Url, form_urlencoded};

use super::{SignInFailure, SignInSetupError};

/// Documents, key sets and tokens are small.
const MOST_BYTES: usize = 1024 * 1024;

pub(super) fn client(address: &Url, proxy: Option<&Url>) -> Result<Client, SignInSetupError> {
    platform_client("the sign-in provider", address, proxy)
        .map_err(|error| SignInSetupError::Client(error.to_string()))
}

/// Whether nobody on the way reads or changes what is sent there.
pub(super) fn is_confidential(url: &Url) -> bool {
    let is_here = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    let is_plain = url.username().is_empty() && url.password().is_none();
    is_plain
        && url.host().is_some()
        && (url.scheme() == "https" || url.scheme() == "http" && is_here)
}

/// The JSON of an answer with its status. Errors have no address and no words of the answer, which
/// may have a token in it.
pub(super) async fn json<T: DeserializeOwned>(
    what: &str,
    request: RequestBuilder,
) -> Result<(StatusCode, T), SignInFailure> {
    let request = request.header("accept", "application/json");
    let response = request
        .send()
        .await
        .map_err(|error| SignInFailure::Unreachable(format!("{what}: {}", error.without_url())))?;
    let status = response.status();
    let bytes = read_at_most(response, MOST_BYTES).await;
    let bytes = bytes.map_err(|reason| SignInFailure::Unreachable(format!("{what}: {reason}")))?;
    let parsed = serde_json::from_slice(&bytes);
    let parsed = parsed.map_err(|error| {
        let place = format!("line {}, column {}", error.line(), error.column());
        SignInFailure::Unreachable(format!(
            "{what}: status {status}, unexpected JSON at {place}"
        ))
    })?;
    Ok((status, parsed))
}

/// A body of fields.
pub(super) fn form(request: RequestBuilder, fields: &[(&str, &str)]) -> RequestBuilder {
    let body = form_urlencoded::Serializer::new(String::new())
        .extend_pairs(fields)
        .finish();
    request
        .header("content-type", "application/x-www-form-urlencoded")
        .body(body)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "this is a test")]

    use super::*;

    #[test]
    fn secrets_go_over_tls_or_stay_on_this_machine() {
        let good = [
            "https://id.example.com",
            "https://id.example.com/realms/a",
            "http://127.0.0.1:9/x",
            "http://[::1]:9",
            "http://localhost:9",
        ];
        for address in good {
            assert!(is_confidential(&address.parse().unwrap()), "{address}");
        }
        let bad = [
            "http://id.example.com",
            "http://localhost.evil.example",
            "ftp://localhost",
            "https://user:pass@id.example.com",
            "file:///etc/passwd",
            "data:application/json,{}",
        ];
        for address in bad {
            assert!(!is_confidential(&address.parse().unwrap()), "{address}");
        }
    }
}
