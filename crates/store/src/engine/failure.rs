//! How work on a connection ends without its result.
//!
//! Work on a connection ends in one of two ways that must not be mixed up. A refusal is ours: the
//! statements ran, the connection is good, the transaction is rolled back. An error of the database
//! leaves the connection in an unknown state, and it is not used again (`work.rs`).
//!
//! Only the outermost call turns a failure into a `StoreError`, because only it knows the directory
//! or the server that the message names.

use sqlx::migrate::MigrateError;

use crate::StoreError;

/// Why a piece of work on the database did not happen.
#[derive(Debug)]
pub(crate) enum Failure {
    /// We would not: the database itself is well.
    Refused(StoreError),
    /// The database could not.
    Sql(sqlx::Error),
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Refused(error)
    }
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<MigrateError> for Failure {
    fn from(error: MigrateError) -> Self {
        match error {
            MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => {
                Self::Sql(error)
            }
            other => Self::Refused(StoreError::Database(other.to_string())),
        }
    }
}
