//! One attempt to sign in: bound to the browser that began it, used once, within minutes.
//!
//! All of it is in a cookie that only this process can open, so attempts that are never finished
//! cost no memory. The state that comes back must be that of the cookie: an answer that somebody
//! else received cannot be slipped to this browser, nor the other way round.

use std::{collections::VecDeque, time::Duration};

use axum::http::{HeaderMap, HeaderValue};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jiff::Timestamp;
use parking_lot::Mutex;
use ring::{
    aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    digest::{SHA256, digest},
    rand::{SecureRandom, SystemRandom},
};
use serde::{Deserialize, Serialize};

use crate::{
    access::{cookie_header, cookies},
    config::CookieScope,
    error::ApiError,
};

/// Long enough to type a password and a second factor.
const TIME: Duration = Duration::from_secs(10 * 60);
/// Attempts that are remembered as used. An older one is still refused by the provider: its code
/// was exchanged.
const MOST_USED: usize = 10_000;
/// A longer address to go to afterwards is left out: cookies have room for 4 KB.
const MOST_NEXT: usize = 1_000;
const COOKIE: &str = "codespar_sign_in";
/// Browsers take a cookie with this beginning from the host itself alone, over TLS, and not from a
/// neighbour under the same domain.
const HOST_PREFIX: &str = "__Host-";

/// What must come back, and what is needed then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Attempt {
    pub(crate) provider: String,
    pub(crate) state: String,
    pub(crate) nonce: String,
    /// PKCE: only who began can exchange the code.
    pub(crate) verifier: String,
    /// Where to go afterwards.
    pub(crate) next: String,
    ends: i64,
}

impl Attempt {
    /// The PKCE challenge, `S256`.
    pub(super) fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(digest(&SHA256, self.verifier.as_bytes()))
    }

    /// What every provider is asked with.
    pub(super) fn ask(&self, page: &mut url::Url, client: &super::ClientAccount) {
        page.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &client.id)
            .append_pair("redirect_uri", client.redirect.as_str())
            .append_pair("state", &self.state)
            .append_pair("code_challenge", &self.challenge())
            .append_pair("code_challenge_method", "S256");
    }
}

/// Makes attempts, and knows which were used.
pub(crate) struct Attempts {
    key: LessSafeKey,
    random: SystemRandom,
    used: Mutex<VecDeque<String>>,
}

impl Attempts {
    /// With a key that ends with the process.
    pub(super) fn new() -> Result<Self, std::io::Error> {
        let random = SystemRandom::new();
        let mut bytes = [0; 32];
        random.fill(&mut bytes).map_err(|_| no_random())?;
        let key = UnboundKey::new(&CHACHA20_POLY1305, &bytes).map_err(|_| no_random())?;
        Ok(Self {
            key: LessSafeKey::new(key),
            random,
            used: Mutex::default(),
        })
    }

    pub(crate) fn begin(&self, provider: &str, next: &str) -> Result<Attempt, ApiError> {
        let next = if next.len() > MOST_NEXT { "/" } else { next };
        Ok(Attempt {
            provider: provider.to_owned(),
            state: self.random()?,
            nonce: self.random()?,
            verifier: self.random()?,
            next: next.to_owned(),
            ends: Timestamp::now().as_second() + TIME.as_secs().cast_signed(),
        })
    }

