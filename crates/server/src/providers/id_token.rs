//! What is believed of an ID token: signed by a key of the provider, made by it, for this server,
//! for this attempt, not long ago.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use super::keys::{Algorithm, KeySet};

/// Clocks differ.
const LEEWAY: i64 = 60;
/// Of a token that is bound to an attempt of minutes.
const OLDEST: i64 = 3600;

/// What a token must say.
pub(super) struct Expected<'a> {
    pub(super) issuer: &'a str,
    pub(super) client: &'a str,
    pub(super) nonce: &'a str,
    /// Seconds since 1970.
    pub(super) now: i64,
}

/// Why a token is not believed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum TokenProblem {
    /// The provider may have a new one.
    #[error("no key of the provider has signed the ID token")]
    UnknownKey,
    #[error("the ID token {0}")]
    Wrong(&'static str),
}

/// Who it is. The rest of the token has done its work.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Claims {
    pub(super) sub: String,
    #[serde(flatten)]
    pub(super) email: EmailClaims,
    iss: String,
    aud: Audience,
    azp: Option<String>,
    exp: f64,
    iat: f64,
    nbf: Option<f64>,
    nonce: Option<String>,
}

/// An address, and whether the provider has verified it.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct EmailClaims {
    pub(super) email: Option<String>,
    #[serde(default)]
    email_verified: Value,
}

impl EmailClaims {
    /// Some providers write the word as a text.
    pub(super) fn verified(&self) -> Option<&str> {
        let is_verified = self.email_verified == true || self.email_verified == "true";
        self.email.as_deref().filter(|_| is_verified)
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Several(Vec<String>),
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    crit: Option<Value>,
}

/// The claims of a token that is believed.
pub(super) fn verify(
    token: &str,
    keys: &KeySet,
    expected: &Expected<'_>,
) -> Result<Claims, TokenProblem> {
    let wrong = TokenProblem::Wrong;
    let (signed, signature) = token.rsplit_once('.').ok_or(wrong("has no signature"))?;
    let (header, claims) = signed.split_once('.').ok_or(wrong("has no header"))?;
    let header: Header = part(header).ok_or(wrong("has a header that cannot be read"))?;
    let algorithm = Algorithm::named(&header.alg);
    let algorithm = algorithm.ok_or(wrong("is not signed by RS256 or ES256"))?;
    if header.crit.is_some() {
        return Err(wrong("needs something that is not known here"));
    }
    let signature = URL_SAFE_NO_PAD.decode(signature);
    let signature = signature.map_err(|_| wrong("has a signature that cannot be read"))?;
    let kid = header.kid.as_deref();
    match keys.has_signed(algorithm, kid, signed.as_bytes(), &signature) {
        Some(true) => {}
        Some(false) if kid.is_some() => return Err(wrong("has a wrong signature")),
        _ => return Err(TokenProblem::UnknownKey),
    }
    let claims: Claims = part(claims).ok_or(wrong("has claims that cannot be read"))?;
    claims.check(expected).map(|()| claims)
}

fn part<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()
}

impl Claims {
    fn check(&self, expected: &Expected<'_>) -> Result<(), TokenProblem> {
        let client = expected.client;
        let (is_for_us, is_for_others) = match &self.aud {
            Audience::One(one) => (one == client, false),
            Audience::Several(all) => (all.iter().any(|one| one == client), all.len() > 1),
        };
        let now = expected.now as f64;
        let leeway = LEEWAY as f64;
        let problem = if self.iss != expected.issuer {
            "is of another issuer"
        } else if !is_for_us {
            "is for another client"
        } else if self.azp.as_deref().is_some_and(|azp| azp != client) {
            "was given to another client"
        } else if is_for_others && self.azp.is_none() {
            "is for several clients and does not say to which it was given"
        } else if self.exp + leeway <= now {
            "has expired"
        } else if self.iat > now + leeway || self.nbf.is_some_and(|nbf| nbf > now + leeway) {
            "is of the future"
        } else if self.iat < now - OLDEST as f64 {
            "is too old"
        } else if self.nonce.as_deref() != Some(expected.nonce) {
            "is not of this attempt"
        } else {
            return Ok(());
        };
        Err(TokenProblem::Wrong(problem))
    }
}
