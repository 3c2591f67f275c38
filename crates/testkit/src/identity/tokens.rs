//! ID tokens: signed well, or wrong in one way that an attacker would try.

use std::io;

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use jiff::Timestamp;
use ring::{
    hmac,
    rand::SystemRandom,
    rsa::PublicKeyComponents,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
    },
};
use serde_json::{Value, json};

use crate::github::APP_KEY_PKCS8;

/// What is wrong with an ID token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forgery {
    /// The claims were changed after they were signed.
    Claims,
    /// Signed by a key that the provider does not have, under the name of one that it has.
    OtherKey,
    /// Signed by a key that the provider does not have, under a name of its own.
    UnknownKey,
    /// `alg: none` and no signature.
    NoSignature,
    /// `alg: HS256` with the public key as the secret, which everybody knows.
    PublicKeyAsSecret,
    /// The header says RS256 and the signature is of ES256.
    OtherAlgorithm,
    Audience,
    /// Ours is one of several, and it was given to another.
    GivenToOther,
    /// Ours is one of several, and nothing says to whom it was given.
    GivenToNobody,
    Issuer,
    Expired,
    Future,
    Nonce,
    NoNonce,
    /// An extension that must be understood.
    Critical,
    /// Not three parts.
    Cut,
}

impl Forgery {
    pub const ALL: [Self; 16] = [
        Self::Claims,
        Self::OtherKey,
        Self::UnknownKey,
        Self::NoSignature,
        Self::PublicKeyAsSecret,
        Self::OtherAlgorithm,
        Self::Audience,
        Self::GivenToOther,
        Self::GivenToNobody,
        Self::Issuer,
        Self::Expired,
        Self::Future,
        Self::Nonce,
        Self::NoNonce,
        Self::Critical,
        Self::Cut,
    ];
}

/// Which key signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SigningKey {
    Rsa,
    Elliptic,
}

/// The keys of the provider, and one of somebody else.
pub(super) struct Keys {
    pub(super) signing: SigningKey,
    rsa: RsaKeyPair,
    elliptic: EcdsaKeyPair,
    foreign: EcdsaKeyPair,
    /// Counts the keys that there were.
    generation: u32,
    random: SystemRandom,
}

impl Keys {
    pub(super) fn new() -> io::Result<Self> {
        let pem: String = APP_KEY_PKCS8
            .lines()
            .filter(|line| !line.starts_with("-----"))
            .collect();
        let der = STANDARD.decode(pem).map_err(io::Error::other)?;
        Ok(Self {
            signing: SigningKey::Rsa,
            rsa: RsaKeyPair::from_pkcs8(&der).map_err(failed)?,
            elliptic: elliptic()?,
            foreign: elliptic()?,
            generation: 1,
            random: SystemRandom::new(),
        })
    }

    pub(super) fn change(&mut self) -> io::Result<()> {
        self.elliptic = elliptic()?;
        self.signing = SigningKey::Elliptic;
        self.generation += 1;
        Ok(())
    }

    fn kid(&self) -> String {
        match self.signing {
            SigningKey::Rsa => "rsa".to_owned(),
            SigningKey::Elliptic => format!("elliptic-{}", self.generation),
        }
    }

    /// The set that the provider publishes.
    pub(super) fn public(&self) -> Value {
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let rsa: PublicKeyComponents<Vec<u8>> = self.rsa.public().into();
        let point = self.elliptic.public_key().as_ref();
        json!({"keys": [
            {"kty": "RSA", "use": "enc", "kid": "for-something-else", "n": "AQAB", "e": "AQAB"},
            {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "rsa",
             "n": encode(&rsa.n), "e": encode(&rsa.e)},
            {"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256",
             "kid": format!("elliptic-{}", self.generation),
             "x": encode(&point[1..33]), "y": encode(&point[33..])},
            {"kty": "oct", "kid": "a-kind-of-its-own"},
        ]})
    }

