//! When to try again and after how long: what the server says first, our own backoff otherwise.

use std::time::Duration;

use codespar_protocol::Backoff;
use jiff::{Timestamp, fmt::rfc2822};
use reqwest::header::HeaderMap;

/// How often and how patiently a failed call is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Tries in all, the first included; at least one is made.
    pub max_tries: u32,
    /// Before the second try; doubles with each further one.
    pub first_delay: Duration,
    /// What the doubling stops at.
    pub longest_delay: Duration,
    /// From the first failure of a call to the start of its last try. A server that names a
    /// delay beyond it is not waited for.
    pub patience: Duration,
}

impl Default for RetryPolicy {
    /// Eight tries: about a minute of our own waiting.
    fn default() -> Self {
        Self {
            max_tries: 8,
            first_delay: Duration::from_millis(500),
            longest_delay: Duration::from_secs(32),
            patience: Duration::from_secs(300),
        }
    }
}

impl RetryPolicy {
    /// How long to wait after try `attempt` (from 1) failed. Our own delays lose up to a quarter
    /// at random so that a thousand agents do not come back at once.
    pub(crate) fn delay(&self, attempt: u32, named: Option<Duration>) -> Duration {
        if let Some(named) = named {
            return named;
        }
        let backoff = Backoff {
            first: self.first_delay,
            longest: self.longest_delay,
        };
        backoff.jittered_delay(attempt)
    }
}

/// A time for people: whole seconds, or tenths of a short one.
pub(crate) fn seconds(time: Duration) -> String {
    if time.subsec_millis() == 0 || time.as_secs() >= 10 {
        format!("{} s", time.as_secs())
    } else {
        format!("{:.1} s", time.as_secs_f32())
    }
}

/// What the headers of an answer say about trying again. `should_retry` overrides what the status
/// suggests, in both directions.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Advice {
    pub(crate) should_retry: Option<bool>,
    pub(crate) after: Option<Duration>,
}

impl Advice {
    pub(crate) fn read(headers: &HeaderMap, now: Timestamp) -> Self {
        let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
        let seconds = |text: &str, unit: f64| -> Option<Duration> {
            Duration::try_from_secs_f64(text.parse::<f64>().ok()? * unit).ok()
        };
        let after_ms = || text("retry-after-ms").map(|value| seconds(value, 0.001));
        let after = || {
            let value = text("retry-after")?;
            seconds(value, 1.0).or_else(|| until(value, now))
        };
        Self {
            should_retry: match text("x-should-retry") {
                Some("true") => Some(true),
                Some("false") => Some(false),
                _ => None,
            },
            after: after_ms().flatten().or_else(after),
        }
    }
}

/// The time until an HTTP date; one that has passed is no wait at all.
fn until(date: &str, now: Timestamp) -> Option<Duration> {
    let at = rfc2822::DateTimeParser::new().parse_timestamp(date).ok()?;
    Some(Duration::try_from(at.duration_since(now)).unwrap_or(Duration::ZERO))
}

/// Answers that may be different next time.
pub(crate) fn status_is_transient(status: u16) -> bool {
    matches!(status, 408 | 409 | 429 | 500..=599)
}

/// The words for the same inside a stream, where the status was 200.
pub(crate) fn kind_is_transient(kind: &str) -> bool {
    matches!(
        kind,
        "overloaded_error"
            | "api_error"
            | "rate_limit_error"
            | "timeout_error"
            | "server_error"
            | "internal_server_error"
            | "rate_limit_exceeded"
            | "service_unavailable"
    ) || kind.parse().is_ok_and(status_is_transient)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(pairs: &[(&'static str, &'static str)]) -> Advice {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.insert(*name, value.parse().unwrap());
        }
        Advice::read(&headers, "2026-01-01T00:00:00Z".parse().unwrap())
    }

    #[test]
    fn the_server_names_the_delay_in_three_ways_and_the_finest_wins() {
        let after = |pairs: &[_]| advice(pairs).after;
        assert_eq!(
            after(&[("retry-after-ms", "250"), ("retry-after", "9")]),
            Some(Duration::from_millis(250))
        );
        assert_eq!(after(&[("retry-after", "9")]), Some(Duration::from_secs(9)));
        assert_eq!(
            after(&[("retry-after", "Thu, 01 Jan 2026 00:00:07 GMT")]),
            Some(Duration::from_secs(7))
        );
        assert_eq!(
            after(&[("retry-after", "Thu, 01 Jan 2015 00:00:07 GMT")]),
            Some(Duration::ZERO)
        );
        for nonsense in ["soon", "-1", "NaN", "1e300", ""] {
            let headers =
                HeaderMap::from_iter([(reqwest::header::RETRY_AFTER, nonsense.parse().unwrap())]);
            assert_eq!(Advice::read(&headers, Timestamp::UNIX_EPOCH).after, None);
        }
    }

    #[test]
    fn the_server_can_ask_for_a_retry_or_refuse_it() {
        let should = |value| advice(&[("x-should-retry", value)]).should_retry;
        assert_eq!(should("true"), Some(true));
        assert_eq!(should("false"), Some(false));
        assert_eq!(should("perhaps"), None);
    }

    #[test]
    fn delays_double_up_to_the_cap_and_lose_at_most_a_quarter() {
        let policy = RetryPolicy::default();
        for (attempt, full) in [(1, 500), (2, 1000), (4, 4000), (7, 32_000), (90, 32_000)] {
            let full = Duration::from_millis(full);
            let delay = policy.delay(attempt, None);
            assert!(delay <= full && delay >= full.mul_f64(0.75), "{delay:?}");
        }
    }

    #[test]
    fn a_delay_named_by_the_server_is_taken_as_it_is() {
        let named = Duration::from_secs(77);
        assert_eq!(RetryPolicy::default().delay(3, Some(named)), named);
    }

    #[test]
    fn only_answers_that_may_change_are_tried_again() {
        for status in [408, 409, 429, 500, 502, 503, 529] {
            assert!(status_is_transient(status), "{status}");
        }
        for status in [200, 301, 400, 401, 403, 404, 413, 422] {
            assert!(!status_is_transient(status), "{status}");
        }
        assert!(kind_is_transient("overloaded_error") && kind_is_transient("503"));
        assert!(!kind_is_transient("invalid_request_error") && !kind_is_transient("400"));
    }
}
