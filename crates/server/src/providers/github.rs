//! GitHub: plain OAuth, and `GET /user` for who it is. There is no ID token.
//!
//! No scope is asked for: the token can read what is public of the account, is used once and is not
//! kept.

use codespar_runtime::SignedIn;
use reqwest::Client;
use secrecy::ExposeSecret;
use serde::Deserialize;
use url::Url;

use super::{Attempt, ClientAccount, SignInFailure, SignInSetupError, wire};

pub(super) struct GitHubSignIn {
    account: ClientAccount,
    http: Client,
    authorize: Url,
    token: Url,
    user: Url,
}

/// GitHub answers with 200 and an `error`, too.
#[derive(Deserialize)]
struct TokenAnswer {
    access_token: Option<String>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct User {
    id: u64,
    login: String,
    #[serde(rename = "type")]
    kind: String,
}

impl GitHubSignIn {
    pub(super) fn new(
        server: &Url,
        api: &Url,
        account: ClientAccount,
        proxy: Option<&Url>,
    ) -> Result<Self, SignInSetupError> {
        let below = |base: &Url, path: &str| {
            let mut url = base.clone();
            url.set_path(&format!("{}{path}", base.path().trim_end_matches('/')));
            url
        };
        Ok(Self {
            account,
            http: wire::client(api, proxy)?,
            authorize: below(server, "/login/oauth/authorize"),
            token: below(server, "/login/oauth/access_token"),
            user: below(api, "/user"),
        })
    }

    pub(super) fn page(&self, attempt: &Attempt) -> Url {
        let mut page = self.authorize.clone();
        attempt.ask(&mut page, &self.account);
        page
    }

    pub(super) async fn who(
        &self,
        attempt: &Attempt,
        code: &str,
    ) -> Result<SignedIn, SignInFailure> {
        let secret = self.account.secret.as_ref();
        let fields = [
            ("client_id", self.account.id.as_str()),
            (
                "client_secret",
                secret.map_or("", |one| one.expose_secret()),
            ),
            ("code", code),
            ("redirect_uri", self.account.redirect.as_str()),
            ("code_verifier", attempt.verifier.as_str()),
        ];
        let request = wire::form(self.http.post(self.token.clone()), &fields);
        let (_, answer) = wire::json::<TokenAnswer>("the token of GitHub", request).await?;
        let token = answer.access_token.filter(|_| answer.error.is_none());
        let Some(token) = token.filter(|token| !token.is_empty()) else {
            let error = answer.error.unwrap_or_default();
            return Err(SignInFailure::Unbelieved(format!(
                "GitHub gives no token for the code: {}",
                codespar_runtime::printable(&error)
            )));
        };
        let request = self.http.get(self.user.clone()).bearer_auth(token);
        let (status, user) = wire::json::<User>("the user of GitHub", request).await?;
        if !status.is_success() || user.kind != "User" || !is_login(&user.login) {
            let reason = format!("GitHub names nobody (status {status})");
            return Err(SignInFailure::Unbelieved(reason));
        }
        Ok(SignedIn::at_github(user.login, user.id))
    }
}

fn is_login(text: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    (1..=100).contains(&text.len()) && text.chars().all(is_letter)
}
