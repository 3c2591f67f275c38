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
    /// The `git` program could not be started or its output not read.
    #[error("cannot run `git {command}` in `{path}`: {source}; is git installed?")]
    Start {
        /// The arguments of the command.
        command: String,
        /// The repository.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A git command refused.
    #[error("`git {command}` failed in `{path}`: {message}")]
    Git {
        /// The arguments of the command.
        command: String,
        /// The repository.
        path: PathBuf,
        /// What git said.
        message: String,
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
