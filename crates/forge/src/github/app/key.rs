//! The private key of a GitHub App, and what it signs: RS256, valid for minutes.

use std::fmt;

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use jiff::Timestamp;
use ring::{
    rand::SystemRandom,
    signature::{RSA_PKCS1_SHA256, RsaKeyPair},
};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;

use crate::ForgeError;

/// Clocks differ; GitHub refuses what was signed in its future.
const BACKDATED: i64 = 60;
/// GitHub takes ten minutes at most, counted by its own clock.
const VALID: i64 = 9 * 60;

/// An app and its key. Neither `Debug` nor an error shows the key.
pub(crate) struct AppKey {
    app: String,
    key: RsaKeyPair,
    random: SystemRandom,
}

impl fmt::Debug for AppKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AppKey of {}", self.app)
    }
}

impl AppKey {
    /// Reads a PEM file as GitHub gives it (`RSA PRIVATE KEY`, PKCS#1) or as other tools convert it
    /// (`PRIVATE KEY`, PKCS#8).
    pub(crate) fn new(app: &str, pem: &SecretString) -> Result<Self, ForgeError> {
        let is_id = !app.is_empty() && app.chars().all(|c| c.is_ascii_alphanumeric() || c == '.');
        if !is_id {
            return Err(refused(
                "the id of the GitHub App has other characters than letters and digits",
            ));
        }
        let (kind, der) = decoded(pem.expose_secret())?;
        let key = match kind {
            PemKind::Pkcs1 => RsaKeyPair::from_der(&der),
            PemKind::Pkcs8 => RsaKeyPair::from_pkcs8(&der),
        };
        Ok(Self {
            app: app.to_owned(),
            // The reason is a word such as `InvalidEncoding`, and never a part of the key.
            key: key.map_err(|error| {
                refused(&format!(
                    "the private key of the GitHub App cannot be used: {error}"
                ))
            })?,
            random: SystemRandom::new(),
        })
    }

    pub(crate) fn signed_now(&self) -> Result<SecretString, ForgeError> {
        self.signed(Timestamp::now())
    }

    /// A token by which the app proves to be itself.
    fn signed(&self, now: Timestamp) -> Result<SecretString, ForgeError> {
        let now = now.as_second();
        let claims = json!({"iat": now - BACKDATED, "exp": now + VALID, "iss": self.app});
        let header = json!({"alg": "RS256", "typ": "JWT"});
        let part = |value: &serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let text = format!("{}.{}", part(&header), part(&claims));
        let mut signature = vec![0; self.key.public().modulus_len()];
        self.key
            .sign(
                &RSA_PKCS1_SHA256,
                &self.random,
                text.as_bytes(),
                &mut signature,
            )
            .map_err(|_| refused("the private key of the GitHub App cannot sign"))?;
        let signature = URL_SAFE_NO_PAD.encode(signature);
        Ok(SecretString::from(format!("{text}.{signature}")))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PemKind {
    Pkcs1,
    Pkcs8,
}

/// The first private key of a PEM text. Text around it is not looked at.
fn decoded(pem: &str) -> Result<(PemKind, Vec<u8>), ForgeError> {
    for (label, kind) in [
        ("RSA PRIVATE KEY", PemKind::Pkcs1),
        ("PRIVATE KEY", PemKind::Pkcs8),
    ] {
        let begin = format!("-----BEGIN {label}-----");
        let end = format!("-----END {label}-----");
        let Some((_, after)) = pem.split_once(&begin) else {
            continue;
        };
        let Some((body, _)) = after.split_once(&end) else {
            return Err(refused("the private key of the GitHub App is cut off"));
        };
        let digits: String = body.split_whitespace().collect();
        let der = STANDARD.decode(digits);
        let der = der.map_err(|_| refused("the private key of the GitHub App is damaged"))?;
        return Ok((kind, der));
    }
    Err(refused(
        "the private key of the GitHub App is no PEM file with an RSA key (an encrypted one cannot \
         be used)",
    ))
}

fn refused(what: &str) -> ForgeError {
    ForgeError::Refused(what.to_owned())
}

#[cfg(test)]
mod tests {
    use codespar_testkit::github::{APP_KEY_PKCS1, APP_KEY_PKCS8, app_claims};

    use super::*;

    #[test]
    fn both_forms_of_a_key_sign_the_same_and_for_minutes_only() {
        let now = Timestamp::from_second(1_767_225_600).unwrap();
        let signed = [APP_KEY_PKCS1, APP_KEY_PKCS8].map(|pem| {
            let key = AppKey::new("12345", &SecretString::from(pem)).unwrap();
            key.signed(now).unwrap().expose_secret().to_owned()
        });
        assert_eq!(signed[0], signed[1]);
        let claims = app_claims(&signed[0]).expect("the signature fits");
        assert_eq!(claims["iss"], "12345");
        let (iat, exp) = (
            claims["iat"].as_i64().unwrap(),
            claims["exp"].as_i64().unwrap(),
        );
        assert_eq!(iat, now.as_second() - 60);
        assert!(exp <= now.as_second() + 600);
    }

    #[test]
    fn what_is_no_key_is_refused_and_not_shown() {
        let cut = &APP_KEY_PKCS1[..200];
        let secret_part = &APP_KEY_PKCS1[100..140];
        for pem in [
            cut,
            "",
            "nonsense",
            "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----",
        ] {
            let error = AppKey::new("12345", &SecretString::from(pem)).unwrap_err();
            assert!(!error.to_string().contains(secret_part), "{error}");
        }
        let key = AppKey::new("12345", &SecretString::from(APP_KEY_PKCS1)).unwrap();
        assert_eq!(format!("{key:?}"), "AppKey of 12345");
        assert!(AppKey::new("1/../2", &SecretString::from(APP_KEY_PKCS1)).is_err());
    }
}
