//! What can come of a request besides an answer, and the words for it.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::api::Call;
use crate::ForgeError;

const EXCERPT: usize = 300;

/// A request that did not bring what was asked for. It stays inside this module tree, where callers
/// react to single statuses; [`Failure::explain`] turns it into the error of the trait at the
/// boundary.
#[derive(Debug)]
pub(super) enum Failure {
    /// GitHub said no.
    Said(Said),
    /// There was no answer, or one that says nothing about what happened. A connection error, a
    /// timeout, or a status 408 or 5xx.
    Lost { reason: String, effect: Effect },
    /// A limit on requests is used up.
    Limited(Timestamp),
    /// Something found on the way.
    Other(ForgeError),
}

/// Whether what was asked for may have happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    None,
    /// Assumed whenever the request may have left this machine.
    Perhaps,
}

/// A refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) status: u16,
    /// All that it says, in one line.
    pub(super) message: String,
    /// The permissions it would take, as GitHub names them.
    pub(super) permissions: Option<String>,
}

impl Said {
    /// Compares in lower case: `text` must be lower case, and part of the message.
    pub(super) fn is(&self, status: u16, text: &str) -> bool {
        self.status == status && self.message.to_lowercase().contains(text)
    }
}

impl From<ForgeError> for Failure {
    fn from(error: ForgeError) -> Self {
        Self::Other(error)
    }
}

impl Failure {
    /// In the words of the forge.
    pub(super) fn explain(self, call: &Call) -> ForgeError {
        let what = call.what.clone();
        match self {
            Self::Said(said) => refused(said, call),
            Self::Lost { reason, .. } => ForgeError::Unavailable { what, reason },
            Self::Limited(until) => ForgeError::RateLimited(format!("at {until:.0}")),
            Self::Other(error) => error,
        }
    }
}

/// 404 is also what GitHub answers when a token may not see something, so the text mentions both.
/// The permission named by GitHub is preferred to the one that the call expects.
fn refused(said: Said, call: &Call) -> ForgeError {
    let what = call.what.clone();
    let Said {
        status,
        message,
        permissions,
    } = said;
    match status {
        401 => ForgeError::Forbidden {
            what,
            reason: format!(
                "GitHub does not accept the token ({message}); it may be mistyped, expired or revoked"
            ),
        },
        403 => {
            let needs = permissions.unwrap_or_else(|| call.needs.to_owned());
            ForgeError::Forbidden {
                what,
                reason: format!("{message} (the token likely lacks the permission {needs})"),
            }
        }
        404 | 410 => ForgeError::NotFound(format!(
            "{what}, or the token may not see it (it takes the permission {})",
            permissions.as_deref().unwrap_or(call.needs)
        )),
        _ => ForgeError::Refused(format!("{what}: {message} ({status})")),
    }
}

#[derive(Deserialize)]
struct ErrorBody {
    message: String,
    #[serde(default)]
    errors: Value,
}

/// The message of an error's body and its details, in one line. A body that is no JSON (a proxy's
/// page) is reduced to its first 300 characters.
pub(super) fn message_of(body: &[u8]) -> String {
    let Ok(error) = serde_json::from_slice::<ErrorBody>(body) else {
        let text = String::from_utf8_lossy(body);
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        return line.chars().take(EXCERPT).collect();
    };
    let details: Vec<String> = match &error.errors {
        Value::Array(details) => details.iter().map(detail).collect(),
        Value::String(detail) => vec![detail.clone()],
        _ => Vec::new(),
    };
    if details.is_empty() {
        return error.message;
    }
    format!("{}: {}", error.message, details.join("; "))
}

fn detail(value: &Value) -> String {
    if let Some(text) = value.as_str().or(value["message"].as_str()) {
        return text.to_owned();
    }
    let word = |name: &str| value[name].as_str().unwrap_or_default();
    let parts = [word("resource"), word("field"), word("code")];
    parts.map(str::trim).join(" ").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_said_in_words_that_fit_any_noun() {
        let url = "https://api.github.com/x".parse().unwrap();
        let what = "the checks of commit 1234567 of acme/shop";
        let said = Said {
            status: 404,
            message: "Not Found".to_owned(),
            permissions: None,
        };
        let error = Failure::Said(said).explain(&Call::get(url, what, "Checks: read"));
        assert_eq!(
            error.to_string(),
            "not found: the checks of commit 1234567 of acme/shop, or the token may not see it (it \
             takes the permission Checks: read)"
        );
    }

    #[test]
    fn an_error_is_told_with_all_its_details() {
        let body = br#"{"message":"Validation Failed","errors":[
            {"resource":"PullRequest","code":"custom","message":"No commits between main and x"},
            {"resource":"PullRequest","field":"base","code":"invalid"}, "and more"]}"#;
        assert_eq!(
            message_of(body),
            "Validation Failed: No commits between main and x; PullRequest base invalid; and more"
        );
        assert_eq!(message_of(br#"{"message":"Not Found"}"#), "Not Found");
        assert_eq!(message_of(b"<html>\n  Bad Gateway"), "<html> Bad Gateway");
    }
}
