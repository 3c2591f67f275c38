//! Things that go wrong on purpose.
//!
//! A fault replaces one attempt at a turn. It belongs to the turn, so a test reads as what the
//! client will meet: refused once, cut off once, then well. How a fault looks on the wire is
//! decided in `plan.rs`, for streamed answers and for those in one piece.
//!
//! ```text
//! {"status": 429, "retry_after_ms": 5}      an HTTP error with headers
//! {"cut_after_events": 3}                   a stream that breaks off
//! {"error_after_events": 3, "error": {…}}   an error in mid-stream
//! {"garbage": "page"}                       status 200 with a web page
//! ```

use serde::Deserialize;
use serde_json::Value;

/// One failed attempt. "After n events" counts server-sent events; an answer that is not
/// streamed breaks before its first byte when n is 0 and half-way through otherwise.
///
/// Two kinds differ for an answer that is not streamed: `PingAfterEvents` is silence there, and
/// `ErrorAfterEvents` is status 200 with an error as its body.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// An HTTP status other than 200.
    Status(StatusFault),
    /// The connection is cut after this many bytes of the body. If there are not so many, all of
    /// them are sent, and a stream still lacks its last chunk.
    CutAfterBytes(usize),
    /// The connection is cut after this many events.
    CutAfterEvents(usize),
    /// The body ends in good order after this many events, without the rest.
    EndAfterEvents(usize),
    /// An `error` event after this many events; then the body ends in good order.
    ErrorAfterEvents {
        /// How many events come before.
        events: usize,
        /// The error's type, such as `overloaded_error`.
        kind: String,
        /// What it says.
        message: String,
    },
    /// Silence after this many events, until the client goes away.
    HangAfterEvents(usize),
    /// Nothing but keep-alive events after this many events, until the client goes away.
    PingAfterEvents(usize),
    /// Silence in place of an answer, until the client goes away.
    HangBeforeHeaders,
    /// Status 200 with a body that makes no sense.
    Garbage(Garbage),
    /// The connection is reset before any header.
    Reset,
}

/// What kind of nonsense is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Garbage {
    /// An event whose data is not JSON, after this many good ones.
    Json(usize),
    /// Bytes that are not server-sent events nor UTF-8, after this many good events.
    Sse(usize),
    /// A web page, as a proxy in between might send.
    Page,
}

/// An HTTP error. Made by [`Fault::status`]; converts into a [`Fault`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StatusFault {
    pub(crate) status: u16,
    pub(crate) retry_after_ms: Option<u64>,
    pub(crate) retry_after: Option<String>,
    pub(crate) should_retry: Option<bool>,
    /// None: an object with the word for the status and a message that names the script.
    pub(crate) error: Option<Value>,
}

impl StatusFault {
    /// The header `retry-after-ms`.
    pub fn retry_after_ms(mut self, milliseconds: u64) -> Self {
        self.retry_after_ms = Some(milliseconds);
        self
    }

    /// The header `retry-after`: seconds or a date.
    pub fn retry_after(mut self, value: impl Into<String>) -> Self {
        self.retry_after = Some(value.into());
        self
    }

    /// The header `x-should-retry: true`.
    pub fn worth_retrying(mut self) -> Self {
        self.should_retry = Some(true);
        self
    }

    /// The header `x-should-retry: false`.
    pub fn not_worth_retrying(mut self) -> Self {
        self.should_retry = Some(false);
        self
    }

    /// The `error` object of the body; by default one that suits the status.
    pub fn error(mut self, kind: &str, message: &str) -> Self {
        self.error = Some(serde_json::json!({"type": kind, "message": message}));
        self
    }
}

impl From<StatusFault> for Fault {
    fn from(fault: StatusFault) -> Self {
        Self::Status(fault)
    }
}

impl Fault {
    /// An answer with this HTTP status.
    pub fn status(status: u16) -> StatusFault {
        StatusFault {
            status,
            ..StatusFault::default()
        }
    }

    /// `overloaded_error` in mid-stream.
    pub fn overloaded_after_events(events: usize) -> Self {
        Self::ErrorAfterEvents {
            events,
            kind: "overloaded_error".to_owned(),
            message: "Overloaded".to_owned(),
        }
    }
}

