//! Moving all records from a SQLite file to an empty PostgreSQL database.
//!
//! The source is locked against every other process while it is read, and is not changed. The target
//! is written in one transaction: it has all rows in the end, or none.

use std::{path::Path, time::Duration};

use serde::Serialize;
use sqlx::{AssertSqlSafe, ConnectOptions, sqlite::SqliteLockingMode};

use crate::{
    PostgresStore, SqliteStore, StoreError,
    engine::{self, Access, Backend, Connection, Link, Row, Value, failure::Failure},
    sqlite, task_sql,
};

/// Every table, those that others refer to first.
const TABLES: &[&str] = &[
    "sessions",
    "entries",
    "usage",
    "tasks",
    "task_deps",
    "mailbox",
    "notifications",
    "path_claims",
    "teams",
    "team_members",
    "task_steps",
    "pulls",
    "pull_reviews",
    "commit_checks",
    "runners",
    "changes",
    "questions",
    "access_tokens",
    "browser_sessions",
    "channel_messages",
    "channel_threads",
    "channel_links",
    "channel_people",
    "channel_outbox",
    "channel_audit",
    "channel_timers",
    "task_limits",
    "task_outputs",
    "output_pieces",
    "removed_outputs",
    "task_trees",
];

/// Tables whose places the server counts by itself from then on.
const COUNTED: &[(&str, &str)] = &[
    ("tasks", "seq"),
    ("task_deps", "place"),
    ("mailbox", "seq"),
    ("notifications", "seq"),
    ("channel_messages", "seq"),
    ("channel_outbox", "seq"),
    ("channel_audit", "seq"),
];

/// Rows that one statement inserts; entries can be long.
const AT_ONCE: i64 = 100;

/// How long a process that is about to end is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// What was moved of one table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableCount {
    pub table: &'static str,
    pub rows: u64,
}

/// Copies the database in `state` to the server. Refused if the target has records already, if
/// another process has the source open, or if the rows of a table are not as many in the end.
pub async fn copy_to_postgres(state: &Path, url: &str) -> Result<Vec<TableCount>, StoreError> {
    let database = state.join(sqlite::DATABASE);
    if !database.is_file() {
        return Err(StoreError::Unusable {
            path: state.to_owned(),
            message: format!("there is no {} to copy", sqlite::DATABASE),
        });
    }
    // Brings a file of an earlier version up to date.
    SqliteStore::open(state).await?.close().await?;
    let mut source = locked(&database).await?;
    let target = PostgresStore::open(url).await?;
    let mut work = target.begin(Access::Change).await?;
    let outcome = copy(&mut source, work.connection()).await;
    let copied = work.settle(outcome).await;
    target.close().await?;
    copied
}

/// Every process that has the file open keeps a lock on it, so this one gets its own only when there
/// is none.
async fn locked(database: &Path) -> Result<Connection, StoreError> {
    let options = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(database)
        .locking_mode(SqliteLockingMode::Exclusive)
        .busy_timeout(PATIENCE)
        .disable_statement_logging();
    let in_use = |error: sqlx::Error| {
        let dir = database.parent().unwrap_or(database);
        match sqlite::into_store_error(Failure::Sql(error), dir) {
            StoreError::Busy { path } => StoreError::Unusable {
                path,
                message: "another process has it open; end all of `codespar` that use this \
                          directory, then try again"
                    .to_owned(),
            },
            other => other,
        }
    };
    let mut connection = Connection {
        link: Link::Sqlite(options.connect().await.map_err(in_use)?),
        access: Access::Look,
    };
    let begun = engine::query("BEGIN EXCLUSIVE").execute(&mut connection);
    begun.await.map_err(in_use)?;
    Ok(connection)
}

