//! With what right requests are made: a token that stays, one of an app's installation that is
//! renewed, or the app's own signature.

use std::{fmt, sync::Arc};

use reqwest::header::HeaderValue;
use secrecy::{ExposeSecret, SecretString};

use super::app::{AppKey, GitHubApp};
use crate::ForgeError;

/// How this process may act at GitHub. Cheap to clone; tokens of an app are shared by all clones.
#[derive(Clone)]
pub enum GitHubAccess {
    /// Fine-grained or classic.
    Token(SecretString),
    /// Tokens are made for one repository at a time, and last an hour.
    App(Arc<GitHubApp>),
}

impl fmt::Debug for GitHubAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Token(_) => "GitHubAccess::Token",
            Self::App(_) => "GitHubAccess::App",
        })
    }
}

impl GitHubAccess {
    /// A token for the API and git of one repository.
    pub async fn token_for(&self, owner: &str, name: &str) -> Result<SecretString, ForgeError> {
        match self {
            Self::Token(token) => Ok(token.clone()),
            Self::App(app) => app.token_for(owner, name).await,
        }
    }

    /// Takes note that GitHub did not accept a token. Gives whether the next one may be another.
    pub fn refused(&self, owner: &str, name: &str, token: &SecretString) -> TokenRenewal {
        match self {
            Self::Token(_) => TokenRenewal::Useless,
            Self::App(app) => app.forget(owner, name, token),
        }
    }
}

/// Whether asking for a token again can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenRenewal {
    Possible,
    Useless,
}

/// What the requests of one client are signed with.
pub(super) enum Credentials {
    Repository {
        access: GitHubAccess,
        owner: String,
        name: String,
    },
    /// The app speaks for itself.
    App(Arc<AppKey>),
}

impl Credentials {
    /// A token that stays is checked when it is given, so that a mistake is said at once.
    pub(super) fn check(&self) -> Result<(), ForgeError> {
        match self {
            Self::Repository {
                access: GitHubAccess::Token(token),
                ..
            } => bearer(token).map(|_| ()),
            _ => Ok(()),
        }
    }

    /// The value of `Authorization`, and the token in it.
    pub(super) async fn header(&self) -> Result<(HeaderValue, SecretString), ForgeError> {
        let token = match self {
            Self::Repository {
                access,
                owner,
                name,
            } => access.token_for(owner, name).await?,
            Self::App(key) => key.signed_now()?,
        };
        Ok((bearer(&token)?, token))
    }

    pub(super) fn refused(&self, token: &SecretString) -> TokenRenewal {
        match self {
            Self::Repository {
                access,
                owner,
                name,
            } => access.refused(owner, name, token),
            Self::App(_) => TokenRenewal::Useless,
        }
    }
}

/// Marked sensitive, so that it does not appear in debug output.
fn bearer(token: &SecretString) -> Result<HeaderValue, ForgeError> {
    let refused = |what: &str| Err(ForgeError::Refused(what.to_owned()));
    let token = token.expose_secret().trim();
    if token.is_empty() {
        return refused("the GitHub token is empty");
    }
    let Ok(mut value) = HeaderValue::from_str(&format!("Bearer {token}")) else {
        return refused("the GitHub token has characters that no token has");
    };
    value.set_sensitive(true);
    Ok(value)
}
