//! What the database server saw of a trial: a log that its triggers write, in the order of commits.
//!
//! Records tell how things are; this tells who did what when, and so also what was overwritten.
//! `evidence.sql` adds the table and the triggers to the schema of the program, which knows nothing
//! of them. Each line names the address that the connection came from, and so the host: a write of
//! a worker that had lost its task cannot hide.

use std::{fs, future::Future, path::Path};

use anyhow::{Context, Result};
use codespar_store::PostgresStore;
use sqlx::{AssertSqlSafe, PgPool, postgres::PgPoolOptions};
use tokio::runtime::Runtime;

const TRIGGERS: &str = include_str!("evidence.sql");
const LOG: &str = "SELECT place, at, what, subject, status, owner, owner_before, number, writer \
     FROM trial_log ORDER BY place";

/// The database of a trial, with connections of our own besides the store's.
pub(super) struct TrialDatabase {
    runtime: Runtime,
    pub(super) store: PostgresStore,
    pool: PgPool,
}

/// What one row of a transaction changed. `place` grows in the order in which transactions were
/// committed, so whatever has a smaller one was there before.
#[derive(Debug, Clone)]
pub(super) struct LogLine {
    pub(super) place: i64,
    /// Microseconds since 1970.
    pub(super) at: i64,
    pub(super) event: LogEvent,
    /// The address of the host that wrote it.
    pub(super) writer: String,
}

#[derive(Debug, Clone)]
pub(super) enum LogEvent {
    /// Its state or its lease changed: a claim, a take-over, a release, an end.
    Task {
        id: String,
        status: String,
        owner: Option<String>,
        owner_before: Option<String>,
        epoch: i64,
    },
    /// A stop was asked for.
    Stop { id: String },
    /// Something was appended to a conversation.
    Entry { session: String },
    /// A process took a conversation for itself, or fenced off whoever had it.
    Hold { session: String },
    /// The end of this task is to be told to its session.
    Notification { id: String },
}

type Row = (
    i64,
    i64,
    String,
    String,
    Option<String>,
    Option<String>,
    Option<String>,
    Option<i64>,
    Option<String>,
);

impl TrialDatabase {
    /// Makes the schema and the log.
    pub(super) fn open(url: &str) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()?;
        let opening = async {
            let store = PostgresStore::open(url).await?;
            let pool = PgPoolOptions::new().max_connections(2).connect(url).await?;
            sqlx::raw_sql(TRIGGERS).execute(&pool).await?;
            anyhow::Ok((store, pool))
        };
        let (store, pool) = runtime
            .block_on(opening)
            .context("the database of the trial cannot be made")?;
        Ok(Self {
            runtime,
            store,
            pool,
        })
    }

    /// Runs on the runtime of the store, whose background work goes on in between.
    pub(super) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// The one number that a query gives.
    pub(super) fn count(&self, query: &str) -> Result<i64> {
        let query = sqlx::query_scalar(AssertSqlSafe(query.to_owned()));
        Ok(self.wait(query.fetch_one(&self.pool))?)
    }

    /// One column of texts.
    pub(super) fn texts(&self, query: &str) -> Result<Vec<String>> {
        let query = sqlx::query_scalar(AssertSqlSafe(query.to_owned()));
        Ok(self.wait(query.fetch_all(&self.pool))?)
    }

    /// Writes the tables that a trial is judged by, a row a line.
    pub(super) fn dump(&self, file: &Path) -> Result<()> {
        let mut lines = Vec::new();
        for table in ["tasks", "trial_log", "entries", "notifications"] {
            let query = format!("SELECT row_to_json(t)::text FROM {table} t");
            let rows = self.texts(&query)?;
            lines.extend(
                rows.into_iter()
                    .map(|row| format!("{{\"{table}\": {row}}}\n")),
            );
        }
        fs::write(file, lines.concat()).with_context(|| format!("cannot write {}", file.display()))
    }

    /// The whole log, in the order of commits. Some hundred bytes a line, nine lines a task.
    pub(super) fn log(&self) -> Result<Vec<LogLine>> {
        let rows: Vec<Row> = self.wait(sqlx::query_as(LOG).fetch_all(&self.pool))?;
        rows.into_iter().map(line).collect()
    }
}

fn line(row: Row) -> Result<LogLine> {
    let (place, at, what, subject, status, owner, owner_before, number, writer) = row;
    let event = match &*what {
        "task" => LogEvent::Task {
            id: subject,
            status: status.context("a task without status")?,
            owner,
            owner_before,
            epoch: number.context("a task without epoch")?,
        },
        "stop" => LogEvent::Stop { id: subject },
        "entry" => LogEvent::Entry { session: subject },
        "hold" => LogEvent::Hold { session: subject },
        _ => LogEvent::Notification { id: subject },
    };
    Ok(LogLine {
        place,
        at,
        event,
        writer: writer.unwrap_or_default(),
    })
}
