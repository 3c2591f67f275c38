//! Why a throw-away copy could not be used.

/// Why a throw-away copy could not be made, read or tested.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// The caller's token was cancelled. What ran was ended; nothing is known of its result.
    #[error("stopped")]
    Stopped,
    /// What is in the copy cannot become a change: the text names the file and says why.
    #[error("{0}")]
    Refused(String),
    /// Git, the file system or the sandbox failed: this says nothing about the change.
    #[error("{0}")]
    Broken(String),
}
