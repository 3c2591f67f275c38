//! Secrets and signatures of webhooks, compared in constant time.
//!
//! A comparison that ends at the first difference would tell an attacker how much of a guess is right.

use ring::hmac;
use secrecy::{ExposeSecret, SecretString};

/// Whether a delivery has the secret that was agreed on. Nothing can be learnt from the time this
/// takes, neither what is right nor how long it is: tags are compared, not texts.
pub(crate) fn is_secret(secret: &SecretString, given: &[u8]) -> bool {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.expose_secret().as_bytes());
    let expected = hmac::sign(&key, secret.expose_secret().as_bytes());
    hmac::verify(&key, given, expected.as_ref()).is_ok()
}

/// Whether a header is `sha256=` and the HMAC of the raw body.
pub(crate) fn is_signed(secret: &SecretString, header: &str, body: &[u8]) -> bool {
    let tag = header.strip_prefix("sha256=").and_then(from_hex);
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.expose_secret().as_bytes());
    tag.is_some_and(|tag| hmac::verify(&key, body, &tag).is_ok())
}

/// Bytes that are written as two digits each.
pub(crate) fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let digits = digits.as_bytes();
    let nibble = |digit: &u8| (*digit as char).to_digit(16);
    let pair = |pair: &[u8]| match pair {
        [high, low] => u8::try_from(nibble(high)? * 16 + nibble(low)?).ok(),
        _ => None,
    };
    digits.chunks(2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_secret_is_the_secret() {
        let secret = SecretString::from("s3cret");
        assert!(is_secret(&secret, b"s3cret"));
        for wrong in ["", "s3cre", "s3cret2", "S3CRET"] {
            assert!(!is_secret(&secret, wrong.as_bytes()), "{wrong}");
        }
    }

    #[test]
    fn a_signature_is_over_the_body() {
        // RFC 4231, test case 2.
        let secret = SecretString::from("Jefe");
        let body = b"what do ya want for nothing?";
        let tag = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert!(is_signed(&secret, &format!("sha256={tag}"), body));
        for wrong in [
            "",
            tag,
            "sha256=",
            "sha256=zz",
            "sha256=5bd",
            &format!("sha1={tag}"),
        ] {
            assert!(!is_signed(&secret, wrong, body), "{wrong}");
        }
        assert!(!is_signed(&secret, &format!("sha256={tag}"), b"else"));
    }
}
