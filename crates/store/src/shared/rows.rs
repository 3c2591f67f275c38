//! Rows of sessions and entries, to and from our types.
//!
//! A column that cannot be read makes the whole row an error with the column or the parse error in
//! its message; nothing is replaced by a default. Messages stay texts here, and the caller adds
//! which session or entry they are about.

use std::path::{Path, PathBuf};

use codespar_protocol::{Cost, Entry, SessionId, SessionMode, Usage, Usd};
use jiff::Timestamp;

use super::failure::Failure;
use crate::engine::{self, Column, Connection, Row};
use crate::{NewSession, SessionRecord, StoreError, sql};

/// What `insert` writes, without reading it back.
pub(super) fn fresh(new: NewSession, at: Timestamp) -> SessionRecord {
    SessionRecord {
        id: new.id,
        title: None,
        cwd: new.cwd,
        model: new.model,
        mode: new.mode,
        created_at: at,
        updated_at: at,
        last_seq: 0,
        usage: Usage::default(),
        cost: Cost::default(),
    }
}

/// Paths are kept as UTF-8. One that is not is refused before anything is written: kept lossily, it
/// would lead elsewhere.
pub(super) fn path_text(path: &Path) -> Result<&str, StoreError> {
    path.to_str().ok_or_else(|| StoreError::NotText {
        path: path.to_owned(),
    })
}

