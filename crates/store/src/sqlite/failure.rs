//! What SQLite says, in our words.

use std::path::Path;

use crate::{StoreError, engine::failure::Failure};

/// For people: what happened to the database in `dir` and what to do.
pub(crate) fn into_store_error(failure: Failure, dir: &Path) -> StoreError {
    match failure {
        Failure::Refused(error) => error,
        Failure::Sql(error) => sql_error(&error, dir),
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
