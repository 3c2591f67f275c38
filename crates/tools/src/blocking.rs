//! File work off the async threads.
//!
//! Files are read and written by blocking system calls, which would hold up the other tasks of the
//! runtime. A panic in the work becomes an error of the tool.

use tokio_util::sync::CancellationToken;

use crate::ToolError;

/// Runs work that only looks. A cancelled call is answered at once; the work gets the token, to
/// stop soon after.
pub(crate) async fn look<T: Send + 'static>(
    cancel: CancellationToken,
    work: impl FnOnce(&CancellationToken) -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    if cancel.is_cancelled() {
        return Err(cancelled());
    }
    let token = cancel.clone();
    let job = tokio::task::spawn_blocking(move || work(&token));
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(cancelled()),
        done = job => done.unwrap_or_else(|error| Err(broken(&error))),
    }
}

/// Runs work that changes something. Once begun it is waited for, so that what it did is known.
pub(crate) async fn change<T: Send + 'static>(
    cancel: CancellationToken,
    work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let job = tokio::task::spawn_blocking(move || {
        if cancel.is_cancelled() {
            return Err(cancelled());
        }
        work()
    });
    job.await.unwrap_or_else(|error| Err(broken(&error)))
}

/// What a cancelled call answers.
pub(crate) fn cancelled() -> ToolError {
    ToolError("interrupted".to_owned())
}

fn broken(error: &tokio::task::JoinError) -> ToolError {
    ToolError(format!("the tool broke down: {error}"))
}