/// The triggers are off meanwhile: what they would write is among the rows.
async fn copy(
    source: &mut Connection,
    target: &mut Connection,
) -> Result<Vec<TableCount>, Failure> {
    for table in TABLES {
        if rows_of(target, table).await? > 0 {
            let message = format!(
                "the target has records already (table {table}); name an empty database or schema"
            );
            return Err(StoreError::Database(message).into());
        }
    }
    let mut copied = Vec::new();
    for &table in TABLES {
        run(target, format!("ALTER TABLE {table} DISABLE TRIGGER USER")).await?;
        copy_table(source, target, table).await?;
        let (from, to) = (rows_of(source, table).await?, rows_of(target, table).await?);
        if from != to {
            let message = format!("table {table} has {from} rows, and {to} of them arrived");
            return Err(StoreError::Database(message).into());
        }
        copied.push(TableCount { table, rows: to });
    }
    for (table, column) in COUNTED {
        let next = format!(
            "SELECT setval(pg_get_serial_sequence('{table}', '{column}'), \
             COALESCE(MAX({column}), 1), MAX({column}) IS NOT NULL) FROM {table}"
        );
        run(target, next).await?;
    }
    for table in TABLES {
        run(target, format!("ALTER TABLE {table} ENABLE TRIGGER USER")).await?;
    }
    Ok(copied)
}

async fn run(connection: &mut Connection, statement: String) -> Result<(), Failure> {
    let query = engine::query(AssertSqlSafe(statement)).persistent(false);
    query.fetch_all(connection).await?;
    Ok(())
}

async fn rows_of(connection: &mut Connection, table: &str) -> Result<u64, Failure> {
    let text = AssertSqlSafe(format!("SELECT COUNT(*) FROM {table}"));
    let rows: i64 = engine::query_scalar(text).fetch_one(connection).await?;
    Ok(u64::try_from(rows).unwrap_or_default())
}

/// A column, and what is in it.
struct TableColumn {
    name: String,
    kind: String,
}

impl TableColumn {
    fn value(&self, row: &Row) -> Result<Value<'static>, sqlx::Error> {
        let name = self.name.as_str();
        Ok(match self.kind.as_str() {
            "TEXT" => row.try_get::<Option<String>>(name)?.into(),
            "BLOB" => row.try_get::<Option<Vec<u8>>>(name)?.into(),
            "BOOLEAN" => row.try_get::<bool>(name)?.into(),
            _ => row.try_get::<Option<i64>>(name)?.into(),
        })
    }
}

async fn columns_of(source: &mut Connection, table: &str) -> Result<Vec<TableColumn>, Failure> {
    let text = AssertSqlSafe(format!("PRAGMA table_info({table})"));
    let rows = engine::query(text).fetch_all(source).await?;
    let column = |row: &Row| -> Result<TableColumn, sqlx::Error> {
        Ok(TableColumn {
            name: row.try_get("name")?,
            kind: row.try_get("type")?,
        })
    };
    Ok(rows.iter().map(column).collect::<Result<_, _>>()?)
}

async fn copy_table(
    source: &mut Connection,
    target: &mut Connection,
    table: &str,
) -> Result<(), Failure> {
    let columns = columns_of(source, table).await?;
    let names: Vec<&str> = columns.iter().map(|one| one.name.as_str()).collect();
    let names = names.join(", ");
    let read = format!(
        "SELECT rowid AS row_place, {names} FROM {table} WHERE rowid > $1 ORDER BY rowid LIMIT $2"
    );
    let mut after = i64::MIN;
    loop {
        let query = engine::query(AssertSqlSafe(read.clone()));
        let rows = query.bind(after).bind(AT_ONCE).fetch_all(source).await?;
        let Some(last) = rows.last() else {
            return Ok(());
        };
        after = last.try_get("row_place")?;
        let places = task_sql::rows(rows.len(), columns.len());
        let insert = format!("INSERT INTO {table} ({names}) VALUES {places}");
        let mut query = engine::query(AssertSqlSafe(insert));
        for row in &rows {
            for column in &columns {
                query = query.bind(column.value(row)?);
            }
        }
        query.execute(target).await?;
    }
}
