//! Rows of checks.
//!
//! One row for each name and commit, replaced when the check is recorded again. The time says since
//! when the state has been the same. No pull request has to exist for the commit.

use codespar_protocol::{Check, CommitId};
use jiff::Timestamp;

use super::super::{
    failure::Failure,
    rows::{field, time},
    words::{from_word, word_of},
};
use crate::engine::{self, Connection, Row};
use crate::{RecordedCheck, StoreError, pull_sql as sql};

pub(super) async fn set(
    connection: &mut Connection,
    repository: &str,
    commit: &CommitId,
    check: &Check,
    at: Timestamp,
) -> Result<(), Failure> {
    engine::query(sql::SET_CHECK)
        .bind(repository)
        .bind(commit.0.as_str())
        .bind(check.name.as_str())
        .bind(word_of(check.state)?)
        .bind(check.summary.as_deref())
        .bind(check.url.as_deref())
        .bind(at.as_microsecond())
        .execute(connection)
        .await?;
    Ok(())
}

pub(super) async fn listed(
    connection: &mut Connection,
    repository: &str,
    commit: &CommitId,
) -> Result<Vec<RecordedCheck>, Failure> {
    let rows = engine::query(sql::CHECKS)
        .bind(repository)
        .bind(commit.0.as_str())
        .fetch_all(connection)
        .await?;
    let checks: Result<_, String> = rows.iter().map(read).collect();
    Ok(checks.map_err(|message| {
        StoreError::Database(format!("a check of {commit} is damaged: {message}"))
    })?)
}

fn read(row: &Row) -> Result<RecordedCheck, String> {
    Ok(RecordedCheck {
        check: Check {
            name: field(row, "name")?,
            state: from_word(row, "state")?,
            summary: field(row, "summary")?,
            url: field(row, "url")?,
        },
        at: time(row, "at")?,
    })
}
