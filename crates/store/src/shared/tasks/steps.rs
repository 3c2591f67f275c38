//! What the steps of a task gave, kept so that a crash resumes after them.
//!
//! A step is recorded under the epoch of the attempt, so a runner that lost its lease cannot record
//! one. The steps of earlier attempts stay, which is what lets the next attempt skip them.

use codespar_protocol::{TaskId, TaskStatus};
use jiff::Timestamp;
use serde_json::Value;

use super::{
    super::{
        failure::Failure,
        rows::{field, message_of, time},
    },
    read,
    row::damaged,
};
use crate::engine::{self, Connection};
use crate::task_sql as sql;

pub(super) async fn record(
    connection: &mut Connection,
    id: &TaskId,
    epoch: u64,
    step: &str,
    result: &str,
) -> Result<(), Failure> {
    let task = read::found(connection, id).await?;
    task.held_under(epoch, TaskStatus::Running)?;
    engine::query(sql::RECORD_STEP)
        .bind(id.as_str())
        .bind(step)
        .bind(result)
        .execute(connection)
        .await?;
    Ok(())
}

pub(super) async fn times(
    connection: &mut Connection,
    id: &TaskId,
) -> Result<Vec<(String, Timestamp)>, Failure> {
    let rows = engine::query(sql::STEP_TIMES)
        .bind(id.as_str())
        .fetch_all(connection)
        .await?;
    let times = rows
        .iter()
        .map(|row| Ok((field(row, "step")?, time(row, "at")?)));
    let times: Result<_, String> = times.collect();
    Ok(times.map_err(damaged)?)
}

/// Empty for a task without steps; an unknown task is an error.
pub(super) async fn of_task(
    connection: &mut Connection,
    id: &TaskId,
) -> Result<Vec<(String, Value)>, Failure> {
    read::found(connection, id).await?;
    let rows = engine::query(sql::STEPS)
        .bind(id.as_str())
        .fetch_all(connection)
        .await?;
    let steps = rows.iter().map(|row| {
        let result = serde_json::from_str(field(row, "result")?).map_err(message_of)?;
        Ok((field(row, "step")?, result))
    });
    let steps: Result<_, String> = steps.collect();
    Ok(steps.map_err(damaged)?)
}
