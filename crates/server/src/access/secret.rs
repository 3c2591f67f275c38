//! Random secrets: tokens, cookies and sign-in codes. Only their hashes are stored.

use std::fmt;

use codespar_protocol::AccessRole;
use codespar_store::{AccessToken, NewToken, SecretHash, StoreError, TokenStore};
use ring::{
    digest::{SHA256, digest},
    rand::{SecureRandom, SystemRandom},
};

const BYTES: usize = 32;

/// What a secret is for. The beginning of its text says so, and lets the redactor find it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretKind {
    /// A token of the API.
    Token,
    /// The cookie of a browser.
    Cookie,
    /// A sign-in that waits for its browser.
    SignIn,
}

impl SecretKind {
    const fn prefix(self) -> &'static str {
        match self {
            Self::Token => "cspr_",
            Self::Cookie => "cspr_c",
            Self::SignIn => "cspr_s",
        }
    }
}

/// 256 random bits as text: `cspr_` and 64 hexadecimal digits.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Fails where the system gives no random numbers.
    pub fn random(kind: SecretKind) -> Result<Self, std::io::Error> {
        let mut bytes = [0; BYTES];
        SystemRandom::new()
            .fill(&mut bytes)
            .map_err(|_| std::io::Error::other("the system gives no random numbers"))?;
        Ok(Self(format!("{}{}", kind.prefix(), hex(&bytes))))
    }

    /// A text that could be a secret of this kind. Looking one up costs a query; most of what is not
    /// a secret ends here.
    pub fn parse(kind: SecretKind, text: &str) -> Option<Self> {
        let digits = text.strip_prefix(kind.prefix())?;
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let is_secret = digits.len() == BYTES * 2 && digits.bytes().all(is_digit);
        is_secret.then(|| Self(text.to_owned()))
    }

    /// A plain hash is enough: there are too many secrets to try.
    pub fn hash(&self) -> SecretHash {
        SecretHash(hex(digest(&SHA256, self.0.as_bytes()).as_ref()))
    }

    /// For the one who is to have it, once.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Makes a token; its secret is given once and cannot be read again.
pub async fn create_token(
    store: &(impl TokenStore + ?Sized),
    name: &str,
    role: AccessRole,
) -> Result<(AccessToken, Secret), StoreError> {
    let secret = Secret::random(SecretKind::Token)
        .map_err(|error| StoreError::Database(error.to_string()))?;
    let new = NewToken {
        name: name.to_owned(),
        role,
        hash: secret.hash(),
    };
    Ok((store.create_token(new).await?, secret))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "this is a test")]

    use super::*;

    #[test]
    fn secrets_are_told_apart_by_kind_and_never_repeat() {
        let token = Secret::random(SecretKind::Token).unwrap();
        let cookie = Secret::random(SecretKind::Cookie).unwrap();
        assert_ne!(token, Secret::random(SecretKind::Token).unwrap());
        assert_eq!(
            Secret::parse(SecretKind::Token, token.reveal()),
            Some(token.clone())
        );
        assert_eq!(Secret::parse(SecretKind::Token, cookie.reveal()), None);
        assert_eq!(Secret::parse(SecretKind::Cookie, token.reveal()), None);
        for text in [
            "",
            "cspr_",
            "cspr_00",
            &token.reveal()[1..],
            &token.reveal().to_uppercase(),
        ] {
            assert_eq!(Secret::parse(SecretKind::Token, text), None, "{text}");
        }
        assert_eq!(format!("{token:?}"), "Secret(…)");
        assert_eq!(token.hash().0.len(), 64);
    }
}
