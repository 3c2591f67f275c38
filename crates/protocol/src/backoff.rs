//! How long to wait before something is tried again.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

/// Delays that double with every failure, up to a longest one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    pub first: Duration,
    pub longest: Duration,
}

impl Backoff {
    /// How long to wait after try `attempt` (from 1) failed.
    pub fn delay(&self, attempt: u32) -> Duration {
        let doublings = attempt.saturating_sub(1).min(16);
        self.first.saturating_mul(1 << doublings).min(self.longest)
    }

    /// The same, up to a quarter less at random: those that failed together do not come back
    /// together.
    pub fn jittered_delay(&self, attempt: u32) -> Duration {
        self.delay(attempt).mul_f64(1.0 - random_fraction() / 4.0)
    }
}

/// A random number from 0 to 1, for times that should not be the same everywhere; the standard library's hash keys are random enough for this.
pub fn random_fraction() -> f64 {
    let bits = RandomState::new().hash_one(());
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_longest() {
        let backoff = Backoff {
            first: Duration::from_millis(500),
            longest: Duration::from_secs(3),
        };
        let delays = [0, 1, 2, 3, 4, u32::MAX].map(|attempt| backoff.delay(attempt));
        assert_eq!(
            delays.map(|d| d.as_millis()),
            [500, 500, 1000, 2000, 3000, 3000]
        );
        for attempt in 1..50 {
            let (full, less) = (backoff.delay(attempt), backoff.jittered_delay(attempt));
            assert!(less <= full && less >= full.mul_f64(0.75), "{less:?}");
        }
    }
}
