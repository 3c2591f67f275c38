//! How people sign in to `codespar serve`, and who gets which role. The user's own settings alone: a
//! repository does not decide who may come in.

use std::{collections::BTreeMap, path::PathBuf};

use codespar_protocol::AccessRole;
use serde::Deserialize;

/// `server` in the settings. Nobody signs in at a provider where nothing is set.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ServerSettings {
    /// The address by which browsers reach the server: providers send people back there.
    pub public_url: Option<String>,
    /// Providers by a short name, which is part of the address that people come back to.
    pub sign_in: BTreeMap<String, SignInSettings>,
}

/// One provider, and the roles of the people whom it vouches for. The strongest role that applies
/// counts; who has none is refused.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SignInSettings {
    #[serde(rename = "type")]
    pub kind: SignInKind,
    /// On the button; the name of the provider otherwise.
    pub label: Option<String>,
    /// The address of an OpenID Connect provider, exactly as it writes it itself.
    pub issuer: Option<String>,
    pub client_id: String,
    /// The variable of the environment that has the secret. The secret itself is in no settings file.
    pub client_secret_env: Option<String>,
    /// A file that has the secret and nothing else.
    pub client_secret_file: Option<PathBuf>,
    /// By subject at an OpenID Connect provider; by login or `id:NUMBER` at GitHub.
    pub users: BTreeMap<String, AccessRole>,
    /// By e-mail address, if the provider says that it has verified it.
    pub emails: BTreeMap<String, AccessRole>,
    /// Everybody who has an account at the provider: `read`, or nobody.
    pub everyone: Option<AccessRole>,
}

/// What a provider speaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SignInKind {
    /// OpenID Connect.
    #[default]
    Oidc,
    /// OAuth, and `GET /user` for who it is.
    Github,
}

impl ServerSettings {
    /// What another file says wins.
    pub(super) fn add(&mut self, other: Self) {
        self.public_url = other.public_url.or(self.public_url.take());
        self.sign_in.extend(other.sign_in);
    }
}
