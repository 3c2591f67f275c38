//! What PostgreSQL says, in our words. No message contains the URL: it may hold a password.

use std::time::Duration;

use crate::{StoreError, engine::failure::Failure};

pub(super) fn into_store_error(failure: Failure, place: &str) -> StoreError {
    match failure {
        Failure::Refused(error) => error,
        Failure::Sql(error) => sql_error(&error, place),
    }
}

pub(super) fn no_answer(place: &str, waited: Duration) -> StoreError {
    unreachable(
        place,
        format!("it does not answer within {} s", waited.as_secs()),
    )
}

fn unreachable(place: &str, message: String) -> StoreError {
    StoreError::Unreachable {
        place: place.to_owned(),
        message,
    }
}

/// Sorted by what the user can do about it.
pub(super) fn sql_error(error: &sqlx::Error, place: &str) -> StoreError {
    match error {
        sqlx::Error::Database(said) => {
            let code = said.code().unwrap_or_default();
            database_error(&code, said.message(), place)
        }
        sqlx::Error::Io(error) => unreachable(
            place,
            format!("the connection failed: {error}; is the server running, and reachable?"),
        ),
        sqlx::Error::Tls(error) => unreachable(place, format!("no secure connection: {error}")),
        sqlx::Error::PoolTimedOut => unreachable(
            place,
            "no connection could be had in time; the server is down, or has no connection to spare"
                .to_owned(),
        ),
        sqlx::Error::PoolClosed => StoreError::Database("the store was closed".to_owned()),
        other => StoreError::Database(other.to_string()),
    }
}

fn database_error(code: &str, said: &str, place: &str) -> StoreError {
    let advice = match code {
        "28P01" | "28000" => "check the user and the password in CODESPAR_DATABASE_URL",
        "3D000" => "create the database, or correct its name in CODESPAR_DATABASE_URL",
        "53300" => "the server has no connection to spare; raise its max_connections",
        "57P01" | "57P02" | "57P03" | "08006" | "08003" => {
            "the server ended the connection; nothing was written, try again"
        }
        "25P03" => {
            "this process stood still in the middle of a change, which was undone; try again"
        }
        "42501" => "the user needs the right to create tables in the schema, and to use them",
        "25006" => "the server only lets itself be read; use the one that can be written to",
        "53100" => "no room is left on the disk of the server",
        // A lock was waited for in vain, or two changes stood in each other's way.
        "55P03" | "40P01" | "40001" => {
            let path = place.into();
            return StoreError::Busy { path };
        }
        _ => return StoreError::Database(said.to_owned()),
    };
    unreachable(place, format!("{said}; {advice}"))
}
