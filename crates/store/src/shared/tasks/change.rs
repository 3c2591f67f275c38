//! Changing a record by hand, and asking for a stop.
//!
//! Only what nobody else decides can be changed here. The spec and the authority have no way in (a
//! trigger guards their columns), results are written by runners alone, and the status of a task
//! that a runner holds can only be brought to an end by asking for a stop.

use codespar_protocol::{OnDependencyFailure, RESULT_KEYS, TaskId, TaskRecord, TaskStatus};
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{
    super::failure::Failure,
    create, ending, graph, items, mail, read,
    row::{Found, as_text, damaged, merge, task_id},
};
use crate::engine::{self, Connection};
use crate::{OwnerRule, StoreError, TaskChange, task_sql as sql};

/// Fields first, then dependencies, then the status, so that a step sees the task as the change
/// leaves it. A refusal anywhere undoes all of it.
pub(super) async fn change(
    connection: &mut Connection,
    id: &TaskId,
    change: TaskChange,
    at: Timestamp,
) -> Result<TaskRecord, Failure> {
    refuse_result_keys(id, &change.metadata)?;
    let mut task = read::found(connection, id).await?;
    if change.owner_must_be_free == OwnerRule::ClaimFree {
        refuse_unless_free(connection, &task).await?;
    }
    let status = change
        .status
        .or_else(|| items::step_of(&task.record, &change));
    let gives_back = items::gives_back(&task.record, &change);
    let record = &mut task.record;
    if let Some(subject) = change.subject {
        record.subject = subject;
    }
    if let Some(description) = change.description {
        record.description = description;
    }
    if let Some(active_form) = change.active_form {
        record.active_form = Some(active_form).filter(|text| !text.is_empty());
    }
    if let Some(owner) = change.owner {
        record.owner = owner;
    }
    merge(&mut record.metadata, change.metadata);
    write(connection, record, at).await?;
    if !change.add_blocked_by.is_empty() {
        wait_for(connection, &task, &change.add_blocked_by, at).await?;
    }
    if gives_back {
        items::free(connection, id, at).await?;
    }
    if let Some(status) = status {
        step(connection, id, status, at).await?;
    }
    read::record(connection, id).await
}

/// What a runner reports of a task is not for others to write.
pub(super) fn refuse_result_keys(
    id: &TaskId,
    metadata: &Map<String, Value>,
) -> Result<(), StoreError> {
    match RESULT_KEYS
        .into_iter()
        .find(|key| metadata.contains_key(*key))
    {
        Some(key) => Err(StoreError::ResultKey {
            id: id.clone(),
            key,
        }),
        None => Ok(()),
    }
}

/// What makes taking a task atomic: the owner is looked at in the transaction that sets it, and the
/// refusal names who was faster.
async fn refuse_unless_free(connection: &mut Connection, task: &Found) -> Result<(), Failure> {
    let id = task.id().clone();
    if let Some(owner) = task.record.owner.clone() {
        return Err(StoreError::OwnerTaken { id, owner }.into());
    }
    if task.record.status.is_final() {
        return Err(task.wrong_state("there is nothing left to take").into());
    }
    if task.unmet > 0 {
        return Err(read::waits_for(connection, &id).await?.into());
    }
    Ok(())
}

/// The fields that can be changed at any time.
async fn write(
    connection: &mut Connection,
    record: &TaskRecord,
    at: Timestamp,
) -> Result<(), Failure> {
    engine::query(sql::CHANGE_TASK)
        .bind(record.task_id.as_str())
        .bind(record.subject.as_str())
        .bind(record.description.as_str())
        .bind(record.owner.as_deref())
        .bind(as_text(&record.metadata))
        .bind(at.as_microsecond())
        .bind(record.active_form.as_deref())
        .execute(connection)
        .await?;
    Ok(())
}

