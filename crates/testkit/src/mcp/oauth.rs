//! An authorization server beside the MCP server, at the same address, that checks what it is asked.
//!
//! It logs everybody in without a question: whoever opens the page is sent back with a code. Codes
//! and refresh tokens work once, and the code verifier has to fit. With a fault it is one that a
//! client must refuse.
//!
//! ```text
//! journal    registered | opened SCOPE | issued code | issued refresh | denied WHY
//! ```

use std::sync::atomic::{AtomicU64, Ordering};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use parking_lot::Mutex;
use serde_json::{Value, json};
use url::{Url, form_urlencoded};

use super::host::Host;

/// What is wrong with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OAuthFault {
    /// Nothing.
    None,
    /// Its metadata is that of another issuer.
    Issuer,
    /// The metadata of the server are those of another one.
    Resource,
    /// Codes would go to an address of another network, without encryption.
    Endpoint,
}

/// What it has given out.
#[derive(Default)]
pub(super) struct Issued {
    /// The challenge that goes with the code.
    challenge: Mutex<Option<String>>,
    refresh: Mutex<Option<String>>,
    access: Mutex<Option<String>>,
    count: AtomicU64,
}

/// Status, further header lines, and a body.
pub(super) type Page = (&'static str, String, String);

impl Issued {
    pub(super) fn accepts(&self, authorization: Option<&str>) -> bool {
        let token = self.access.lock();
        let wanted = token.as_ref().map(|token| format!("Bearer {token}"));
        wanted.is_some() && wanted.as_deref() == authorization
    }

    /// Every token that was given out is void from now on; a refresh token still works.
    pub(super) fn revoke(&self) {
        *self.access.lock() = None;
    }
}

/// `None` for a path of the MCP server.
pub(super) fn page(host: &Host, base: &str, target: &str, body: &[u8]) -> Option<Page> {
    let url = Url::parse(base).ok()?.join(target).ok()?;
    let fault = host.setup.oauth?;
    let found = match url.path() {
        "/.well-known/oauth-protected-resource/mcp" => resource(base, fault),
        "/.well-known/oauth-authorization-server" => metadata(base, fault),
        "/register" => {
            host.note("registered");
            json!({ "client_id": "kit-client", "redirect_uris": [] })
        }
        "/authorize" => return Some(authorize(host, &url)),
        "/token" => match token(host, body) {
            Ok(token) => token,
            Err(why) => {
                host.note(&format!("denied {why}"));
                let body = json!({ "error": "invalid_grant" }).to_string();
                return Some(("400 Bad Request", String::new(), body));
            }
        },
        _ => return None,
    };
    Some(("200 OK", String::new(), found.to_string()))
}

fn resource(base: &str, fault: OAuthFault) -> Value {
    let resource = match fault {
        OAuthFault::Resource => "https://other.example/mcp".to_owned(),
        _ => format!("{base}/mcp"),
    };
    json!({ "resource": resource, "authorization_servers": [base], "scopes_supported": ["use"] })
}

fn metadata(base: &str, fault: OAuthFault) -> Value {
    let issuer = match fault {
        OAuthFault::Issuer => "https://other.example",
        _ => base,
    };
    let token = match fault {
        OAuthFault::Endpoint => "http://192.0.2.1/token".to_owned(),
        _ => format!("{base}/token"),
    };
    json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{base}/authorize"),
        "token_endpoint": token,
        "registration_endpoint": format!("{base}/register"),
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
    })
}

fn authorize(host: &Host, url: &Url) -> Page {
    let given = |name: &str| {
        let mut pairs = url.query_pairs();
        let found = pairs.find(|(key, _)| key == name);
        found
            .map(|(_, value)| value.into_owned())
            .unwrap_or_default()
    };
    host.note(&format!("opened {}", given("scope")));
    *host.issued.challenge.lock() = Some(given("code_challenge"));
    let back = Url::parse_with_params(
        &given("redirect_uri"),
        [("code", "kit-code"), ("state", &given("state"))],
    );
    match back {
        Ok(back) => ("302 Found", format!("Location: {back}\r\n"), String::new()),
        Err(_) => ("400 Bad Request", String::new(), String::new()),
    }
}

fn token(host: &Host, body: &[u8]) -> Result<Value, &'static str> {
    let given = |name: &str| {
        let mut pairs = form_urlencoded::parse(body);
        pairs
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.into_owned())
    };
    let issued = &host.issued;
    let kind = match given("grant_type").as_deref() {
        Some("authorization_code") => {
            let verifier = given("code_verifier").ok_or("no verifier")?;
            let digest = ring::digest::digest(&ring::digest::SHA256, verifier.as_bytes());
            let challenge = issued.challenge.lock().take();
            if challenge != Some(URL_SAFE_NO_PAD.encode(digest)) {
                return Err("verifier");
            }
            "code"
        }
        Some("refresh_token") => {
            if issued.refresh.lock().take() != given("refresh_token") {
                return Err("refresh token");
            }
            "refresh"
        }
        _ => return Err("grant"),
    };
    if !given("resource").is_some_and(|resource| resource.ends_with("/mcp")) {
        return Err("resource");
    }
    host.note(&format!("issued {kind}"));
    let number = issued.count.fetch_add(1, Ordering::Relaxed);
    let (access, refresh) = (
        format!("kit-access-{number}"),
        format!("kit-refresh-{number}"),
    );
    *issued.access.lock() = Some(access.clone());
    *issued.refresh.lock() = Some(refresh.clone());
    Ok(json!({
        "access_token": access, "token_type": "Bearer", "expires_in": 3600,
        "refresh_token": refresh, "scope": "use",
    }))
}
