//! Signing in at a provider: OpenID Connect, or GitHub's OAuth.
//!
//! ```text
//! GET /login/NAME             a new attempt, sealed in a cookie      → the provider's own page
//! GET /login/NAME/callback    the attempt of this browser, once      → code → who it is → session
//!
//! attempt.rs     what binds an answer to the browser that asked: state, nonce, PKCE
//! oidc.rs        discovery, exchange of the code
//! keys.rs        the provider's keys, fetched again when it has changed them
//! id_token.rs    what is believed of an ID token
//! github.rs      GitHub's way
//! person.rs      their role by the settings, and their token
//! ```
//!
//! A provider says who somebody is, and never what they may do: roles are those of the settings.

mod attempt;
mod github;
mod id_token;
mod keys;
mod oidc;
mod person;
mod wire;

use std::fmt;

use codespar_runtime::{SignInSettings, SignedIn};
use secrecy::SecretString;
use url::Url;

pub(crate) use self::{
    attempt::{Attempt, Attempts},
    person::{is_granted, role_of, shown_name, token_for},
};
use self::{github::GitHubSignIn, oidc::OidcSignIn};

const MOST_NAME: usize = 40;

/// Providers at which people sign in, as the user has set them up.
#[derive(Debug, Default)]
pub struct SignInSetup {
    /// Where browsers reach the server; its own address if nothing is set and only this machine can.
    pub public_url: Option<Url>,
    pub providers: Vec<ProviderSetup>,
}

/// Where people can sign in, as the settings name it, and what this server is known by there.
#[derive(Debug)]
pub struct ProviderSetup {
    name: String,
    label: String,
    client_id: String,
    secret: Option<SecretString>,
    address: ProviderAddress,
    /// The way to the provider, where there is no direct one.
    proxy: Option<Url>,
}

/// What a provider speaks, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderAddress {
    /// The issuer, exactly as the provider writes it.
    Oidc(String),
    GitHub {
        server: Url,
        api: Url,
    },
}

/// Why a provider cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignInSetupError {
    #[error("`{0}` is no name for a provider: it has small letters, digits and `-`")]
    Name(String),
    #[error("server.signIn.{0}.clientId is missing")]
    ClientId(String),
    #[error("server.signIn.{0}.clientSecretEnv or clientSecretFile is missing")]
    Secret(String),
    #[error("{0} is no https address (http is for this machine alone)")]
    Address(String),
    #[error(
        "server.publicUrl is no https address without a path (http is for this machine alone): {0}"
    )]
    PublicUrl(String),
    #[error("server.publicUrl is missing: providers send people back there")]
    NoPublicUrl,
    #[error(
        "server.signIn.{0}.everyone can be `read` alone: anybody may have an account at a provider"
    )]
    Everyone(String),
    #[error("{0}")]
    Client(String),
}

impl ProviderSetup {
    /// Checks what the settings say of a provider.
    pub fn new(
        name: &str,
        settings: &SignInSettings,
        address: ProviderAddress,
        secret: Option<SecretString>,
        proxy: Option<Url>,
    ) -> Result<Self, SignInSetupError> {
        let is_letter = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let is_name = (1..=MOST_NAME).contains(&name.len()) && name.chars().all(is_letter);
        if !is_name {
            return Err(SignInSetupError::Name(name.to_owned()));
        }
        if settings.client_id.trim().is_empty() {
            return Err(SignInSetupError::ClientId(name.to_owned()));
        }
        if settings
            .everyone
            .is_some_and(|role| role != codespar_protocol::AccessRole::Read)
        {
            return Err(SignInSetupError::Everyone(name.to_owned()));
        }
        match &address {
            ProviderAddress::Oidc(issuer) => {
                let url = Url::parse(issuer);
                let is_issuer = |url: &Url| {
                    wire::is_confidential(url) && url.query().is_none() && url.fragment().is_none()
                };
                if !url.is_ok_and(|url| is_issuer(&url)) {
                    return Err(SignInSetupError::Address(issuer.clone()));
                }
            }
            ProviderAddress::GitHub { server, api } => {
                let mut both = [server, api].into_iter();
                if let Some(wrong) = both.find(|url| !wire::is_confidential(url)) {
                    return Err(SignInSetupError::Address(wrong.to_string()));
                }
                // GitHub gives no token without one.
                if secret.is_none() {
                    return Err(SignInSetupError::Secret(name.to_owned()));
                }
            }
        }
        let label = settings.label.clone().unwrap_or_else(|| match address {
            ProviderAddress::GitHub { .. } => "GitHub".to_owned(),
            ProviderAddress::Oidc(_) => name.to_owned(),
        });
        Ok(Self {
            name: name.to_owned(),
            label,
            client_id: settings.client_id.trim().to_owned(),
            secret,
            address,
            proxy,
        })
    }
}

/// The application as the provider knows it.
struct ClientAccount {
    id: String,
    secret: Option<SecretString>,
    /// Where the provider sends people back to.
    redirect: Url,
}

/// The providers of a running server.
pub(crate) struct Providers {
    base: Url,
    all: Vec<SignInProvider>,
    pub(crate) attempts: Attempts,
}

/// A provider at which people can sign in.
pub(crate) struct SignInProvider {
    pub(crate) name: String,
    pub(crate) label: String,
    protocol: Protocol,
}

