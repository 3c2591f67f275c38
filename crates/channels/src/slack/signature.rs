//! Whether a delivery comes from Slack: version 0 of its signatures.

use http::HeaderMap;
use jiff::Timestamp;
use ring::hmac;
use secrecy::{ExposeSecret, SecretString};

use crate::hook_secret::from_hex;

/// Older deliveries may be replays.
const MOST_SECONDS: i64 = 5 * 60;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum SignatureError {
    #[error("the signature is missing")]
    Missing,
    #[error("the time stamp is too old")]
    TooOld,
    #[error("the signature is wrong")]
    Wrong,
}

/// Checked over the raw body, in constant time.
pub(super) fn check(
    secret: &SecretString,
    headers: &HeaderMap,
    body: &[u8],
    now: Timestamp,
) -> Result<(), SignatureError> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let stamp = header("x-slack-request-timestamp").ok_or(SignatureError::Missing)?;
    let signature = header("x-slack-signature").ok_or(SignatureError::Missing)?;
    let seconds: i64 = stamp.parse().map_err(|_| SignatureError::Missing)?;
    let is_recent = now
        .as_second()
        .checked_sub(seconds)
        .is_some_and(|age| age.abs() <= MOST_SECONDS);
    if !is_recent {
        return Err(SignatureError::TooOld);
    }
    let digits = signature.strip_prefix("v0=").ok_or(SignatureError::Wrong)?;
    let tag = from_hex(digits).ok_or(SignatureError::Wrong)?;
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.expose_secret().as_bytes());
    let signed = [b"v0:", stamp.as_bytes(), b":", body].concat();
    hmac::verify(&key, &signed, &tag).map_err(|_| SignatureError::Wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of Slack's documentation.
    const SECRET: &str = "8f742231b10e8888abcd99yyyzzz85a5";
    const STAMP: &str = "1531420618";
    const BODY: &str = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
    const SIGNATURE: &str = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503";

    fn checked(stamp: &str, signature: &str, body: &str, now: i64) -> Result<(), SignatureError> {
        let mut headers = HeaderMap::new();
        headers.insert("x-slack-request-timestamp", stamp.parse().unwrap());
        headers.insert("x-slack-signature", signature.parse().unwrap());
        let now = Timestamp::from_second(now).unwrap();
        check(&SecretString::from(SECRET), &headers, body.as_bytes(), now)
    }

    #[test]
    fn the_documented_example_is_accepted_for_five_minutes() {
        let at = 1_531_420_618;
        assert_eq!(checked(STAMP, SIGNATURE, BODY, at), Ok(()));
        assert_eq!(checked(STAMP, SIGNATURE, BODY, at + 300), Ok(()));
        for now in [at + 301, at - 301] {
            let replayed = checked(STAMP, SIGNATURE, BODY, now);
            assert_eq!(replayed, Err(SignatureError::TooOld));
        }
    }

    #[test]
    fn anything_forged_is_refused() {
        let at = 1_531_420_618;
        let later = "1531420619";
        for (stamp, signature, body) in [
            (STAMP, SIGNATURE, "token=other"),
            (later, SIGNATURE, BODY),
            (STAMP, "v0=", BODY),
            (STAMP, "v0=zz", BODY),
            (STAMP, &SIGNATURE[3..], BODY),
            (STAMP, &SIGNATURE[..SIGNATURE.len() - 2], BODY),
        ] {
            let found = checked(stamp, signature, body, at);
            assert_eq!(found, Err(SignatureError::Wrong), "{signature}");
        }
        let missing = check(
            &SecretString::from(SECRET),
            &HeaderMap::new(),
            BODY.as_bytes(),
            Timestamp::from_second(at).unwrap(),
        );
        assert_eq!(missing, Err(SignatureError::Missing));
    }
}
