//! One login: from a server's refusal to a token in the store.
//!
//! ```text
//! begin       where the server's metadata leads; a client is registered    -> the page to open
//! redirected  the browser comes back, or the user pastes where it went     -> Redirect
//! finish      the code and the verifier for a token, which is stored
//! ```
//!
//! The code verifier (PKCE) and the state never leave this value, so a redirect that another login
//! caused, or nobody, is of no use.

use std::{
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use futures::future::BoxFuture;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, OAuthClientConfig, StoredCredentials,
};
use url::Url;

use super::{OAuthSettings, ServerTokens, loopback::Loopback, store::KeptTokens, wire::LoginHttp};
use crate::{
    address,
    config::{Endpoint, ServerConfig},
    connection::McpSetup,
};

/// What we are called where we are registered.
const CLIENT: &str = "CodeSpar";
/// Characters of what others say in an error.
const MAX_SAID: usize = 300;

/// Why a login failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// A program has no login.
    #[error("only a server with an address (`url`) has a login")]
    Program,
    /// Its entry has a token already.
    #[error("its entry has an `Authorization` header; remove it to log in instead")]
    Header,
    /// There is no place for tokens.
    #[error("there is no directory for tokens")]
    NoStore,
    /// Metadata names an address that a token must not be sent to.
    #[error("the authorization server names `{endpoint}`, which is not HTTPS; not logged in")]
    Endpoint { endpoint: String },
    /// What the user pasted, or where a browser went, is not the answer to this login.
    #[error(
        "that is not the address that this login ends at; paste the whole address from the \
         browser, beginning with http://127.0.0.1"
    )]
    NotOurs,
    /// The user, or the authorization server, said no.
    #[error("the authorization server refused: {0}")]
    Refused(String),
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

/// In one line and not too long: it may be the text of whoever answered.
fn failed(error: &dyn std::fmt::Display) -> LoginError {
    LoginError::Failed(short(&error.to_string()))
}

fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_SAID) {
        None => line,
        Some((at, _)) => format!("{}…", &line[..at]),
    }
}

/// Where the browser went.
#[derive(Debug, Clone)]
pub struct Redirect(Url);

/// A login that waits for the user.
pub struct Login {
    manager: AuthorizationManager,
    page: Url,
    state: String,
    loopback: Loopback,
    tokens: ServerTokens,
    metadata: AuthorizationMetadata,
    client: OAuthClientConfig,
    challenge: Option<String>,
}

impl Login {
    /// Finds out where to log in, and registers there if necessary. `challenge` is the header that
    /// the server refused a request with.
    pub(crate) fn begin<'a>(
        config: &'a ServerConfig,
        setup: &'a Arc<McpSetup>,
        challenge: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Self, LoginError>> {
        Box::pin(async move {
            let (url, settings) = endpoint(config)?;
            let store = setup.tokens.as_ref().ok_or(LoginError::NoStore)?;
            let tokens = store.of(url);
            let kept = tokens.read().unwrap_or_default();
            let challenge = challenge.or(kept.challenge.as_deref());
            let port = settings.callback_port.unwrap_or_default();
            let loopback = Loopback::open(port).await.map_err(|error| failed(&error))?;
            let wire = Arc::new(LoginHttp::new(url, setup.clone()).await);
            let begun = prepare(url, wire, challenge).await;
            let (mut manager, metadata) = begun.map_err(|error| failed(&error))?;
            endpoints(&metadata, url)?;
            let scopes = scopes(&manager, &metadata, settings, &kept).await;
            let redirect = loopback.redirect.as_str();
            let client = client(&mut manager, &metadata, settings, redirect, &scopes).await;
            let client = client.map_err(|error| failed(&error))?;
            let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
            let page = manager.get_authorization_url(&scopes).await;
            let page = page.map_err(|error| failed(&error))?;
            let page: Url = page.parse().map_err(|error| failed(&error))?;
            let state = parameter(&page, "state").unwrap_or_default();
            Ok(Self {
                manager,
                page,
                state,
                loopback,
                tokens,
                metadata,
                client,
                challenge: challenge.map(str::to_owned),
            })
        })
    }