/// Adds dependencies to a pending task; one that has failed already fails it. Unknown ids are
/// refused. Those it waits for already change nothing.
async fn wait_for(
    connection: &mut Connection,
    task: &Found,
    blockers: &[TaskId],
    at: Timestamp,
) -> Result<(), Failure> {
    let id = task.id();
    if task.record.status != TaskStatus::Pending {
        let rule = "only a pending task can be made to wait for others";
        return Err(task.wrong_state(rule).into());
    }
    let run_anyway = task.record.on_dependency_failure == OnDependencyFailure::Run;
    let (mut unmet, mut failed) = (0, None);
    for blocker in blockers {
        let status = read::found(connection, blocker).await?.record.status;
        if !create::depend(connection, id, blocker, status.is_final()).await? {
            continue;
        }
        match status {
            TaskStatus::Pending | TaskStatus::Running => unmet += 1,
            TaskStatus::Failed | TaskStatus::Killed if !run_anyway => failed = Some(blocker),
            TaskStatus::Completed | TaskStatus::Failed | TaskStatus::Killed => {}
        }
    }
    refuse_cycle(connection, id).await?;
    create::wait_for_more(connection, id, unmet).await?;
    match failed {
        Some(blocker) => create::fail_for(connection, id, blocker, at).await,
        None => Ok(()),
    }
}

/// Looks at all that is above the task, its new dependencies among them. Run after the dependencies
/// are written: the error rolls them back.
async fn refuse_cycle(connection: &mut Connection, id: &TaskId) -> Result<(), Failure> {
    let rows = engine::query(sql::ABOVE)
        .bind(id.as_str())
        .fetch_all(connection)
        .await?;
    let mut above = Vec::with_capacity(rows.len());
    for row in &rows {
        let task = task_id(row, "task_id").map_err(damaged)?;
        above.push((task, task_id(row, "blocker").map_err(damaged)?));
    }
    let mut waits = graph::Waits::new();
    for (task, blocker) in &above {
        waits.entry(task).or_default().push(blocker);
    }
    match graph::cycle([id].into_iter(), &waits) {
        Some(cycle) => Err(StoreError::Cycle(cycle).into()),
        None => Ok(()),
    }
}

/// A step of the lifecycle by hand. Reads the task again: the change before it may have failed it
/// or put it back on its list.
async fn step(
    connection: &mut Connection,
    id: &TaskId,
    to: TaskStatus,
    at: Timestamp,
) -> Result<(), Failure> {
    let task = read::found(connection, id).await?;
    let from = task.record.status;
    if !from.may_become(to) {
        let id = id.clone();
        return Err(StoreError::NoSuchStep { id, from, to }.into());
    }
    if task.runner.is_some() {
        return Err(StoreError::HeldByRunner(id.clone()).into());
    }
    if to.is_final() {
        ending::end_unheld(connection, &task, to, None, at).await?;
        return Ok(());
    }
    if task.unmet > 0 {
        return Err(read::waits_for(connection, id).await?.into());
    }
    engine::query(sql::BEGIN_BY_HAND)
        .bind(id.as_str())
        .bind(at.as_microsecond())
        .execute(connection)
        .await?;
    Ok(())
}

/// A task that nobody runs is over at once; a runner learns of it when it renews its lease.
pub(super) async fn stop(
    connection: &mut Connection,
    id: &TaskId,
    reason: &str,
    at: Timestamp,
) -> Result<TaskRecord, Failure> {
    let mut task = read::found(connection, id).await?;
    if items::rests(connection, &task.record).await? {
        // It would be woken by the next item: the attempt that it waits for is stopped.
        mail::restart(connection, id, at).await?;
        task = read::found(connection, id).await?;
    }
    if task.record.status.is_final() {
        return Err(task.wrong_state("there is nothing to stop").into());
    }
    if task.runner.is_none() {
        ending::end_unheld(connection, &task, TaskStatus::Killed, Some(reason), at).await?;
    } else {
        engine::query(sql::ASK_TO_STOP)
            .bind(id.as_str())
            .bind(reason)
            .bind(at.as_microsecond())
            .execute(&mut *connection)
            .await?;
    }
    read::record(connection, id).await
}
