//! The processes that run tasks.
//!
//! A row is a name, a count of heartbeats, a mark, and what the process says of itself. Rows are removed by their own process when it
//! leaves, or by another that names the count it saw: a heartbeat in between makes the statement
//! match nothing. That is the whole protection; no time is stored.

use std::collections::HashMap;

use codespar_protocol::TaskId;

use super::{
    super::{
        failure::Failure,
        rows::{count, field, int},
    },
    read,
    row::{damaged, task_id},
};
use crate::engine::{self, Connection};
use crate::{Beat, HeldTask, RunnerId, RunnerSeen, WorkElsewhere, task_sql as sql};

/// A sign of life. Clears the mark of silence.
pub(super) async fn announce(
    connection: &mut Connection,
    runner: &RunnerId,
) -> Result<(), Failure> {
    engine::query(sql::ANNOUNCE)
        .bind(runner.0.as_str())
        .execute(connection)
        .await?;
    Ok(())
}

/// Compares what the runner thinks it holds with what the store says. A task that is held under
/// another epoch is lost to this lease, and is reported as nothing else.
pub(super) async fn beat(
    connection: &mut Connection,
    runner: &RunnerId,
    about: &str,
    held: &[HeldTask],
) -> Result<Beat, Failure> {
    engine::query(sql::BEAT)
        .bind(runner.0.as_str())
        .bind(about)
        .execute(&mut *connection)
        .await?;
    forget_take_overs(connection, runner, held).await?;
    let rows = engine::query(sql::NEWS_OF)
        .bind(runner.0.as_str())
        .fetch_all(&mut *connection)
        .await?;
    let mut named: HashMap<&TaskId, u64> = held.iter().map(|task| (&task.id, task.epoch)).collect();
    let mut beat = Beat::default();
    for row in &rows {
        let id = task_id(row, "id").map_err(damaged)?;
        let epoch = count(row, "lease_epoch").map_err(damaged)?;
        match named.get(&id) {
            Some(known) if *known == epoch => drop(named.remove(&id)),
            // Another lease on the same task: the one that was named is lost.
            Some(_) => continue,
            None => {
                beat.unknown.push((id, epoch));
                continue;
            }
        }
        if row.try_get("has_mail")? {
            beat.mail.push(id.clone());
        }
        if let Some(reason) = field(row, "stop_reason").map_err(damaged)? {
            beat.stop.push((id, reason));
        }
    }
    let is_lost = |task: &&HeldTask| named.contains_key(&task.id);
    let lost = held.iter().filter(is_lost);
    beat.lost = lost.map(|task| task.id.clone()).collect();
    beat.others = seen(connection).await?;
    beat.others.retain(|other| other.id != *runner);
    beat.elsewhere = work_elsewhere(connection, runner).await?;
    Ok(beat)
}

async fn work_elsewhere(
    connection: &mut Connection,
    runner: &RunnerId,
) -> Result<WorkElsewhere, Failure> {
    let is_some: bool = engine::query_scalar(sql::IS_WORK_ELSEWHERE)
        .bind(runner.0.as_str())
        .fetch_one(connection)
        .await?;
    Ok(match is_some {
        true => WorkElsewhere::Possible,
        false => WorkElsewhere::None,
    })
}

/// A task that has run here for long enough did not end its earlier runners.
async fn forget_take_overs(
    connection: &mut Connection,
    runner: &RunnerId,
    held: &[HeldTask],
) -> Result<(), Failure> {
    let stable = held.iter().filter(|task| task.is_stable);
    let stable: Vec<&TaskId> = stable.map(|task| &task.id).collect();
    if !stable.is_empty() {
        engine::query(sql::FORGET_TAKE_OVERS)
            .bind(read::json(stable.into_iter()))
            .bind(runner.0.as_str())
            .execute(connection)
            .await?;
    }
    Ok(())
}

pub(super) async fn seen(connection: &mut Connection) -> Result<Vec<RunnerSeen>, Failure> {
    let rows = engine::query(sql::RUNNERS).fetch_all(connection).await?;
    let read = |row| -> Result<RunnerSeen, String> {
        Ok(RunnerSeen {
            id: RunnerId(field(row, "id")?),
            beats: count(row, "beats")?,
            is_silent: field(row, "silent")?,
        })
    };
    let seen: Result<_, String> = rows.iter().map(read).collect();
    Ok(seen.map_err(damaged)?)
}

/// The runners, this one among them before it takes anything: others must not find it lost with what
/// it takes now.
pub(super) async fn seen_with(
    connection: &mut Connection,
    runner: &RunnerId,
) -> Result<Vec<RunnerSeen>, Failure> {
    let there = seen(connection).await?;
    let is_there = |seen: &RunnerSeen| seen.id == *runner && !seen.is_silent;
    if !there.iter().any(is_there) {
        announce(connection, runner).await?;
    }
    Ok(there)
}

pub(super) async fn mark_silent(
    connection: &mut Connection,
    seen: &RunnerSeen,
) -> Result<(), Failure> {
    as_seen(connection, sql::MARK_SILENT, seen).await
}

pub(super) async fn reap(connection: &mut Connection, seen: &RunnerSeen) -> Result<(), Failure> {
    as_seen(connection, sql::REAP, seen).await
}

/// Runs a statement that matches only while the count is the one that was seen.
async fn as_seen(
    connection: &mut Connection,
    query: &'static str,
    seen: &RunnerSeen,
) -> Result<(), Failure> {
    engine::query(query)
        .bind(seen.id.0.as_str())
        .bind(int(seen.beats))
        .execute(connection)
        .await?;
    Ok(())
}

pub(super) async fn withdraw(
    connection: &mut Connection,
    runner: &RunnerId,
) -> Result<(), Failure> {
    engine::query(sql::WITHDRAW)
        .bind(runner.0.as_str())
        .execute(connection)
        .await?;
    Ok(())
}