/// The word an API uses for an error with this status.
pub(crate) fn error_kind(status: u16) -> &'static str {
    match status {
        400 => "invalid_request_error",
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        529 => "overloaded_error",
        _ => "api_error",
    }
}

/// The JSON form: one object for all kinds, so that a mistake can be named.
///
/// `error` belongs to `status` and `error_after_events`, `after_events` to `garbage`, and the
/// headers to `status`; anywhere else they are mistakes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FaultForm {
    status: Option<u16>,
    retry_after_ms: Option<u64>,
    retry_after: Option<String>,
    should_retry: Option<bool>,
    error: Option<Value>,
    cut_after_bytes: Option<usize>,
    cut_after_events: Option<usize>,
    end_after_events: Option<usize>,
    error_after_events: Option<usize>,
    hang_after_events: Option<usize>,
    ping_after_events: Option<usize>,
    hang: Option<HangForm>,
    garbage: Option<GarbageForm>,
    after_events: Option<usize>,
    reset: Option<ResetForm>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum HangForm {
    BeforeHeaders,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum ResetForm {
    BeforeHeaders,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum GarbageForm {
    Json,
    Sse,
    Page,
}

impl FaultForm {
    /// Exactly one kind, and no field that belongs to another.
    pub(crate) fn into_fault(self) -> Result<Fault, String> {
        if self.status.is_none()
            && (self.retry_after_ms.is_some()
                || self.retry_after.is_some()
                || self.should_retry.is_some())
        {
            return Err("`retry_after…` and `should_retry` go with `status`".to_owned());
        }
        if self.error.is_some() && self.status.is_none() && self.error_after_events.is_none() {
            return Err("`error` goes with `status` or `error_after_events`".to_owned());
        }
        if self.after_events.is_some() && self.garbage.is_none() {
            return Err("`after_events` goes with `garbage`".to_owned());
        }
        let after = self.after_events.unwrap_or(0);
        let (kind, message) = mid_stream_error(self.error.as_ref());
        let status = self.status.map(|status| {
            Fault::Status(StatusFault {
                status,
                retry_after_ms: self.retry_after_ms,
                retry_after: self.retry_after,
                should_retry: self.should_retry,
                error: self.error,
            })
        });
        let kinds = [
            status,
            self.cut_after_bytes.map(Fault::CutAfterBytes),
            self.cut_after_events.map(Fault::CutAfterEvents),
            self.end_after_events.map(Fault::EndAfterEvents),
            self.error_after_events
                .map(|events| Fault::ErrorAfterEvents {
                    events,
                    kind,
                    message,
                }),
            self.hang_after_events.map(Fault::HangAfterEvents),
            self.ping_after_events.map(Fault::PingAfterEvents),
            self.hang.map(|_| Fault::HangBeforeHeaders),
            self.garbage.map(|form| {
                Fault::Garbage(match form {
                    GarbageForm::Json => Garbage::Json(after),
                    GarbageForm::Sse => Garbage::Sse(after),
                    GarbageForm::Page => Garbage::Page,
                })
            }),
            self.reset.map(|_| Fault::Reset),
        ];
        let mut given = kinds.into_iter().flatten();
        match (given.next(), given.next()) {
            (Some(fault), None) => Ok(fault),
            (None, _) => Err(
                "a fault needs one of: status, cut_after_bytes, cut_after_events, \
                 end_after_events, error_after_events, hang_after_events, ping_after_events, hang, garbage, \
                 reset"
                    .to_owned(),
            ),
            (Some(_), Some(_)) => {
                Err("a fault is of one kind; write two faults for two attempts".to_owned())
            }
        }
    }
}

/// Type and message; those of an overloaded provider where they are not given.
fn mid_stream_error(error: Option<&Value>) -> (String, String) {
    let field = |name: &str, default: &str| {
        error
            .and_then(|error| error[name].as_str())
            .unwrap_or(default)
            .to_owned()
    };
    (
        field("type", "overloaded_error"),
        field("message", "Overloaded"),
    )
}
