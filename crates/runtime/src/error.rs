//! Why something could not be set up or done.

use codespar_store::StoreError;

#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// The caller can mend it: options, settings files, the environment.
    #[error("{0}")]
    Usage(String),
    /// It was tried and failed.
    #[error("{0}")]
    Failed(String),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file or a process of our own.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}
