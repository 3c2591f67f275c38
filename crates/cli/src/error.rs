//! The one place that turns errors into words and exit codes.
//!
//! ```text
//! 0     success             1     it was tried and failed
//! 2     usage               3     `dev`: tests do not pass
//! 129, 130, 143             stopped by SIGHUP, SIGINT, SIGTERM
//! 141                       standard output was closed
//! ```

use std::process::ExitCode;

use codespar_runtime::RuntimeError;
use codespar_store::StoreError;

use crate::signals::OUTPUT_CLOSED;

/// The caller's mistake: wrong arguments, a bad settings file.
pub(crate) const EXIT_USAGE: u8 = 2;

/// Why a command did not do its job.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    /// The caller can mend it: arguments, settings.
    #[error("{0}")]
    Usage(String),
    /// It was tried and failed.
    #[error("{0}")]
    Failed(String),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Nobody reads our output any more; not worth words.
    #[error("the reader of the output went away")]
    ClosedPipe,
}

impl From<RuntimeError> for CommandError {
    fn from(error: RuntimeError) -> Self {
        match error {
            RuntimeError::Usage(message) => Self::Usage(message),
            RuntimeError::Failed(message) => Self::Failed(message),
            RuntimeError::Store(error) => Self::Store(error),
            RuntimeError::Io(error) => error.into(),
        }
    }
}

/// A closed pipe is told from other errors here, so that no command need look for it.
impl From<std::io::Error> for CommandError {
    fn from(error: std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            Self::ClosedPipe
        } else {
            Self::Failed(error.to_string())
        }
    }
}

impl CommandError {
    /// Prints it to stderr and gives the exit code. The text goes through the printer: it may quote
    /// a file name or a model.
    pub(crate) fn report(&self) -> ExitCode {
        match self {
            Self::ClosedPipe => ExitCode::from(OUTPUT_CLOSED),
            Self::Usage(message) => {
                crate::printer::err(format_args!(
                    "{} {message}",
                    crate::style::error("codespar:")
                ));
                ExitCode::from(EXIT_USAGE)
            }
            other => {
                crate::printer::err(format_args!("{} {other}", crate::style::error("codespar:")));
                ExitCode::FAILURE
            }
        }
    }
}