/// Counts beyond what the database can hold stop at its end.
pub(super) fn int(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

pub(super) async fn insert(
    connection: &mut Connection,
    session: &SessionRecord,
    cwd: &str,
) -> Result<(), Failure> {
    let done = engine::query(sql::INSERT_SESSION)
        .bind(session.id.to_string())
        .bind(cwd)
        .bind(session.model.as_str())
        .bind(word_of(session.mode))
        .bind(session.created_at.as_microsecond())
        .execute(connection)
        .await?;
    if done.rows_affected() == 0 {
        let message = format!("there already is a session {}", session.id);
        return Err(StoreError::Database(message).into());
    }
    Ok(())
}

pub(super) async fn session(
    connection: &mut Connection,
    id: SessionId,
) -> Result<SessionRecord, Failure> {
    let row = engine::query(sql::SESSION)
        .bind(id.to_string())
        .fetch_optional(connection)
        .await?;
    let row = row.ok_or(StoreError::NoSuchSession(id))?;
    Ok(session_of(&row)?)
}

pub(super) async fn sessions(
    connection: &mut Connection,
    cwd: Option<&str>,
    limit: i64,
) -> Result<Vec<SessionRecord>, Failure> {
    let query = match cwd {
        Some(cwd) => engine::query(sql::SESSIONS_OF_CWD).bind(cwd),
        None => engine::query(sql::SESSIONS),
    };
    let rows = query.bind(limit).fetch_all(connection).await?;
    let sessions: Result<_, StoreError> = rows.iter().map(session_of).collect();
    Ok(sessions?)
}

pub(super) async fn set_mode(
    connection: &mut Connection,
    id: SessionId,
    mode: SessionMode,
) -> Result<(), Failure> {
    let done = engine::query(sql::SET_MODE)
        .bind(id.to_string())
        .bind(word_of(mode))
        .execute(connection)
        .await?;
    match done.rows_affected() {
        0 => Err(StoreError::NoSuchSession(id).into()),
        _ => Ok(()),
    }
}

/// The transcript from `from` on, complete or an error. Session and entries come from one
/// statement, so an append in between cannot look like a missing entry.
pub(super) async fn entries(
    connection: &mut Connection,
    id: SessionId,
    from: u64,
) -> Result<Vec<Entry>, Failure> {
    let from = from.max(1);
    let rows = engine::query(sql::ENTRIES)
        .bind(id.to_string())
        .bind(int(from))
        .fetch_all(connection)
        .await?;
    let first = rows.first().ok_or(StoreError::NoSuchSession(id))?;
    let damaged = |seq| move |message| StoreError::Damaged { id, seq, message };
    let last_seq = count(first, "last_seq").map_err(damaged(0))?;
    // One row for each place from `from` to the last: a hole in them is a lost entry. Without
    // any the join leaves a single row of nulls.
    let mut rows = rows.iter();
    let mut entries = Vec::new();
    for seq in from..=last_seq {
        let lost = || Err("it is missing".to_owned());
        let entry = rows.next().map_or_else(lost, |row| entry_of(row, seq));
        entries.push(entry.map_err(damaged(seq))?);
    }
    Ok(entries)
}

/// The entry of this row, which must be the one at `expected`. The body is parsed from the text as
/// it was written, so that raw JSON in it survives byte for byte.
pub(super) fn entry_of(row: &Row, expected: u64) -> Result<Entry, String> {
    if field::<Option<i64>>(row, "seq")? != Some(int(expected)) {
        return Err("it is missing".to_owned());
    }
    let id: &str = field(row, "id")?;
    let body: &str = field(row, "body")?;
    Ok(Entry {
        id: id.parse().map_err(message_of)?,
        seq: expected,
        at: time(row, "at")?,
        body: serde_json::from_str(body).map_err(message_of)?,
    })
}

/// Place 0 in an error stands for the session's own row.
pub(super) fn session_of(row: &Row) -> Result<SessionRecord, StoreError> {
    let id: Result<SessionId, String> =
        field::<&str>(row, "id").and_then(|text| text.parse().map_err(message_of));
    let id = id.map_err(|message| StoreError::Database(format!("a damaged session: {message}")))?;
    read_session(row, id).map_err(|message| StoreError::Damaged {
        id,
        seq: 0,
        message: format!("the session's own row: {message}"),
    })
}

fn read_session(row: &Row, id: SessionId) -> Result<SessionRecord, String> {
    let known = Usd::from_nanos(count(row, "cost_nanos")?);
    Ok(SessionRecord {
        id,
        title: field(row, "title")?,
        cwd: PathBuf::from(field::<&str>(row, "cwd")?),
        model: field(row, "model")?,
        mode: mode_of(field(row, "mode")?)?,
        created_at: time(row, "created_at")?,
        updated_at: time(row, "updated_at")?,
        last_seq: count(row, "last_seq")?,
        usage: Usage {
            // Sums keep tokens only; what searches cost is in the cost.
            web_search_requests: 0,
            input_tokens: count(row, "input_tokens")?,
            output_tokens: count(row, "output_tokens")?,
            cache_creation_input_tokens: count(row, "cache_creation_input_tokens")?,
            cache_read_input_tokens: count(row, "cache_read_input_tokens")?,
            cache_creation_1h_input_tokens: count(row, "cache_creation_1h_input_tokens")?,
        },
        cost: if field(row, "cost_unknown")? {
            Cost::Unknown(known)
        } else {
            Cost::Known(known)
        },
    })
}

/// A column by name; the error is a text to put into a message.
pub(super) fn field<'r, T>(row: &'r Row, column: &str) -> Result<T, String>
where
    T: Column<'r>,
{
    row.try_get(column).map_err(message_of)
}

/// A column that is never negative. A negative one means a damaged row, not zero.
pub(super) fn count(row: &Row, column: &str) -> Result<u64, String> {
    let number: i64 = field(row, column)?;
    u64::try_from(number).map_err(|_| format!("{column} is {number}"))
}

pub(super) fn time(row: &Row, column: &str) -> Result<Timestamp, String> {
    Timestamp::from_microsecond(field(row, column)?).map_err(message_of)
}

/// How the database has a mode; `mode_of` is its inverse.
fn word_of(mode: SessionMode) -> &'static str {
    match mode {
        SessionMode::Normal => "normal",
        SessionMode::Coordinator => "coordinator",
    }
}

fn mode_of(word: &str) -> Result<SessionMode, String> {
    match word {
        "normal" => Ok(SessionMode::Normal),
        "coordinator" => Ok(SessionMode::Coordinator),
        _ => Err(format!("`{word}` is not a mode")),
    }
}

#[allow(clippy::needless_pass_by_value)] // The form `map_err` wants.
pub(super) fn message_of(error: impl std::fmt::Display) -> String {
    error.to_string()
}
