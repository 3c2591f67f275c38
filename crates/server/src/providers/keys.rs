//! What is kept of a provider: its description and its keys.

use std::{future::Future, sync::Arc, time::Duration};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;
use tokio::{sync::Mutex, time::Instant};

use super::SignInFailure;

/// After a failure nothing is asked for so long: people who wait would make it worse.
const PAUSE: Duration = Duration::from_secs(5);

/// A signature that is accepted. There is no other: none at all, and those of a shared secret, are
/// what a forger would choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    Rs256,
    Es256,
}

impl Algorithm {
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "RS256" => Some(Self::Rs256),
            "ES256" => Some(Self::Es256),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
        }
    }
}

/// The keys of a provider. Those of other kinds are there and are not used.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct KeySet {
    keys: Vec<Key>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Key {
    kty: String,
    kid: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    alg: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl KeySet {
    /// Whether one of the keys that can be meant has signed the text; nothing if none can be meant.
    /// Which kind of key verifies is decided by the key, so no text can choose another.
    pub(super) fn has_signed(
        &self,
        algorithm: Algorithm,
        kid: Option<&str>,
        text: &[u8],
        signature: &[u8],
    ) -> Option<bool> {
        let mut meant = self
            .keys
            .iter()
            .filter(|key| kid.is_none() || key.kid.as_deref() == kid)
            .filter(|key| key.is_for(algorithm))
            .peekable();
        meant.peek()?;
        Some(meant.any(|key| key.has_signed(algorithm, text, signature) == Some(true)))
    }
}

impl Key {
    fn is_for(&self, algorithm: Algorithm) -> bool {
        let is_kind = match algorithm {
            Algorithm::Rs256 => self.kty == "RSA",
            Algorithm::Es256 => self.kty == "EC" && self.crv.as_deref() == Some("P-256"),
        };
        let is_free = |of: Option<&str>, only: &str| of.is_none_or(|of| of == only);
        is_kind
            && is_free(self.usage.as_deref(), "sig")
            && is_free(self.alg.as_deref(), algorithm.name())
    }

    fn has_signed(&self, algorithm: Algorithm, text: &[u8], signature: &[u8]) -> Option<bool> {
        let decoded = |part: &Option<String>| URL_SAFE_NO_PAD.decode(part.as_deref()?).ok();
        let verified = match algorithm {
            Algorithm::Rs256 => {
                let (n, e) = (decoded(&self.n)?, decoded(&self.e)?);
                RsaPublicKeyComponents { n, e }.verify(&RSA_PKCS1_2048_8192_SHA256, text, signature)
            }
            Algorithm::Es256 => {
                let point = [vec![4], decoded(&self.x)?, decoded(&self.y)?].concat();
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(text, signature)
            }
        };
        Some(verified.is_ok())
    }
}

/// Something of a provider that is fetched once and used for a while.
pub(super) struct Kept<T> {
    lasts: Duration,
    /// Between two renewals that somebody's token asks for.
    pause: Duration,
    inner: Mutex<Inner<T>>,
}

struct Inner<T> {
    value: Option<(Arc<T>, Instant)>,
    failed: Option<(SignInFailure, Instant)>,
    renewed: Option<Instant>,
}

impl<T> Kept<T> {
    pub(super) fn new(lasts: Duration, pause: Duration) -> Self {
        Self {
            lasts,
            pause,
            inner: Mutex::new(Inner {
                value: None,
                failed: None,
                renewed: None,
            }),
        }
    }

    /// The value, fetched if there is none or an old one.
    pub(super) async fn get(
        &self,
        fetch: impl Future<Output = Result<T, SignInFailure>>,
    ) -> Result<Arc<T>, SignInFailure> {
        let mut inner = self.inner.lock().await;
        match (&inner.value, &inner.failed) {
            (Some((value, at)), _) if at.elapsed() < self.lasts => return Ok(value.clone()),
            (_, Some((failure, at))) if at.elapsed() < PAUSE => return Err(failure.clone()),
            _ => {}
        }
        inner.keep(fetch.await)
    }

    /// The value, fetched again; nothing if that was done just now. Tokens with made-up keys cannot
    /// make this server ask the provider all the time.
    pub(super) async fn renew(
        &self,
        fetch: impl Future<Output = Result<T, SignInFailure>>,
    ) -> Result<Option<Arc<T>>, SignInFailure> {
        let mut inner = self.inner.lock().await;
        if inner.renewed.is_some_and(|at| at.elapsed() < self.pause) {
            return Ok(None);
        }
        inner.renewed = Some(Instant::now());
        inner.keep(fetch.await).map(Some)
    }
}

impl<T> Inner<T> {
    fn keep(&mut self, fetched: Result<T, SignInFailure>) -> Result<Arc<T>, SignInFailure> {
        match fetched {
            Ok(value) => {
                let value = Arc::new(value);
                self.value = Some((value.clone(), Instant::now()));
                self.failed = None;
                Ok(value)
            }
            Err(failure) => {
                self.failed = Some((failure.clone(), Instant::now()));
                Err(failure)
            }
        }
    }
}