    fn sign(&self, text: &str) -> Vec<u8> {
        match self.signing {
            SigningKey::Rsa => {
                let mut signature = vec![0; self.rsa.public().modulus_len()];
                let signed = self.rsa.sign(
                    &RSA_PKCS1_SHA256,
                    &self.random,
                    text.as_bytes(),
                    &mut signature,
                );
                signed.map(|()| signature).unwrap_or_default()
            }
            SigningKey::Elliptic => self.sign_elliptic(&self.elliptic, text),
        }
    }

    fn sign_elliptic(&self, key: &EcdsaKeyPair, text: &str) -> Vec<u8> {
        let signed = key.sign(&self.random, text.as_bytes());
        signed.map(|one| one.as_ref().to_vec()).unwrap_or_default()
    }
}

fn failed(error: impl std::fmt::Display) -> io::Error {
    io::Error::other(error.to_string())
}

fn elliptic() -> io::Result<EcdsaKeyPair> {
    let random = SystemRandom::new();
    let kind = &ECDSA_P256_SHA256_FIXED_SIGNING;
    let made = EcdsaKeyPair::generate_pkcs8(kind, &random).map_err(failed)?;
    EcdsaKeyPair::from_pkcs8(kind, made.as_ref(), &random).map_err(failed)
}

/// A token with these claims and the times of now.
pub(super) fn id_token(keys: &Keys, mut claims: Value, forgery: Option<Forgery>) -> String {
    let now = Timestamp::now().as_second();
    claims["iat"] = json!(now);
    claims["exp"] = json!(now + 300);
    let algorithm = match keys.signing {
        SigningKey::Rsa => "RS256",
        SigningKey::Elliptic => "ES256",
    };
    let mut header = json!({"alg": algorithm, "typ": "JWT", "kid": keys.kid()});
    match forgery {
        Some(Forgery::Audience) => claims["aud"] = json!("another-client"),
        Some(Forgery::GivenToOther) => {
            claims["aud"] = json!([claims["aud"], "another-client"]);
            claims["azp"] = json!("another-client");
        }
        Some(Forgery::GivenToNobody) => claims["aud"] = json!([claims["aud"], "another-client"]),
        Some(Forgery::Issuer) => claims["iss"] = json!("https://accounts.example.com"),
        Some(Forgery::Expired) => {
            claims["iat"] = json!(now - 900);
            claims["exp"] = json!(now - 300);
        }
        Some(Forgery::Future) => claims["iat"] = json!(now + 3600),
        Some(Forgery::Nonce) => claims["nonce"] = json!("of-another-attempt"),
        Some(Forgery::NoNonce) => claims["nonce"] = Value::Null,
        Some(Forgery::Critical) => {
            header["crit"] = json!(["b64"]);
            header["b64"] = json!(false);
        }
        Some(Forgery::NoSignature) => header["alg"] = json!("none"),
        Some(Forgery::PublicKeyAsSecret) => header["alg"] = json!("HS256"),
        Some(Forgery::UnknownKey | Forgery::OtherKey) => header["alg"] = json!("ES256"),
        _ => {}
    }
    match forgery {
        Some(Forgery::OtherKey) => header["kid"] = json!(format!("elliptic-{}", keys.generation)),
        Some(Forgery::UnknownKey) => header["kid"] = json!("of-mine"),
        _ => {}
    }
    let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let text = format!("{}.{}", encode(&header), encode(&claims));
    let signature = match forgery {
        Some(Forgery::Cut) => return text,
        Some(Forgery::NoSignature) => Vec::new(),
        Some(Forgery::PublicKeyAsSecret) => {
            let rsa: PublicKeyComponents<Vec<u8>> = keys.rsa.public().into();
            let secret = hmac::Key::new(hmac::HMAC_SHA256, &rsa.n);
            hmac::sign(&secret, text.as_bytes()).as_ref().to_vec()
        }
        Some(Forgery::OtherKey | Forgery::UnknownKey) => keys.sign_elliptic(&keys.foreign, &text),
        Some(Forgery::OtherAlgorithm) => keys.sign_elliptic(&keys.elliptic, &text),
        _ => keys.sign(&text),
    };
    let text = match forgery {
        Some(Forgery::Claims) => {
            claims["sub"] = json!("the-admin");
            format!("{}.{}", encode(&header), encode(&claims))
        }
        _ => text,
    };
    format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature))
}
