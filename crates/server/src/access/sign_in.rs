//! Browsers: the one-time code that `codespar serve` prints, and the cookie.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use axum::http::{HeaderMap, HeaderValue, header};
use codespar_protocol::AccessRole;
use codespar_store::{AccessToken, Database, NewBrowserSession, NewToken, SecretHash};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;

use super::secret::{Secret, SecretKind};
use crate::{config::CookieScope, error::ApiError};

const SESSION_COOKIE: &str = "codespar_session";
/// Long enough to open a browser.
const CODE_TIME: Duration = Duration::from_secs(15 * 60);
const MOST_CODES: usize = 100;

/// A code that signs one browser in, once.
#[derive(Debug, Clone)]
pub struct SignInCode(Secret);

impl SignInCode {
    /// The path with the code in it, to put after the address of the server.
    pub fn path(&self) -> String {
        format!("/login?code={}", self.0.reveal())
    }
}

/// Codes that wait for their browser; they end with the process.
#[derive(Default)]
pub(crate) struct SignIns(Mutex<HashMap<SecretHash, (AccessRole, Instant)>>);

impl SignIns {
    pub(crate) fn new_code(&self, role: AccessRole) -> Result<SignInCode, std::io::Error> {
        let secret = Secret::random(SecretKind::SignIn)?;
        let mut codes = self.0.lock();
        codes.retain(|_, (_, made)| made.elapsed() < CODE_TIME);
        if codes.len() >= MOST_CODES {
            return Err(std::io::Error::other("too many sign-ins wait"));
        }
        codes.insert(secret.hash(), (role, Instant::now()));
        Ok(SignInCode(secret))
    }

    /// The role of a code, which is used up.
    fn take(&self, text: &str) -> Option<AccessRole> {
        let secret = Secret::parse(SecretKind::SignIn, text)?;
        let (role, made) = self.0.lock().remove(&secret.hash())?;
        (made.elapsed() < CODE_TIME).then_some(role)
    }

    /// The token that a browser acts with: that of a secret, or a new one for a code, which nobody
    /// has the secret of and which can be revoked like any other.
    pub(crate) async fn token_for(
        &self,
        store: &dyn Database,
        shown: &str,
    ) -> Result<Option<AccessToken>, ApiError> {
        let shown = shown.trim();
        if let Some(secret) = Secret::parse(SecretKind::Token, shown) {
            return Ok(store.token_by_hash(&secret.hash()).await?);
        }
        let Some(role) = self.take(shown) else {
            return Ok(None);
        };
        let unknown = Secret::random(SecretKind::Token).map_err(ApiError::internal)?;
        let new = NewToken {
            name: "browser".to_owned(),
            role,
            hash: unknown.hash(),
        };
        Ok(Some(store.create_token(new).await?))
    }
}

/// Signs a browser in; gives its cookie.
pub(crate) async fn begin_session(
    store: &dyn Database,
    token: &AccessToken,
    lasts: Duration,
    scope: CookieScope,
) -> Result<HeaderValue, ApiError> {
    let secret = Secret::random(SecretKind::Cookie).map_err(ApiError::internal)?;
    let lasts = SignedDuration::try_from(lasts).map_err(ApiError::internal)?;
    let new = NewBrowserSession {
        token_id: token.id.clone(),
        hash: secret.hash(),
        expires_at: Timestamp::now()
            .checked_add(lasts)
            .map_err(ApiError::internal)?,
    };
    store.create_browser_session(new).await?;
    cookie_header(SESSION_COOKIE, secret.reveal(), lasts.as_secs(), scope)
}

/// A cookie that ends at once.
pub(crate) fn no_cookie(scope: CookieScope) -> Result<HeaderValue, ApiError> {
    cookie_header(SESSION_COOKIE, "", 0, scope)
}

/// No script reads it. Links from a chat open signed in (`Lax`); changes are checked on their own.
pub(crate) fn cookie_header(
    name: &str,
    value: &str,
    seconds: i64,
    scope: CookieScope,
) -> Result<HeaderValue, ApiError> {
    let secure = match scope {
        CookieScope::Plain => "",
        CookieScope::SecureOnly => "; Secure",
    };
    let text = format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={seconds}{secure}");
    HeaderValue::try_from(text).map_err(ApiError::internal)
}

/// The secret in the cookie of a request. Of several cookies of the name, one that can be ours
/// counts.
pub(crate) fn cookie(headers: &HeaderMap) -> Option<Secret> {
    cookies(headers, SESSION_COOKIE).find_map(|value| Secret::parse(SecretKind::Cookie, value))
}

/// The values of all cookies of a name.
pub(crate) fn cookies<'a>(headers: &'a HeaderMap, name: &str) -> impl Iterator<Item = &'a str> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(move |(of, _)| *of == name)
        .map(|(_, value)| value)
}
