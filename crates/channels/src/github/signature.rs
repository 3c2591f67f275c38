//! Whether a delivery comes from GitHub: `X-Hub-Signature-256` over the raw body.
//!
//! There is no time stamp in it; a replay is the same message, and is on record already.

use http::HeaderMap;
use secrecy::SecretString;

use crate::hook_secret::is_signed;

/// Checked in constant time. The older header with SHA-1 does not count.
pub(super) fn is_valid(secret: &SecretString, headers: &HeaderMap, body: &[u8]) -> bool {
    let header = headers.get("x-hub-signature-256");
    let header = header.and_then(|value| value.to_str().ok());
    header.is_some_and(|header| is_signed(secret, header, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of GitHub's documentation.
    const SECRET: &str = "It's a Secret to Everybody";
    const BODY: &str = "Hello, World!";
    const SIGNATURE: &str =
        "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

    fn checked(signature: Option<&str>, body: &str) -> bool {
        let mut headers = HeaderMap::new();
        if let Some(signature) = signature {
            headers.insert("x-hub-signature-256", signature.parse().unwrap());
        }
        is_valid(&SecretString::from(SECRET), &headers, body.as_bytes())
    }

    #[test]
    fn only_the_signature_over_this_very_body_counts() {
        assert!(checked(Some(SIGNATURE), BODY));
        for (signature, body) in [
            (None, BODY),
            (Some(SIGNATURE), "Hello, World"),
            (Some("sha256="), BODY),
            (Some("sha256=zz"), BODY),
            (Some(&SIGNATURE[..SIGNATURE.len() - 1]), BODY),
            (Some(&SIGNATURE[7..]), BODY),
            (Some("sha1=757107ea0eb2509fc211221cce984b8a37570b6d"), BODY),
        ] {
            assert!(!checked(signature, body), "{signature:?}");
        }
    }
}
