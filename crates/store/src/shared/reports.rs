//! Counts, sums and pages for a server.

use async_trait::async_trait;
use codespar_protocol::{Cost, Entry, SessionId, TaskId, Usage, Usd};
use jiff::Timestamp;

use super::{
    failure::Failure,
    rows::{count, entry_of, field, int, message_of, path_text, session_of},
    tasks::fleet,
};
use crate::engine::{self, Backend, Connection, Link, Row};
use crate::{
    DailyUsage, FleetReport, ReportStore, SessionPage, SessionRecord, Store, StoreError, TaskCount,
    server_sql as sql,
};
use sqlx::AssertSqlSafe;

const MICROS_OF_DAY: i64 = 86_400_000_000;

#[async_trait]
impl<B: Backend> ReportStore for B {
    async fn task_counts(&self) -> Result<Vec<TaskCount>, StoreError> {
        let mut work = self.single().await?;
        let outcome = counts(work.connection()).await;
        work.settle(outcome).await
    }

    async fn oldest_ready(&self) -> Result<Option<Timestamp>, StoreError> {
        let mut work = self.single().await?;
        let query = engine::query_scalar(sql::OLDEST_READY);
        let outcome: Result<Option<i64>, _> = query.fetch_one(work.connection()).await;
        let micros = work.settle(outcome.map_err(Failure::from)).await?;
        let moment = micros.map(Timestamp::from_microsecond).transpose();
        moment.map_err(damaged)
    }

    async fn fleet(&self) -> Result<FleetReport, StoreError> {
        let mut work = self.look().await?;
        let outcome = fleet::report(work.connection()).await;
        work.settle(outcome).await
    }

