//! Limits on requests: what the headers of an answer say, and until when each kind is shut.
//!
//! GitHub has a primary limit for each kind of request, counted by the hour or the minute, and
//! secondary limits that depend on load. The first is known in advance from headers; the second
//! only shows in a refusal. While a primary limit is used up, requests of its kind wait without
//! being sent; after a refusal, only the refused request waits.

use std::{collections::HashMap, time::Duration};

use jiff::{SignedDuration, Timestamp, fmt::rfc2822};
use parking_lot::Mutex;
use reqwest::header::HeaderMap;

/// GitHub asks for at least this when a secondary limit names no time.
const UNNAMED_WAIT: Duration = Duration::from_secs(60);

/// The kinds of requests that are shut, and until when.
#[derive(Debug, Default)]
pub(super) struct Limits(Mutex<HashMap<String, Timestamp>>);

impl Limits {
    /// When requests of this kind are let in again, if they are not now.
    pub(super) fn shut_until(&self, kind: &str) -> Option<Timestamp> {
        let until = *self.0.lock().get(kind)?;
        (until > Timestamp::now()).then_some(until)
    }

    /// Takes note of what an answer says about its kind. The server's name for the kind wins over
    /// ours.
    pub(super) fn note(&self, asked: &str, headers: &HeaderMap) {
        let kind = text(headers, "x-ratelimit-resource").unwrap_or(asked);
        let mut shut = self.0.lock();
        match used_up(headers) {
            Some(wait) => shut.insert(kind.to_owned(), after(wait)),
            None => shut.remove(kind),
        };
    }
}

/// When an answer that refuses for a limit lets us in again; `None` if it refuses for another
/// reason.
pub(super) fn refused_until(status: u16, headers: &HeaderMap, message: &str) -> Option<Timestamp> {
    if !matches!(status, 403 | 429) {
        return None;
    }
    let named = text(headers, "retry-after").and_then(|value| value.parse().ok());
    let message = message.to_ascii_lowercase();
    let wait = named
        .map(Duration::from_secs)
        .or_else(|| used_up(headers))
        .or_else(|| (status == 429 || message.contains("rate limit")).then_some(UNNAMED_WAIT))?;
    Some(after(wait))
}

/// How long the primary limit stays used up, by the server's own clock where it tells it. The
/// difference of two times of the server, so that a clock of ours that is wrong does no harm. Zero
/// if the reset is already past.
fn used_up(headers: &HeaderMap) -> Option<Duration> {
    if text(headers, "x-ratelimit-remaining")? != "0" {
        return None;
    }
    let reset = text(headers, "x-ratelimit-reset")?.parse().ok()?;
    let reset = Timestamp::from_second(reset).ok()?;
    let date = text(headers, "date")
        .and_then(|date| rfc2822::DateTimeParser::new().parse_timestamp(date).ok());
    let left = reset.duration_since(date.unwrap_or_else(Timestamp::now));
    Some(Duration::try_from(left).unwrap_or(Duration::ZERO))
}

fn after(wait: Duration) -> Timestamp {
    let wait = SignedDuration::try_from(wait).unwrap_or(SignedDuration::MAX);
    Timestamp::now().checked_add(wait).unwrap_or(Timestamp::MAX)
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok().map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (
                reqwest::header::HeaderName::from_static(name),
                value.parse().unwrap(),
            )
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn the_wait_is_counted_by_the_clock_of_the_server() {
        let pairs = [
            ("x-ratelimit-remaining", "0"),
            ("x-ratelimit-reset", "1767225607"),
            ("date", "Thu, 01 Jan 2026 00:00:00 GMT"),
        ];
        assert_eq!(used_up(&headers(&pairs)), Some(Duration::from_secs(7)));
        assert_eq!(
            used_up(&headers(&[("x-ratelimit-remaining", "1"), pairs[1]])),
            None
        );
    }

    #[test]
    fn a_plain_refusal_is_no_limit() {
        let none = headers(&[]);
        assert_eq!(refused_until(403, &none, "Resource not accessible"), None);
        assert_eq!(refused_until(422, &none, "rate limit"), None);
        assert!(refused_until(403, &none, "You have exceeded a secondary rate limit.").is_some());
        assert!(refused_until(429, &none, "").is_some());
        assert!(refused_until(403, &headers(&[("retry-after", "3")]), "").is_some());
    }

    #[test]
    fn a_kind_is_shut_until_its_reset_and_open_when_an_answer_says_so() {
        let limits = Limits::default();
        let soon = (Timestamp::now().as_second() + 900).to_string();
        let shut = headers(&[
            ("x-ratelimit-remaining", "0"),
            ("x-ratelimit-reset", &soon),
            ("x-ratelimit-resource", "code_search"),
        ]);
        limits.note("core", &shut);
        assert!(limits.shut_until("code_search").is_some());
        assert_eq!(limits.shut_until("core"), None);
        limits.note("code_search", &headers(&[("x-ratelimit-remaining", "9")]));
        assert_eq!(limits.shut_until("code_search"), None);
    }
}
