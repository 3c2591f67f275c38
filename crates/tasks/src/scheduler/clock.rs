//! The time that this process goes by: it only ever goes forward, and nobody sets it.

use std::time::{Duration, Instant};

use async_trait::async_trait;

#[async_trait]
pub(super) trait Clock: Send + Sync {
    /// Time since some beginning.
    fn now(&self) -> Duration;

    /// Returns when so much time has passed.
    async fn sleep(&self, time: Duration);
}

/// The clock of the machine that a change of the date does not move.
pub(super) struct Monotonic(Instant);

impl Default for Monotonic {
    fn default() -> Self {
        Self(Instant::now())
    }
}

#[async_trait]
impl Clock for Monotonic {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    async fn sleep(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}
