//! The fleet report: who runs what, and what waits.

use std::collections::BTreeMap;

use super::{
    super::{
        failure::Failure,
        rows::{count, field, message_of, time},
    },
    limits::{self, Limits, Running},
    row::{damaged, maybe_time, task_id},
};
use crate::engine::{self, Connection, Row};
use crate::{FleetReport, FleetRunner, FleetTask, LimitUse, QueueDepth, fleet_sql as sql};

pub(in crate::shared) async fn report(connection: &mut Connection) -> Result<FleetReport, Failure> {
    Ok(FleetReport {
        runners: runners(connection).await?,
        queues: queues(connection).await?,
        limits: limits(connection).await?,
    })
}

/// The runners that are there, without what they run.
pub(super) async fn runners_about(
    connection: &mut Connection,
) -> Result<Vec<FleetRunner>, Failure> {
    let rows = engine::query(sql::RUNNERS_ABOUT)
        .fetch_all(connection)
        .await?;
    let runners: Result<_, String> = rows.iter().map(read_runner).collect();
    Ok(runners.map_err(damaged)?)
}

async fn runners(connection: &mut Connection) -> Result<Vec<FleetRunner>, Failure> {
    let there = runners_about(connection).await?.into_iter();
    let mut runners: BTreeMap<String, FleetRunner> =
        there.map(|runner| (runner.id.clone(), runner)).collect();
    let mut rows = engine::query(sql::RUNNING_TASKS)
        .fetch_all(connection)
        .await?;
    rows.sort_by_key(|row| count(row, "seq").unwrap_or_default());
    for row in &rows {
        let id: String = field(row, "lease_owner").map_err(damaged)?;
        let runner = runners.entry(id.clone()).or_insert_with(|| gone(id));
        runner.running.push(read_task(row).map_err(damaged)?);
    }
    Ok(runners.into_values().collect())
}

/// A runner that left tasks behind, which nobody has taken over yet.
fn gone(id: String) -> FleetRunner {
    FleetRunner {
        id,
        beats: 0,
        is_silent: true,
        about: None,
        running: Vec::new(),
    }
}

/// What a later version says of itself may not be readable here: the runner is shown without it.
fn read_runner(row: &Row) -> Result<FleetRunner, String> {
    let about: Option<&str> = field(row, "about")?;
    Ok(FleetRunner {
        id: field(row, "id")?,
        beats: count(row, "beats")?,
        is_silent: field(row, "silent")?,
        about: about.and_then(|text| serde_json::from_str(text).ok()),
        running: Vec::new(),
    })
}

fn read_task(row: &Row) -> Result<FleetTask, String> {
    let number = |column| u32::try_from(count(row, column)?).map_err(message_of);
    Ok(FleetTask {
        task_id: task_id(row, "id")?,
        task_type: field::<&str>(row, "task_type")?
            .parse()
            .map_err(message_of)?,
        subject: field(row, "subject")?,
        repository: repository(row)?,
        started_at: maybe_time(row, "started_at")?,
        attempt: number("attempt")?,
        take_overs: number("take_overs")?,
    })
}

fn repository(row: &Row) -> Result<String, String> {
    let repository: Option<String> = field(row, "repository")?;
    Ok(repository.unwrap_or_default())
}

async fn queues(connection: &mut Connection) -> Result<Vec<QueueDepth>, Failure> {
    let rows = engine::query(sql::READY_BY_KIND)
        .fetch_all(connection)
        .await?;
    let depth = |row: &Row| -> Result<QueueDepth, String> {
        Ok(QueueDepth {
            task_type: field::<&str>(row, "task_type")?
                .parse()
                .map_err(message_of)?,
            labels: field::<&str>(row, "labels")?.parse().map_err(message_of)?,
            repository: repository(row)?,
            ready: count(row, "ready")?,
            oldest_ready_at: time(row, "oldest")?,
        })
    };
    let depths: Result<_, String> = rows.iter().map(depth).collect();
    Ok(depths.map_err(damaged)?)
}

async fn limits(connection: &mut Connection) -> Result<Vec<LimitUse>, Failure> {
    let limits = limits::read(connection).await?;
    if limits.is_empty() {
        return Ok(Vec::new());
    }
    let running = Running::read(connection).await?;
    let by_name = Limits::of(&limits);
    let with_use = limits.into_iter().map(|limit| LimitUse {
        running: running.under(&limit, &by_name),
        limit,
    });
    Ok(with_use.collect())
}