    async fn daily_usage(
        &self,
        from: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<DailyUsage>, StoreError> {
        let mut work = self.look().await?;
        let outcome = usage(work.connection(), from, until).await;
        work.settle(outcome).await
    }

    async fn sessions_page(&self, page: SessionPage) -> Result<Vec<SessionRecord>, StoreError> {
        let roots: Result<Vec<&str>, StoreError> =
            page.roots.iter().map(|root| path_text(root)).collect();
        let roots = serde_json::to_string(&roots?).map_err(damaged)?;
        let mut work = self.single().await?;
        let rows = engine::query(sql::SESSIONS_UNDER)
            .bind(roots)
            .bind(page.before.map(|id| id.to_string()))
            .bind(i64::from(page.limit))
            .fetch_all(work.connection())
            .await;
        let rows = work.settle(rows.map_err(Failure::from)).await?;
        rows.iter().map(session_of).collect()
    }

    async fn entries_page(
        &self,
        id: SessionId,
        from: u64,
        limit: u32,
    ) -> Result<Vec<Entry>, StoreError> {
        // Its error for a session that does not exist is the one that callers know.
        self.session(id).await?;
        let from = from.max(1);
        let mut work = self.single().await?;
        let rows = engine::query(sql::ENTRIES_PAGE)
            .bind(id.to_string())
            .bind(int(from))
            .bind(i64::from(limit))
            .fetch_all(work.connection())
            .await;
        let rows = work.settle(rows.map_err(Failure::from)).await?;
        let entry = |(row, seq): (&Row, u64)| {
            entry_of(row, seq).map_err(|message| StoreError::Damaged { id, seq, message })
        };
        rows.iter().zip(from..).map(entry).collect()
    }

    async fn find_entries(
        &self,
        id: SessionId,
        text: &str,
        limit: u32,
    ) -> Result<Vec<Entry>, StoreError> {
        let mut work = self.single().await?;
        // LIKE of SQLite takes small and capital letters for the same.
        let statement = match &work.connection().link {
            Link::Sqlite(_) => sql::FIND_ENTRIES.to_owned(),
            Link::Postgres(_) => sql::FIND_ENTRIES.replace(" LIKE ", " ILIKE "),
        };
        let rows = engine::query(AssertSqlSafe(statement))
            .bind(id.to_string())
            .bind(pattern(text))
            .bind(i64::from(limit))
            .fetch_all(work.connection())
            .await;
        let rows = work.settle(rows.map_err(Failure::from)).await?;
        let entry = |row: &Row| {
            let seq = count(row, "seq").unwrap_or_default();
            entry_of(row, seq).map_err(|message| StoreError::Damaged { id, seq, message })
        };
        rows.iter().map(entry).collect()
    }

    async fn task_of_session(&self, id: SessionId) -> Result<Option<TaskId>, StoreError> {
        let mut work = self.single().await?;
        let query = engine::query_scalar(sql::TASK_OF_SESSION).bind(id.to_string());
        let found: Result<Option<String>, _> = query.fetch_optional(work.connection()).await;
        let found = work.settle(found.map_err(Failure::from)).await?;
        let id = found.map(|text| text.parse()).transpose();
        id.map_err(|error: codespar_protocol::ParseTaskError| damaged(error))
    }
}

async fn counts(connection: &mut Connection) -> Result<Vec<TaskCount>, Failure> {
    let rows = engine::query(sql::TASK_COUNTS)
        .fetch_all(connection)
        .await?;
    let read = |row: &Row| -> Result<TaskCount, String> {
        Ok(TaskCount {
            task_type: field::<&str>(row, "task_type")?
                .parse()
                .map_err(message_of)?,
            status: field::<&str>(row, "status")?.parse().map_err(message_of)?,
            count: count(row, "count")?,
        })
    };
    let counts: Result<Vec<TaskCount>, String> = rows.iter().map(read).collect();
    Ok(counts.map_err(damaged)?)
}

async fn usage(
    connection: &mut Connection,
    from: Timestamp,
    until: Timestamp,
) -> Result<Vec<DailyUsage>, Failure> {
    let mut found = Vec::new();
    for query in [sql::USAGE_OF_SESSIONS, sql::USAGE_OF_RUNS] {
        let rows = engine::query(query)
            .bind(from.as_microsecond())
            .bind(until.as_microsecond())
            .fetch_all(&mut *connection)
            .await?;
        for row in &rows {
            found.push(read_usage(row).map_err(damaged)?);
        }
    }
    Ok(found)
}

fn read_usage(row: &Row) -> Result<DailyUsage, String> {
    let day: i64 = field(row, "day")?;
    // What was taken off may be more than there was.
    let sum = |column: &str| -> Result<u64, String> {
        Ok(u64::try_from(field::<i64>(row, column)?).unwrap_or_default())
    };
    let known = Usd::from_nanos(sum("cost_nanos")?);
    let directory: Option<&str> = field(row, "directory")?;
    let model: Option<String> = field(row, "model")?;
    Ok(DailyUsage {
        day: Timestamp::from_microsecond(day * MICROS_OF_DAY).map_err(message_of)?,
        directory: directory.unwrap_or_default().into(),
        model: model.unwrap_or_default(),
        calls: count(row, "calls")?,
        usage: Usage {
            input_tokens: sum("input_tokens")?,
            output_tokens: sum("output_tokens")?,
            cache_creation_input_tokens: sum("cache_creation_input_tokens")?,
            cache_read_input_tokens: sum("cache_read_input_tokens")?,
            cache_creation_1h_input_tokens: sum("cache_creation_1h_input_tokens")?,
            web_search_requests: 0,
        },
        cost: match field::<i64>(row, "cost_unknown")? {
            0 => Cost::Known(known),
            _ => Cost::Unknown(known),
        },
    })
}

#[allow(clippy::needless_pass_by_value)] // The form `map_err` wants.
fn damaged(message: impl std::fmt::Display) -> StoreError {
    StoreError::Database(format!("a damaged record: {message}"))
}

/// A pattern of LIKE for a text within JSON: written as it is in a string there, and with nothing in
/// it that has a meaning.
fn pattern(text: &str) -> String {
    let json = serde_json::Value::String(text.to_owned()).to_string();
    let inner = json.get(1..json.len() - 1).unwrap_or_default();
    let mut pattern = "%".to_owned();
    for c in inner.chars() {
        if matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern.push('%');
    pattern
}