    /// Whether a call was refused since the last login.
    pub(crate) fn is_pending(config: &ServerConfig, setup: &McpSetup) -> bool {
        let (Ok((url, _)), Some(store)) = (endpoint(config), &setup.tokens) else {
            return false;
        };
        store
            .of(url)
            .read()
            .is_some_and(|kept| !kept.wanted.is_empty())
    }

    /// The access token that is kept for a server.
    pub(crate) fn token(config: &ServerConfig, setup: &McpSetup) -> Option<String> {
        let (url, _) = endpoint(config).ok()?;
        setup.tokens.as_ref()?.of(url).read()?.access_token()
    }

    /// Forgets the tokens of a server; says whether there were any.
    pub(crate) fn forget(config: &ServerConfig, setup: &McpSetup) -> Result<bool, LoginError> {
        let (url, _) = endpoint(config)?;
        let store = setup.tokens.as_ref().ok_or(LoginError::NoStore)?;
        store.forget(url).map_err(|error| failed(&error))
    }

    /// What the user has to open. HTTPS, or on this machine.
    pub fn page(&self) -> &Url {
        &self.page
    }

    /// Waits until a browser of this machine comes back with an answer to this login.
    pub fn redirected(&self) -> BoxFuture<'_, Result<Redirect, LoginError>> {
        Box::pin(async move {
            let came = self.loopback.redirected(&self.state).await;
            came.map(Redirect).map_err(|error| failed(&error))
        })
    }

    /// Takes the address that a browser elsewhere was sent to.
    pub fn pasted(&self, text: &str) -> Result<Redirect, LoginError> {
        let url: Url = text.trim().parse().map_err(|_| LoginError::NotOurs)?;
        match parameter(&url, "state") {
            Some(state) if state == self.state => Ok(Redirect(url)),
            _ => Err(LoginError::NotOurs),
        }
    }

    /// Gets the token and keeps it.
    pub fn finish(self, redirect: &Redirect) -> BoxFuture<'_, Result<(), LoginError>> {
        Box::pin(async move {
            let url = &redirect.0;
            if let Some(error) = parameter(url, "error") {
                let why = parameter(url, "error_description").unwrap_or_default();
                return Err(LoginError::Refused(short(&format!("{error} {why}"))));
            }
            let code = parameter(url, "code").ok_or(LoginError::NotOurs)?;
            let state = parameter(url, "state").ok_or(LoginError::NotOurs)?;
            let issuer = parameter(url, "iss");
            let token = self
                .manager
                .exchange_code_for_token_with_issuer(&code, &state, issuer.as_deref())
                .await
                .map_err(|error| failed(&error))?;
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            let granted = self.manager.get_current_scopes().await;
            let credentials = StoredCredentials::new(
                self.client.client_id.clone(),
                Some(token),
                granted,
                now.ok().map(|since| since.as_secs()),
            );
            let credentials = credentials.with_issuer(self.metadata.issuer.clone());
            let kept = self.tokens.change(|kept| {
                kept.client_secret = self.client.client_secret.clone();
                kept.token_endpoint = Some(self.metadata.token_endpoint.clone());
                kept.challenge = self.challenge.clone();
                kept.wanted.clear();
                kept.credentials = Some(credentials);
            });
            kept.map_err(|error| failed(&error))
        })
    }
}

/// The address of a server that a user can log in to.
fn endpoint(config: &ServerConfig) -> Result<(&Url, &OAuthSettings), LoginError> {
    match &config.endpoint {
        Endpoint::Http { url, oauth, .. } if config.may_log_in() => Ok((url, oauth)),
        Endpoint::Http { .. } => Err(LoginError::Header),
        Endpoint::Program { .. } | Endpoint::Client => Err(LoginError::Program),
    }
}

async fn prepare(
    url: &Url,
    wire: Arc<LoginHttp>,
    challenge: Option<&str>,
) -> Result<(AuthorizationManager, AuthorizationMetadata), AuthError> {
    let mut manager = AuthorizationManager::new_with_oauth_http_client(url.clone(), wire).await?;
    let found = manager.resolve_metadata_from_challenge(challenge).await?;
    manager.set_metadata(found.metadata.clone());
    Ok((manager, found.metadata))
}

