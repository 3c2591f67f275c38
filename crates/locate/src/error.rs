//! What can go wrong while a repository is located in.

use std::{io, path::PathBuf};

/// Why a repository could not be indexed.
#[derive(Debug, thiserror::Error)]
pub enum LocateError {
    /// The directory is not there, or is not a directory.
    #[error("`{path}` is not a directory that can be read: {source}")]
    Root {
        /// The directory that was asked for.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Git could not be run, refused, or had more to say than is read.
    #[error("cannot read the repository `{path}`: {source}")]
    Git {
        /// The repository.
        path: PathBuf,
        /// What went wrong.
        source: codespar_git::GitError,
    },
    /// The directory has more in it than is walked.
    #[error(
        "`{path}` has more than {limit} files and directories; name a smaller directory, or list \
         what is not source in a `.gitignore`"
    )]
    TooManyFiles {
        /// The directory.
        path: PathBuf,
        /// How many are walked.
        limit: usize,
    },
    /// A name that stands for no commit of the repository.
    #[error("`{commit}` is no commit of the repository `{path}`; name a commit, branch or tag")]
    Commit {
        /// The name that was asked for.
        commit: String,
        /// The repository.
        path: PathBuf,
    },
}
