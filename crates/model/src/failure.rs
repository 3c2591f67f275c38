//! A try that failed, and whether the next one may do better.
//!
//! The decision is made where the failure is understood, and carried out elsewhere (`call.rs`).
//! What the server says about retrying wins over what the status suggests. A certificate that is
//! not accepted, a request that cannot be built and a conversation that is too long are final.

use std::{error::Error as _, io, time::Duration};

use serde_json::Value;

use crate::{
    ModelError,
    http::chain,
    retry::{Advice, kind_is_transient, status_is_transient},
};

const EXCERPT: usize = 300;

/// What went wrong with one try.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) error: ModelError,
    pub(crate) retry: Retry,
}

/// Whether to try again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retry {
    Never,
    /// After the delay the server named, or our own.
    After(Option<Duration>),
}

impl Failure {
    /// The connection did not come about, or broke before the answer began. An error before the
    /// connection stood cannot have been charged for. One that broke later may have been.
    pub(crate) fn connection(provider: &'static str, url: String, error: reqwest::Error) -> Self {
        let error = error.without_url();
        let untrusted = certificate_was_refused(&error);
        let hopeless = untrusted || error.is_builder();
        let may_have_arrived = !hopeless && !error.is_connect();
        let mut message = chain(&error);
        if untrusted {
            message.push_str(
                " (check the system's root certificates: the ca-certificates package, or \
                 SSL_CERT_FILE for a certificate of your own)",
            );
        }
        Self {
            error: ModelError::Connection {
                provider,
                url,
                message,
                may_have_arrived,
            },
            retry: if hopeless {
                Retry::Never
            } else {
                Retry::After(None)
            },
        }
    }

    /// The provider answered with an error status. 413 and the messages about size become
    /// [`ModelError::ContextWindowExceeded`], on which the agent compacts the conversation and asks
    /// again.
    pub(crate) fn status(
        provider: &'static str,
        status: u16,
        said: ErrorBody,
        advice: Advice,
    ) -> Self {
        let about_size = matches!(status, 400 | 422) && said.is_about_the_context_window();
        if status == 413 || about_size {
            return Self::never(ModelError::ContextWindowExceeded {
                message: said.message,
            });
        }
        let again = advice
            .should_retry
            .unwrap_or_else(|| status_is_transient(status));
        Self {
            error: ModelError::Api {
                provider,
                status,
                kind: said.kind,
                message: said.message,
            },
            retry: if again {
                Retry::After(advice.after)
            } else {
                Retry::Never
            },
        }
    }

    /// What the wire layer, or the stream under it, ran into. A broken or malformed stream is worth
    /// another try: the next one usually is whole.
    pub(crate) fn in_stream(error: ModelError) -> Self {
        let again = match &error {
            ModelError::BrokenStream { .. } | ModelError::Malformed { .. } => true,
            ModelError::Api { kind, .. } => kind_is_transient(kind),
            _ => false,
        };
        Self {
            error,
            retry: if again {
                Retry::After(None)
            } else {
                Retry::Never
            },
        }
    }

    /// Not worth another try.
    pub(crate) fn never(error: ModelError) -> Self {
        Self {
            error,
            retry: Retry::Never,
        }
    }
}

/// What a provider says in an error.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ErrorBody {
    pub(crate) kind: String,
    pub(crate) message: String,
}

impl ErrorBody {
    /// Reads the body of an error answer, whatever its shape. Never fails; a body of unknown shape
    /// is quoted.
    pub(crate) fn read(text: &str) -> Self {
        match serde_json::from_str::<Value>(text) {
            Ok(body) => Self::from_json(&body),
            Err(_) => Self {
                kind: "unknown".to_owned(),
                message: excerpt(text),
            },
        }
    }

