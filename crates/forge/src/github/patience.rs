//! How long we wait for GitHub, and how often we ask again.

use std::time::Duration;

use codespar_protocol::Backoff;

/// How often and how patiently a request that failed is sent again. With the defaults a request
/// that keeps failing is given up after five tries and at most 7.5 seconds of waiting, besides the
/// time that the tries themselves take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Tries in all, the first included.
    pub max_tries: u32,
    /// Before the second try; doubles with each further one.
    pub first_delay: Duration,
    /// What the doubling stops at.
    pub longest_delay: Duration,
    /// How long one request waits, in all, for a limit on requests to be lifted. What takes longer
    /// is `ForgeError::RateLimited`.
    pub longest_limit_wait: Duration,
    /// For one answer, from the connection to its last byte.
    pub timeout: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            max_tries: 5,
            first_delay: Duration::from_millis(500),
            longest_delay: Duration::from_secs(16),
            longest_limit_wait: Duration::from_secs(90),
            timeout: Duration::from_secs(60),
        }
    }
}

impl Patience {
    /// How long to wait after try `attempt` (from 1) failed; up to a quarter less, at random, so
    /// that many do not come back at once.
    pub(super) fn delay(&self, attempt: u32) -> Duration {
        let backoff = Backoff {
            first: self.first_delay,
            longest: self.longest_delay,
        };
        backoff.jittered_delay(attempt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_cap_and_lose_at_most_a_quarter() {
        let patience = Patience::default();
        for (attempt, full) in [(1, 500), (2, 1000), (3, 2000), (6, 16_000), (90, 16_000)] {
            let full = Duration::from_millis(full);
            let delay = patience.delay(attempt);
            assert!(delay <= full && delay >= full.mul_f64(0.75), "{delay:?}");
        }
    }
}