enum Protocol {
    Oidc(Box<OidcSignIn>),
    GitHub(Box<GitHubSignIn>),
}

impl Providers {
    /// `own` is the address of the server itself, if only this machine reaches it.
    pub(crate) fn new(setup: SignInSetup, own: Option<Url>) -> Result<Self, SignInSetupError> {
        let attempts = Attempts::new().map_err(|error| SignInSetupError::Client(error.to_string()));
        let given = setup.public_url;
        if let Some(url) = given.as_ref().filter(|url| !is_base(url)) {
            return Err(SignInSetupError::PublicUrl(url.to_string()));
        }
        let base = match (given.or(own), setup.providers.is_empty()) {
            (Some(base), _) => base,
            (None, false) => return Err(SignInSetupError::NoPublicUrl),
            (None, true) => nowhere()?,
        };
        let make = |one: ProviderSetup| SignInProvider::new(one, &base);
        let all: Result<Vec<_>, _> = setup.providers.into_iter().map(make).collect();
        Ok(Self {
            all: all?,
            base,
            attempts: attempts?,
        })
    }

    pub(crate) fn all(&self) -> &[SignInProvider] {
        &self.all
    }

    pub(crate) fn named(&self, name: &str) -> Option<&SignInProvider> {
        self.all.iter().find(|one| one.name == name)
    }

    /// Where signing in at a provider begins. Under the public name of the server: the cookie of an
    /// attempt must be there when the provider sends the browser back.
    pub(crate) fn start_address(&self, provider: &SignInProvider, next: &str) -> String {
        let mut url = self.base.clone();
        url.set_path(&format!("/login/{}", provider.name));
        if next != "/" {
            url.query_pairs_mut().append_pair("next", next);
        }
        url.to_string()
    }
}

impl Providers {
    /// Where somebody links a chat account with theirs at GitHub, if people sign in there.
    pub(crate) fn link_address(&self) -> Option<String> {
        let has_github = self.all.iter().any(SignInProvider::is_github);
        let page = self.base.join("/link").ok().filter(|_| has_github)?;
        Some(page.to_string())
    }
}

/// Only scheme, host and port. Codes come back there, and cookies that browsers keep for TLS.
fn is_base(url: &Url) -> bool {
    let has_more = url.query().is_some() || url.fragment().is_some() || url.path() != "/";
    wire::is_confidential(url) && !has_more
}

/// Stands for an address that nothing leads to.
fn nowhere() -> Result<Url, SignInSetupError> {
    Url::parse("http://localhost").map_err(|error| SignInSetupError::Client(error.to_string()))
}

impl SignInProvider {
    fn new(setup: ProviderSetup, base: &Url) -> Result<Self, SignInSetupError> {
        let mut redirect = base.clone();
        redirect.set_path(&format!("/login/{}/callback", setup.name));
        let account = ClientAccount {
            id: setup.client_id,
            secret: setup.secret,
            redirect,
        };
        let proxy = setup.proxy.as_ref();
        let protocol = match setup.address {
            ProviderAddress::Oidc(issuer) => {
                Protocol::Oidc(OidcSignIn::new(issuer, account, proxy)?.into())
            }
            ProviderAddress::GitHub { server, api } => {
                Protocol::GitHub(GitHubSignIn::new(&server, &api, account, proxy)?.into())
            }
        };
        Ok(Self {
            name: setup.name,
            label: setup.label,
            protocol,
        })
    }

    pub(crate) fn is_github(&self) -> bool {
        matches!(self.protocol, Protocol::GitHub(_))
    }

    /// The page of the provider at which an attempt goes on.
    pub(crate) async fn page(&self, attempt: &Attempt) -> Result<Url, SignInFailure> {
        match &self.protocol {
            Protocol::Oidc(oidc) => oidc.page(attempt).await,
            Protocol::GitHub(github) => Ok(github.page(attempt)),
        }
    }

    /// Who it is, by the code that the provider sent the browser back with.
    pub(crate) async fn who(
        &self,
        attempt: &Attempt,
        code: &str,
        issuer: Option<&str>,
    ) -> Result<SignedIn, SignInFailure> {
        match &self.protocol {
            Protocol::Oidc(oidc) => oidc.who(attempt, code, issuer).await,
            Protocol::GitHub(github) => github.who(attempt, code).await,
        }
    }
}

/// Why somebody is not signed in. What is for the log is not shown: it has words of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SignInFailure {
    /// Not the browser that began, too late, or used before.
    Stale,
    /// The provider says so, by a code of the protocol.
    Declined(String),
    /// The provider cannot be reached or does not answer in the way it should.
    Unreachable(String),
    /// What the provider sent is not believed.
    Unbelieved(String),
    /// Who it is, and that they have no role here.
    NoRole(String),
    /// The token of the person was revoked.
    Revoked(String),
}

impl fmt::Display for SignInFailure {
    /// For the log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stale => f.write_str("the attempt is not of this browser, too old, or used"),
            Self::Declined(code) => write!(f, "the provider declined: {code}"),
            Self::Unreachable(reason) => write!(f, "the provider does not answer: {reason}"),
            Self::Unbelieved(reason) => write!(f, "the answer is not believed: {reason}"),
            Self::NoRole(who) => write!(f, "{who} has no role"),
            Self::Revoked(who) => write!(f, "the token of {who} is revoked"),
        }
    }
}
