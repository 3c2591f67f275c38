//! A GitHub App: it signs its own requests, and makes a token for each repository that it is
//! installed on.
//!
//! ```text
//! GET  /repos/O/N/installation                   signed by the key of the app
//! POST /app/installations/ID/access_tokens       for this repository alone
//! GET  /app, /app/hook/deliveries                what `codespar channels check` and the start need
//! POST /app/hook/deliveries/ID/attempts
//! ```
//!
//! A token is kept until five minutes before it ends, or until GitHub refuses it. It is good for
//! one repository: what is done for one cannot reach another that the app is installed on.

mod deliveries;
mod key;

use std::{collections::HashMap, fmt, future::Future, pin::Pin, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use reqwest::Method;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::json;
use url::Url;

pub use deliveries::HookDelivery;
pub(crate) use key::AppKey;

use super::{
    Patience,
    api::{Api, Call},
    credentials::{Credentials, TokenRenewal},
    repository_name, url_below,
};
use crate::ForgeError;

/// A token that ends sooner is renewed before it is used: a run must be able to finish a push.
const SPARE: SignedDuration = SignedDuration::from_mins(5);

/// An app that is registered at GitHub.
pub struct GitHubApp {
    api: Api,
    /// By `owner/name`.
    tokens: Mutex<HashMap<String, InstallationToken>>,
}

struct InstallationToken {
    token: SecretString,
    expires_at: Timestamp,
}

/// As GitHub tells it. The length of the token varies.
#[derive(Deserialize)]
struct MadeToken {
    token: String,
    expires_at: Timestamp,
}

#[derive(Deserialize)]
struct Installation {
    id: u64,
}

/// What GitHub knows of the app.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AppFacts {
    /// Its account is `<slug>[bot]`.
    pub slug: String,
    /// What it was given, by name: `issues` is `write`.
    #[serde(default)]
    pub permissions: HashMap<String, String>,
    /// What is delivered to its webhook.
    #[serde(default)]
    pub events: Vec<String>,
}

impl fmt::Debug for GitHubApp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GitHubApp")
    }
}

impl GitHubApp {
    /// Checks id and key; asks GitHub nothing.
    pub fn new(
        id: &str,
        private_key: &SecretString,
        api: Url,
        http: reqwest::Client,
    ) -> Result<Self, ForgeError> {
        let key = Arc::new(AppKey::new(id, private_key)?);
        Ok(Self {
            api: Api::new(api, Credentials::App(key), http, Patience::default())?,
            tokens: Mutex::default(),
        })
    }

    /// A token for one repository: the one that is kept, or a new one.
    ///
    /// Boxed, because the client of a repository asks for it with a client of the same kind.
    pub fn token_for<'a>(
        &'a self,
        owner: &'a str,
        name: &'a str,
    ) -> Pin<Box<dyn Future<Output = Result<SecretString, ForgeError>> + Send + 'a>> {
        Box::pin(async move {
            repository_name(owner, name)?;
            let full = format!("{owner}/{name}");
            if let Some(kept) = self.tokens.lock().get(&full)
                && kept.expires_at.duration_since(Timestamp::now()) > SPARE
            {
                return Ok(kept.token.clone());
            }
            let made = self.make_token(owner, name).await?;
            let token = made.token.clone();
            self.tokens.lock().insert(full, made);
            Ok(token)
        })
    }

    async fn make_token(&self, owner: &str, name: &str) -> Result<InstallationToken, ForgeError> {
        let what = format!("the installation of the GitHub App on {owner}/{name}");
        let url = self.url(&["repos", owner, name, "installation"])?;
        let call = Call::get(
            url,
            what.clone(),
            "an installation of the app on the repository",
        );
        let installation: Installation = self.api.read(&call).await?;
        let id = installation.id.to_string();
        let url = self.url(&["app", "installations", &id, "access_tokens"])?;
        let body = json!({"repositories": [name]});
        let call = Call::with(
            Method::POST,
            url,
            body,
            what,
            "a key of the app that is in force",
        );
        let made: MadeToken = self.api.read(&call).await?;
        Ok(InstallationToken {
            token: SecretString::from(made.token),
            expires_at: made.expires_at,
        })
    }

    /// A token that GitHub refused is not used again. Another one that was made meanwhile stays.
    pub(super) fn forget(&self, owner: &str, name: &str, token: &SecretString) -> TokenRenewal {
        let mut tokens = self.tokens.lock();
        let full = format!("{owner}/{name}");
        let kept = tokens.get(&full);
        if kept.is_some_and(|kept| kept.token.expose_secret() == token.expose_secret()) {
            tokens.remove(&full);
        }
        TokenRenewal::Possible
    }

    /// What GitHub knows of the app; fails where id or key are wrong.
    pub async fn facts(&self) -> Result<AppFacts, ForgeError> {
        let call = Call::get(
            self.url(&["app"])?,
            "the GitHub App",
            "a key that is in force",
        );
        self.api.read(&call).await
    }

    fn url(&self, parts: &[&str]) -> Result<Url, ForgeError> {
        url_below(&self.api.base, parts)
    }
}