    /// `{"error":{"type","message"}}`, `{"error":"…"}`, `{"message"}` or `{"detail"}`.
    pub(crate) fn from_json(body: &Value) -> Self {
        let error = body.get("error").unwrap_or(body);
        let word = |value: &Value| match value {
            Value::String(text) if !text.is_empty() => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        let field = |name: &str| error.get(name).or_else(|| body.get(name)).and_then(word);
        let message = word(error)
            .or_else(|| field("message"))
            .or_else(|| field("detail"))
            .unwrap_or_else(|| excerpt(&body.to_string()));
        // At the top level `type` is only the word "error".
        let kind = error.get("type").and_then(word);
        Self {
            kind: kind
                .filter(|kind| kind != "error")
                .or_else(|| field("code"))
                .unwrap_or_else(|| "unknown".to_owned()),
            message,
        }
    }

    /// The same complaint, in the words of the providers and local servers we have met.
    fn is_about_the_context_window(&self) -> bool {
        let message = self.message.to_lowercase();
        matches!(
            self.kind.as_str(),
            "request_too_large" | "context_length_exceeded" | "exceed_context_size_error"
        ) || [
            "prompt is too long",
            "exceed context limit",
            "maximum context length",
            "exceeds the available context size",
            "context_length_exceeded",
            "context window",
        ]
        .iter()
        .any(|phrase| message.contains(phrase))
    }

    /// The error inside a stream. The status is 200, because that is what the answer began with;
    /// the kind decides about a retry.
    pub(crate) fn into_stream_error(self, provider: &'static str) -> ModelError {
        if self.is_about_the_context_window() {
            return ModelError::ContextWindowExceeded {
                message: self.message,
            };
        }
        ModelError::Api {
            provider,
            status: 200,
            kind: self.kind,
            message: self.message,
        }
    }
}

/// The beginning of a text, in one line.
pub(crate) fn excerpt(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(EXCERPT) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None if line.is_empty() => "(no message)".to_owned(),
        None => line,
    }
}

fn certificate_was_refused(error: &reqwest::Error) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        if matches!(tls_error(error), Some(rustls::Error::InvalidCertificate(_))) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// I/O errors carry the TLS error inside, sometimes several layers deep, but do not name it as
/// their source.
fn tls_error<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a rustls::Error> {
    if let Some(tls) = error.downcast_ref() {
        return Some(tls);
    }
    let inner = error.downcast_ref::<io::Error>()?.get_ref()?;
    tls_error(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(kind: &str, message: &str) -> ErrorBody {
        ErrorBody {
            kind: kind.to_owned(),
            message: message.to_owned(),
        }
    }

    #[test]
    fn errors_are_read_in_every_shape_servers_send_them() {
        let cases = [
            (
                r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                body("overloaded_error", "Overloaded"),
            ),
            (
                r#"{"error":{"message":"bad key","type":"","code":"invalid_api_key"}}"#,
                body("invalid_api_key", "bad key"),
            ),
            (
                r#"{"error":{"code":502,"message":"up"}}"#,
                body("502", "up"),
            ),
            (
                r#"{"error":"model not found"}"#,
                body("unknown", "model not found"),
            ),
            (r#"{"detail":"Not Found"}"#, body("unknown", "Not Found")),
            (
                "<html>\n<b>Bad</b>  gateway",
                body("unknown", "<html> <b>Bad</b> gateway"),
            ),
            ("", body("unknown", "(no message)")),
        ];
        for (text, expected) in cases {
            assert_eq!(ErrorBody::read(text), expected, "{text}");
        }
    }

    #[test]
    fn a_conversation_that_does_not_fit_is_told_apart_from_other_bad_requests() {
        let fits = |status, kind: &str, message: &str| {
            let failure = Failure::status("x", status, body(kind, message), Advice::default());
            assert_eq!(failure.retry, Retry::Never);
            !matches!(failure.error, ModelError::ContextWindowExceeded { .. })
        };
        let kind = "invalid_request_error";
        assert!(!fits(
            400,
            kind,
            "prompt is too long: 200001 tokens > 200000 maximum"
        ));
        assert!(!fits(400, "context_length_exceeded", "too many"));
        assert!(!fits(
            413,
            "request_too_large",
            "Request exceeds the maximum size"
        ));
        assert!(fits(
            400,
            kind,
            "messages: at least one message is required"
        ));
    }
}
