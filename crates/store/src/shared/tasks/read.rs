//! Reading tasks, with both views of their dependencies.
//!
//! Each call runs in one transaction, so a task and its dependencies are of one moment. Lists are
//! passed to SQLite as one JSON argument, which keeps the statements the same for any number of
//! ids.

use std::collections::HashMap;

use codespar_protocol::{TaskId, TaskRecord, TaskStatus};
use sqlx::AssertSqlSafe;

use super::{
    super::{
        failure::Failure,
        rows::{count, int},
    },
    row::{Found, damaged, task_id},
};
use crate::engine::{self, Connection};
use crate::{Outstanding, StoreError, TaskFilter, TaskLease, task_sql as sql};

/// One task without its dependencies. Within a change nobody claims it from here on.
pub(super) async fn found(connection: &mut Connection, id: &TaskId) -> Result<Found, Failure> {
    let row = engine::query(sql::TASK)
        .for_update()
        .bind(id.as_str())
        .fetch_optional(connection)
        .await?;
    let row = row.ok_or_else(|| StoreError::NoSuchTask(id.clone()))?;
    Ok(Found::of(&row)?)
}

/// Passes for the attempt that has the task. Within a change it keeps it until that is committed.
pub(in super::super) async fn check_attempt(
    connection: &mut Connection,
    lease: &TaskLease,
) -> Result<(), Failure> {
    let task = found(connection, &lease.task).await?;
    Ok(task.held_under(lease.epoch, TaskStatus::Running)?)
}

/// One task with its dependencies, as callers of the store get it.
pub(super) async fn record(
    connection: &mut Connection,
    id: &TaskId,
) -> Result<TaskRecord, Failure> {
    let mut records = vec![found(connection, id).await?.record];
    fill(connection, &mut records).await?;
    records
        .pop()
        .ok_or_else(|| StoreError::NoSuchTask(id.clone()).into())
}

/// In the order of the ids. One that is missing is an error.
pub(super) async fn records(
    connection: &mut Connection,
    ids: &[TaskId],
) -> Result<Vec<TaskRecord>, Failure> {
    let records = known(connection, ids).await?.into_iter();
    let mut by_id: HashMap<TaskId, TaskRecord> = records
        .map(|record| (record.task_id.clone(), record))
        .collect();
    let taken = |id: &TaskId| {
        let gone = || StoreError::NoSuchTask(id.clone());
        by_id.remove(id).ok_or_else(|| gone().into())
    };
    ids.iter().map(taken).collect()
}

/// Those of these that there are.
pub(super) async fn known(
    connection: &mut Connection,
    ids: &[TaskId],
) -> Result<Vec<TaskRecord>, Failure> {
    let rows = engine::query(sql::TASKS_BY_IDS)
        .bind(json(ids.iter()))
        .fetch_all(&mut *connection)
        .await?;
    let mut records = Vec::with_capacity(rows.len());
    for row in &rows {
        records.push(Found::of(row)?.record);
    }
    fill(connection, &mut records).await?;
    Ok(records)
}

/// In order of creation. A limit keeps the newest, so the query runs backwards and the result is
/// turned round.
pub(super) async fn listed(
    connection: &mut Connection,
    filter: &TaskFilter,
) -> Result<Vec<TaskRecord>, Failure> {
    let wanted = [
        ("status", filter.status.map(|status| status.to_string())),
        ("session_id", filter.session_id.map(|id| id.to_string())),
        (
            "parent_task_id",
            filter.parent_task_id.as_ref().map(ToString::to_string),
        ),
        ("task_type", filter.task_type.map(|kind| kind.to_string())),
        ("tree", filter.tree.map(|id| id.to_string())),
        (
            "json_extract(authority, '$.project_root')",
            filter
                .project_root
                .as_ref()
                .map(|root| root.display().to_string()),
        ),
    ];
    let (mut conditions, mut values) = (Vec::new(), Vec::new());
    for (column, value) in wanted {
        if let Some(value) = value {
            values.push(value);
            conditions.push(format!("{column} = ${}", values.len()));
        }
    }
    if let Some(prefix) = &filter.id_prefix {
        conditions.push(format!("id >= ${}", values.len() + 1));
        conditions.push(format!("id < ${}", values.len() + 2));
        // Ids end in hexadecimal digits: all that begin so are before this one.
        values.extend([prefix.clone(), format!("{prefix}g")]);
    }
    if !filter.project_roots.is_empty() {
        let roots = filter.project_roots.iter();
        let roots: Vec<String> = roots.map(|root| root.display().to_string()).collect();
        values.push(serde_json::Value::from(roots).to_string());
        conditions.push(format!(
            "json_extract(authority, '$.project_root') IN (SELECT value FROM json_each(${}))",
            values.len()
        ));
    }
    if let Some(before) = &filter.before {
        values.push(before.to_string());
        conditions.push(format!(
            "seq < (SELECT seq FROM tasks WHERE id = ${})",
            values.len()
        ));
    }
    let mut text = sql::TASKS.to_owned();
    if !conditions.is_empty() {
        text += &format!("WHERE {} ", conditions.join(" AND "));
    }
    text += &format!("ORDER BY seq DESC LIMIT ${}", values.len() + 1);
    let mut query = engine::query(AssertSqlSafe(text));
    for value in values {
        query = query.bind(value);
    }
    let limit = filter.limit.map_or(i64::MAX, i64::from);
    let rows = query.bind(limit).fetch_all(&mut *connection).await?;
    let read = |row| Found::of(row).map(|found| found.record);
    let mut records: Vec<TaskRecord> = rows.iter().rev().map(read).collect::<Result<_, _>>()?;
    fill(connection, &mut records).await?;
    Ok(records)
}

