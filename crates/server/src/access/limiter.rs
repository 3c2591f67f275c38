//! How often: a bucket for each client that fills up with time.

use std::{collections::HashMap, hash::Hash, time::Instant};

use parking_lot::Mutex;

/// Buckets are kept for so many clients. Full ones are forgotten first: they say nothing.
const MOST_KEYS: usize = 10_000;

pub(super) struct RateLimiter<K> {
    burst: f64,
    per_second: f64,
    buckets: Mutex<HashMap<K, Bucket>>,
}

struct Bucket {
    left: f64,
    at: Instant,
}

impl<K: Hash + Eq + Clone> RateLimiter<K> {
    pub(super) fn new(burst: u32, per_second: f64) -> Self {
        Self {
            burst: f64::from(burst),
            per_second,
            buckets: Mutex::default(),
        }
    }

    /// Takes one from the client's bucket, if there is one.
    pub(super) fn allows(&self, key: &K) -> bool {
        self.allows_at(key, Instant::now())
    }

    fn allows_at(&self, key: &K, now: Instant) -> bool {
        let mut buckets = self.buckets.lock();
        if buckets.len() >= MOST_KEYS && !buckets.contains_key(key) {
            buckets.retain(|_, bucket| self.level(bucket, now) < self.burst);
            if buckets.len() >= MOST_KEYS {
                return false;
            }
        }
        let full = Bucket {
            left: self.burst,
            at: now,
        };
        let bucket = buckets.entry(key.clone()).or_insert(full);
        bucket.left = self.level(bucket, now);
        bucket.at = now;
        if bucket.left < 1.0 {
            return false;
        }
        bucket.left -= 1.0;
        true
    }

    fn level(&self, bucket: &Bucket, now: Instant) -> f64 {
        let waited = now.saturating_duration_since(bucket.at).as_secs_f64();
        (bucket.left + waited * self.per_second).min(self.burst)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_client_has_a_bucket_that_fills_up_again() {
        let limiter = RateLimiter::new(2, 1.0);
        let now = Instant::now();
        let at = |key: &str, seconds: u64| {
            limiter.allows_at(&key.to_owned(), now + Duration::from_secs(seconds))
        };
        assert!(at("a", 0) && at("a", 0));
        assert!(!at("a", 0));
        assert!(at("b", 0));
        assert!(at("a", 1));
        assert!(!at("a", 1));
        assert!(at("a", 100) && at("a", 100));
        assert!(!at("a", 100));
    }

    #[test]
    fn clients_without_number_do_not_fill_the_memory() {
        let limiter = RateLimiter::new(1, 1.0);
        let now = Instant::now();
        for key in 0..MOST_KEYS {
            assert!(limiter.allows_at(&key, now));
        }
        assert!(!limiter.allows_at(&MOST_KEYS, now));
        assert!(limiter.allows_at(&MOST_KEYS, now + Duration::from_secs(2)));
        assert_eq!(limiter.buckets.lock().len(), 1);
    }
}
