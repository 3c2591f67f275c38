//! Leaves Slack alone for a while after it has refused something that works without.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::SendError;

/// After a refusal for good: an app that lacks something may get it without a restart of ours.
const AFTER_REFUSAL: Duration = Duration::from_secs(10 * 60);
/// After what may work the next time.
const AFTER_FAULT: Duration = Duration::from_secs(30);

/// Until when something is not tried.
#[derive(Default)]
pub(super) struct Quiet(Mutex<Option<Instant>>);

impl Quiet {
    pub(super) fn is_over(&self) -> bool {
        self.0.lock().is_none_or(|until| until <= Instant::now())
    }

    /// Begins with an error, for as long as that suggests.
    pub(super) fn begin(&self, error: &SendError) {
        let wait = match error {
            SendError::RetryAfter(wait) => *wait,
            SendError::Temporary(_) => AFTER_FAULT,
            SendError::CannotEdit | SendError::Permanent(_) => AFTER_REFUSAL,
        };
        *self.0.lock() = Some(Instant::now() + wait);
    }
}
