//! Why git could not be run, or a repository not be used.

use std::{io, path::PathBuf};

/// Why a call of git came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// There is no git on the search path.
    #[error("the `git` command was not found; install git")]
    NotInstalled,
    /// The directory is in no repository.
    #[error(
        "{} is not in a git repository; create one with `git init`, or name another directory",
        .0.display()
    )]
    NoRepository(PathBuf),
    /// The repository has something that we do not work with.
    #[error("the git repository {}: {reason}", path.display())]
    Unsupported {
        /// Its git directory.
        path: PathBuf,
        /// What, and what to do.
        reason: String,
    },
    /// A file or directory could not be read or written.
    #[error("{}: {source}", path.display())]
    File {
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The process could not be started or waited for.
    #[error("`git {command}` could not be run: {source}")]
    Start {
        /// The subcommand.
        command: String,
        /// What the system said.
        source: io::Error,
    },
    /// It wrote more than it may.
    #[error(
        "`git {command}` was stopped: its output is larger than {limit} bytes; the repository has \
         too many or too large files for this"
    )]
    TooMuchOutput {
        /// The subcommand.
        command: String,
        /// The limit in bytes.
        limit: usize,
    },
    /// It took longer than it may.
    #[error("`git {command}` was stopped: it did not end within {seconds} s")]
    TimedOut {
        /// The subcommand.
        command: String,
        /// The limit.
        seconds: u64,
    },
    /// A tree has more files than we handle.
    #[error("commit {commit} has more than {limit} files; that is more than is handled")]
    TooManyFiles { commit: String, limit: usize },
    /// Git refused.
    #[error("`git {command}` failed: {message}")]
    Failed {
        /// The subcommand.
        command: String,
        /// What git wrote to standard error.
        message: String,
    },
}

impl GitError {
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }
}