    /// 256 bits.
    fn random(&self) -> Result<String, ApiError> {
        let mut bytes = [0; 32];
        let filled = self.random.fill(&mut bytes);
        filled.map_err(|_| ApiError::internal(no_random()))?;
        Ok(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// The cookie of an attempt.
    pub(crate) fn cookie(
        &self,
        attempt: &Attempt,
        scope: CookieScope,
    ) -> Result<HeaderValue, ApiError> {
        let mut text = serde_json::to_vec(attempt).map_err(ApiError::internal)?;
        let mut nonce = [0; NONCE_LEN];
        let filled = self.random.fill(&mut nonce);
        filled.map_err(|_| ApiError::internal(no_random()))?;
        let sealed = self.key.seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::empty(),
            &mut text,
        );
        sealed.map_err(|_| ApiError::internal("an attempt to sign in cannot be sealed"))?;
        let value = URL_SAFE_NO_PAD.encode([&nonce[..], &text].concat());
        let seconds = TIME.as_secs().cast_signed();
        cookie_header(&name(scope), &value, seconds, scope)
    }

    /// A cookie that ends at once.
    pub(crate) fn no_cookie(scope: CookieScope) -> Result<HeaderValue, ApiError> {
        cookie_header(&name(scope), "", 0, scope)
    }

    /// The attempt of this browser that an answer with this state belongs to. It can be taken once.
    pub(crate) fn take(
        &self,
        headers: &HeaderMap,
        scope: CookieScope,
        provider: &str,
        state: &str,
    ) -> Option<Attempt> {
        let attempt = cookies(headers, &name(scope))
            .find_map(|sealed| self.open(sealed).filter(|one| one.state == state))?;
        let is_in_time = Timestamp::now().as_second() < attempt.ends;
        if attempt.provider != provider || !is_in_time {
            return None;
        }
        let mut used = self.used.lock();
        if used.contains(&attempt.state) {
            return None;
        }
        if used.len() >= MOST_USED {
            used.pop_front();
        }
        used.push_back(attempt.state.clone());
        Some(attempt)
    }

    fn open(&self, sealed: &str) -> Option<Attempt> {
        let bytes = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (nonce, text) = bytes.split_first_chunk::<NONCE_LEN>()?;
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let mut text = text.to_vec();
        let text = self
            .key
            .open_in_place(nonce, Aad::empty(), &mut text)
            .ok()?;
        serde_json::from_slice(text).ok()
    }
}

fn name(scope: CookieScope) -> String {
    match scope {
        CookieScope::Plain => COOKIE.to_owned(),
        CookieScope::SecureOnly => format!("{HOST_PREFIX}{COOKIE}"),
    }
}

fn no_random() -> std::io::Error {
    std::io::Error::other("the system gives no random numbers")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "this is a test")]

    use axum::http::header;

    use super::*;

    fn headers(cookie: &HeaderValue) -> HeaderMap {
        let pair = cookie.to_str().unwrap().split(';').next().unwrap();
        HeaderMap::from_iter([(header::COOKIE, pair.parse().unwrap())])
    }

    #[test]
    fn an_attempt_is_taken_once_by_its_own_browser_and_provider() {
        let attempts = Attempts::new().unwrap();
        let attempt = attempts.begin("corp", "/board").unwrap();
        for scope in [CookieScope::Plain, CookieScope::SecureOnly] {
            let own = headers(&attempts.cookie(&attempt, scope).unwrap());
            let other = attempts.begin("corp", "/").unwrap();
            let other = headers(&attempts.cookie(&other, scope).unwrap());
            let take = |headers: &HeaderMap, provider: &str, state: &str| {
                attempts.take(headers, scope, provider, state)
            };
            assert_eq!(take(&other, "corp", &attempt.state), None);
            assert_eq!(take(&own, "corp", "guessed"), None);
            assert_eq!(take(&own, "other", &attempt.state), None);
            assert_eq!(take(&HeaderMap::new(), "corp", &attempt.state), None);
        }
        let own = headers(&attempts.cookie(&attempt, CookieScope::Plain).unwrap());
        let take = || attempts.take(&own, CookieScope::Plain, "corp", &attempt.state);
        assert_eq!(take(), Some(attempt.clone()));
        assert_eq!(take(), None);
    }

    #[test]
    fn a_cookie_of_another_process_or_one_that_was_changed_is_none() {
        let attempts = Attempts::new().unwrap();
        let attempt = attempts.begin("corp", "/").unwrap();
        let foreign = Attempts::new().unwrap();
        let theirs = headers(&foreign.cookie(&attempt, CookieScope::Plain).unwrap());
        let take = |headers: &HeaderMap| {
            attempts.take(headers, CookieScope::Plain, "corp", &attempt.state)
        };
        assert_eq!(take(&theirs), None);
        let cookie = attempts.cookie(&attempt, CookieScope::Plain).unwrap();
        let text = cookie.to_str().unwrap().replacen("=A", "=B", 1);
        let text = text.split(';').next().unwrap().to_owned();
        let changed = format!("{}x", text);
        let changed = HeaderMap::from_iter([(header::COOKIE, changed.parse().unwrap())]);
        assert_eq!(take(&changed), None);
    }

    #[test]
    fn an_attempt_ends() {
        let attempts = Attempts::new().unwrap();
        let mut attempt = attempts.begin("corp", "/").unwrap();
        attempt.ends = Timestamp::now().as_second();
        let own = headers(&attempts.cookie(&attempt, CookieScope::Plain).unwrap());
        let taken = attempts.take(&own, CookieScope::Plain, "corp", &attempt.state);
        assert_eq!(taken, None);
    }
}