/// Both views of the dependencies, in the order in which they were made.
async fn fill(connection: &mut Connection, records: &mut [TaskRecord]) -> Result<(), Failure> {
    let ids = json(records.iter().map(|record| &record.task_id));
    let places: HashMap<TaskId, usize> = records
        .iter()
        .enumerate()
        .map(|(place, record)| (record.task_id.clone(), place))
        .collect();
    for (task, blocker) in dependencies(connection, sql::BLOCKERS_OF, &ids).await? {
        if let Some(&place) = places.get(&task) {
            records[place].blocked_by.push(blocker);
        }
    }
    for (task, blocker) in dependencies(connection, sql::BLOCKED_BY, &ids).await? {
        if let Some(&place) = places.get(&blocker) {
            records[place].blocks.push(task);
        }
    }
    Ok(())
}

/// Pairs of a task and one that it waits for.
async fn dependencies(
    connection: &mut Connection,
    query: &'static str,
    ids: &str,
) -> Result<Vec<(TaskId, TaskId)>, Failure> {
    let rows = engine::query(query).bind(ids).fetch_all(connection).await?;
    let mut read = Vec::with_capacity(rows.len());
    for row in &rows {
        let place = count(row, "place").map_err(damaged)?;
        let task = task_id(row, "task_id").map_err(damaged)?;
        read.push((place, task, task_id(row, "blocker").map_err(damaged)?));
    }
    read.sort_unstable_by_key(|(place, ..)| *place);
    Ok(read
        .into_iter()
        .map(|(_, task, blocker)| (task, blocker))
        .collect())
}

/// The refusal that names what a task still waits for; it is returned, not raised, so that the
/// caller decides.
pub(super) async fn waits_for(
    connection: &mut Connection,
    id: &TaskId,
) -> Result<StoreError, Failure> {
    let blockers: Vec<String> = engine::query_scalar(sql::WAITS_FOR)
        .bind(id.as_str())
        .fetch_all(connection)
        .await?;
    let read = |text: &String| text.parse().map_err(|error| damaged(format!("{error}")));
    let mut blockers: Vec<TaskId> = blockers
        .iter()
        .map(read)
        .collect::<Result<_, StoreError>>()?;
    blockers.sort();
    Ok(StoreError::StillWaiting {
        id: id.clone(),
        blockers,
    })
}

pub(super) async fn outstanding(connection: &mut Connection) -> Result<Outstanding, Failure> {
    let row = engine::query(sql::OUTSTANDING)
        .fetch_one(connection)
        .await?;
    Ok(Outstanding {
        pending: count(&row, "pending").map_err(damaged)?,
        ready: count(&row, "ready").map_err(damaged)?,
        running: count(&row, "running").map_err(damaged)?,
    })
}

/// Forgets finished tasks; what hangs on them goes by foreign key.
pub(super) async fn remove_before(
    connection: &mut Connection,
    before: jiff::Timestamp,
) -> Result<Vec<TaskId>, Failure> {
    let rows = engine::query(sql::DELETE_OLD_TASKS)
        .bind(before.as_microsecond())
        .fetch_all(connection)
        .await?;
    let mut removed = Vec::with_capacity(rows.len());
    for row in &rows {
        let seq = count(row, "seq").map_err(damaged)?;
        removed.push((int(seq), task_id(row, "id").map_err(damaged)?));
    }
    removed.sort_unstable_by_key(|(seq, _)| *seq);
    Ok(removed.into_iter().map(|(_, id)| id).collect())
}

/// A list of ids as one argument.
pub(super) fn json<'a>(ids: impl Iterator<Item = &'a TaskId>) -> String {
    let quoted: Vec<String> = ids.map(|id| format!("\"{id}\"")).collect();
    format!("[{}]", quoted.join(","))
}
