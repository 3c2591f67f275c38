//! What SQLite says, in our words.
//!
//! Work on a connection ends in one of two ways that must not be mixed up. A refusal is ours: the
//! statements ran, the connection is good, the transaction is rolled back. An error of the database
//! leaves the connection in an unknown state, and it is not used again (`link.rs`).
//!
//! Only the outermost call turns a failure into a `StoreError`, because only it knows the directory
//! that the message names.

use std::path::Path;

use sqlx::migrate::MigrateError;

use crate::StoreError;

/// Why a piece of work on the database did not happen.
#[derive(Debug)]
pub(super) enum Failure {
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

impl Failure {
    /// For people: what happened to the database in `dir` and what to do.
    pub(super) fn into_store_error(self, dir: &Path) -> StoreError {
        match self {
            Self::Refused(error) => error,
            Self::Sql(error) => sql_error(&error, dir),
        }
    }
}

// The primary result codes of SQLite that call for different words.
const PERM: u32 = 3;
const BUSY: u32 = 5;
const LOCKED: u32 = 6;
const NOMEM: u32 = 7;
const READONLY: u32 = 8;
const IOERR: u32 = 10;
const CORRUPT: u32 = 11;
const FULL: u32 = 13;
const CANTOPEN: u32 = 14;
const NOTADB: u32 = 26;

/// Sorted by SQLite's primary result code: what the user can do differs by code, not by statement.
/// Codes that nobody can act on keep the message of the database.
fn sql_error(error: &sqlx::Error, dir: &Path) -> StoreError {
    let path = dir.join(super::open::DATABASE);
    let unusable = |message: String| StoreError::Unusable {
        path: dir.to_owned(),
        message,
    };
    if let sqlx::Error::Io(error) = error {
        // The driver has a thread for each connection.
        return unusable(format!(
            "cannot start the thread of the database: {error}; raise the limit on processes \
             (`ulimit -u`) or on memory (`ulimit -v`)"
        ));
    }
    let Some(database) = error.as_database_error() else {
        return StoreError::Database(error.to_string());
    };
    let said = database.message();
    let extended: Option<u32> = database.code().and_then(|code| code.parse().ok());
    // The low byte is the primary code, the rest says which kind of it.
    match extended.map(|code| code & 0xff) {
        Some(FULL) => StoreError::DiskFull { path },
        Some(BUSY | LOCKED) => StoreError::Busy { path },
        Some(NOMEM) => unusable(
            "there is not enough memory for the database; raise the limit on address space \
             (`ulimit -v`) or free memory"
                .to_owned(),
        ),
        Some(PERM | READONLY | CANTOPEN) => unusable(format!(
            "{said}; set CODESPAR_HOME to a directory you can write to"
        )),
        Some(CORRUPT | NOTADB) => unusable(format!(
            "codespar.db is damaged ({said}); move it and its -wal and -shm files away, or set \
             CODESPAR_HOME to another directory"
        )),
        Some(IOERR) => unusable(format!(
            "{said}; check the disk and your quota, or set CODESPAR_HOME to a directory on \
             another disk"
        )),
        _ => StoreError::Database(said.to_owned()),
    }
}
