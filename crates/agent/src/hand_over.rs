//! A conversation that another process goes on with.

use tokio_util::sync::CancellationToken;

/// How an agent is told that another process goes on with its conversation. Nothing is appended for
/// that: whoever goes on finds the record as it was.
#[derive(Debug, Clone, Default)]
pub struct HandOver {
    /// Stop when the step under way is on record.
    pub soon: CancellationToken,
    /// Stop at once and append nothing more. Whoever cancels this cancels the run as well.
    pub now: CancellationToken,
}

impl HandOver {
    /// The next step is not for this process.
    pub fn is_asked(&self) -> bool {
        self.soon.is_cancelled() || self.now.is_cancelled()
    }
}