/// The configured scopes, or those that the server named when it refused; more of them where a call
/// was refused for it. As few as the server says are needed.
async fn scopes(
    manager: &AuthorizationManager,
    metadata: &AuthorizationMetadata,
    settings: &OAuthSettings,
    kept: &KeptTokens,
) -> Vec<String> {
    let mut scopes = settings.scopes.clone();
    if !kept.wanted.is_empty() {
        scopes.extend(kept.granted());
        scopes.extend(kept.wanted.iter().cloned());
    } else if scopes.is_empty() {
        return manager.select_initial_scopes(&[]).await;
    }
    let supported = metadata.scopes_supported.iter().flatten();
    let offline = supported.filter(|scope| *scope == "offline_access");
    scopes.extend(offline.cloned());
    let mut seen = std::collections::HashSet::new();
    scopes.retain(|scope| seen.insert(scope.clone()));
    scopes
}

/// The configured client, the one that a document describes, or one that is registered now.
async fn client(
    manager: &mut AuthorizationManager,
    metadata: &AuthorizationMetadata,
    settings: &OAuthSettings,
    redirect: &str,
    scopes: &[String],
) -> Result<OAuthClientConfig, AuthError> {
    let takes_documents = metadata
        .additional_fields
        .get("client_id_metadata_document_supported")
        .is_some_and(|value| value == true);
    let document = settings.client_metadata_url.as_ref();
    let known = settings
        .client_id
        .as_ref()
        .or(document.filter(|_| takes_documents));
    let Some(id) = known else {
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        return manager.register_client(CLIENT, redirect, &scopes).await;
    };
    let mut config = OAuthClientConfig::new(id, redirect);
    if let (Some(_), Some(secret)) = (&settings.client_id, &settings.client_secret) {
        config = config.with_client_secret(secret);
    }
    manager.configure_client(config.clone())?;
    Ok(config)
}

/// Codes, tokens and secrets of clients go to these, and a browser is sent to the first: HTTPS, or
/// this machine if the server is there.
pub(super) fn endpoints(metadata: &AuthorizationMetadata, server: &Url) -> Result<(), LoginError> {
    let named = [
        Some(&metadata.authorization_endpoint),
        Some(&metadata.token_endpoint),
        metadata.registration_endpoint.as_ref(),
    ];
    for endpoint in named.into_iter().flatten() {
        let is_safe = Url::parse(endpoint).is_ok_and(|url| match url.scheme() {
            "https" => true,
            "http" => address::is_this_machine(&url) && address::is_this_machine(server),
            _ => false,
        });
        if !is_safe {
            return Err(LoginError::Endpoint {
                endpoint: short(endpoint),
            });
        }
    }
    Ok(())
}

fn parameter(url: &Url, name: &str) -> Option<String> {
    let mut pairs = url.query_pairs();
    let found = pairs.find(|(key, _)| key == name);
    found.map(|(_, value)| value.into_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn codes_and_tokens_do_not_go_over_plain_http_or_to_another_kind_of_address() {
        let server: Url = "https://mcp.example/mcp".parse().unwrap();
        let here: Url = "http://127.0.0.1:8000/mcp".parse().unwrap();
        let metadata = |page: &str, token: &str| -> AuthorizationMetadata {
            let value = json!({"authorization_endpoint": page, "token_endpoint": token});
            serde_json::from_value(value).unwrap()
        };
        let good = metadata("https://as.example/a", "https://as.example/t");
        assert_eq!(endpoints(&good, &server), Ok(()));
        for (page, token) in [
            ("http://as.example/a", "https://as.example/t"),
            ("https://as.example/a", "http://as.example/t"),
            ("https://as.example/a", "http://127.0.0.1/t"),
            ("file:///etc/passwd", "https://as.example/t"),
            ("--help", "https://as.example/t"),
        ] {
            assert!(
                endpoints(&metadata(page, token), &server).is_err(),
                "{page} {token}"
            );
        }
        let local = metadata("http://localhost:1/a", "http://localhost:1/t");
        assert_eq!(endpoints(&local, &here), Ok(()));
    }
}
