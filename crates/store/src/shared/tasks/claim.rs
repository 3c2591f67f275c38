//! Taking ready tasks under a lease, and giving back what was taken.
//!
//! A claim is one transaction, so two runners never get the same task: with SQLite because there is
//! one writer, with PostgreSQL because each locks what it takes and skips what is locked. It takes what lost
//! runners left before anything new, each in order of creation, until the capacity is used up.
//!
//! Nothing here looks at a clock to decide who is lost. A runner is there while it has a row that
//! is not marked as silent; whoever watches the others marks and removes rows (`runners.rs`).
//!
//! The cost depends on what is taken. Queues with something ready and runners that hold something
//! are found by skipping through an index, and from each queue no more rows are read than there is
//! room for (`admission.rs`, which also keeps to the limits).

use std::{collections::HashSet, path::Path};

use codespar_protocol::{TaskId, TaskStatus, TaskType};
use jiff::Timestamp;

use super::{
    super::{
        failure::Failure,
        rows::{count, field},
    },
    admission::{self, ReadyQueues, Room},
    ending,
    queue::Queue,
    read,
    row::{damaged, task_id},
    runners,
};
use crate::engine::{self, Access, Connection};
use crate::{Capacity, ClaimScope, Claimed, MAX_TAKE_OVERS, RunnerId, RunnerSeen, task_sql as sql};

/// A task that may be taken. `taken_from` is the lost runner, or `None` for a task that was
/// pending.
pub(super) struct Candidate {
    pub(super) seq: u64,
    pub(super) id: TaskId,
    pub(super) task_type: TaskType,
    pub(super) taken_from: Option<RunnerId>,
}

/// A runner that has not announced itself, or is marked as silent, is announced first: once tasks
/// are locked here nothing is waited for, so claims and changes cannot wait for each other.
///
/// `None` where a task must be given up first. That ends others with it, which takes a change.
pub(super) async fn claim(
    connection: &mut Connection,
    runner: &RunnerId,
    capacity: &Capacity,
    at: Timestamp,
) -> Result<Option<Vec<Claimed>>, Failure> {
    let mut room = Room::of(capacity);
    // Before the runners: one that is reserved for a runner is then not older than its runner.
    let ready = ReadyQueues::read(connection).await?;
    if ready.is_limited {
        // What runs is counted, and added to, by one claim at a time.
        engine::lock_admission(connection).await?;
    }
    let there = runners::seen_with(connection, runner).await?;
    let alive: HashSet<&str> = there
        .iter()
        .filter(|other| !other.is_silent)
        .map(|other| other.id.0.as_str())
        .collect();
    let open = |queue: &Queue| is_open_to(queue, runner, capacity, &alive);
    let Some(mut candidates) = lost(connection, runner, &there, at, open).await? else {
        return Ok(None);
    };
    candidates.retain(|task| !capacity.skip.contains(&task.id) && room.take(task.task_type));
    candidates.extend(admission::admit(connection, ready, room, &capacity.skip, open).await?);
    let ids: Vec<TaskId> = candidates.iter().map(|task| task.id.clone()).collect();
    let epochs = take(connection, runner, &ids, at).await?;
    if ids.is_empty() {
        return Ok(Some(Vec::new()));
    }
    let records = read::records(connection, &ids).await?;
    let taken = records.into_iter().zip(epochs).zip(candidates);
    let claimed = taken.map(|((record, epoch), task)| Claimed {
        record,
        epoch,
        taken_from: task.taken_from,
    });
    Ok(Some(claimed.collect()))
}

/// Puts them under leases of this runner; gives the epochs.
pub(super) async fn take(
    connection: &mut Connection,
    runner: &RunnerId,
    ids: &[TaskId],
    at: Timestamp,
) -> Result<Vec<u64>, Failure> {
    let mut epochs = Vec::with_capacity(ids.len());
    for id in ids {
        let row = engine::query(sql::CLAIM)
            .bind(id.as_str())
            .bind(runner.0.as_str())
            .bind(at.as_microsecond())
            .fetch_one(&mut *connection)
            .await?;
        epochs.push(count(&row, "lease_epoch").map_err(damaged)?);
    }
    Ok(epochs)
}

/// Whether this runner may take from a queue. One that is reserved for a runner opens to all when
/// that runner is lost.
fn is_open_to(
    queue: &Queue,
    runner: &RunnerId,
    capacity: &Capacity,
    alive: &HashSet<&str>,
) -> bool {
    let root = queue.root.as_deref();
    let reserved = queue.reserved_for.as_deref();
    if capacity.scope == ClaimScope::Reserved && reserved != Some(runner.0.as_str()) {
        return false;
    }
    // Of an early version, for nobody knows which project: whoever takes it says so.
    root.is_none_or(|root| capacity.projects.include(Path::new(root)))
        && capacity.labels.include(&queue.labels)
        && !reserved.is_some_and(|only| only != runner.0 && alive.contains(only))
}

/// Tasks of runners that are gone, and what another can continue of those that are silent, in order
/// of creation; none of this runner's own. One that was taken over too often ends here; `None` where
/// the connection was not begun for that.
async fn lost(
    connection: &mut Connection,
    runner: &RunnerId,
    there: &[RunnerSeen],
    at: Timestamp,
    open: impl Fn(&Queue) -> bool,
) -> Result<Option<Vec<Candidate>>, Failure> {
    let mut lost = Vec::new();
    for holder in holders(connection).await? {
        let seen = there.iter().find(|other| other.id.0 == holder);
        if holder == runner.0 || seen.is_some_and(|other| !other.is_silent) {
            continue;
        }
        let rows = engine::query(sql::HELD_BY)
            .skip_locked()
            .bind(holder.as_str())
            .fetch_all(&mut *connection)
            .await?;
        if !rows.is_empty() && !is_still_lost(connection, &holder, seen).await? {
            continue;
        }
        for row in &rows {
            let queue = Queue::parse(field(row, "queue").map_err(damaged)?);
            let Some(queue) = queue.filter(|queue| open(queue)) else {
                continue;
            };
            let task_type = queue.task_type;
            // A command cannot be continued, only be called lost: not before its runner is gone.
            if seen.is_some() && task_type == TaskType::LocalBash {
                continue;
            }
            let id = task_id(row, "id").map_err(damaged)?;
            if count(row, "take_overs").map_err(damaged)? >= u64::from(MAX_TAKE_OVERS) {
                if connection.access == Access::Claim {
                    return Ok(None);
                }
                give_up(connection, &id, at).await?;
                continue;
            }
            lost.push(Candidate {
                seq: count(row, "seq").map_err(damaged)?,
                id,
                task_type,
                taken_from: Some(RunnerId(holder.clone())),
            });
        }
    }
    lost.sort_by_key(|task| task.seq);
    Ok(Some(lost))
}

/// The runners that hold something.
pub(super) async fn holders(connection: &mut Connection) -> Result<Vec<String>, Failure> {
    let holders = engine::query_scalar(sql::HOLDERS).fetch_all(connection);
    Ok(holders.await?)
}

/// Where several claim at once, a runner may have come, and have taken these tasks, since the runners
/// were read. It is there before the first task that it takes, so once its tasks are locked here it
/// can be seen.
async fn is_still_lost(
    connection: &mut Connection,
    holder: &str,
    before: Option<&RunnerSeen>,
) -> Result<bool, Failure> {
    if connection.access != Access::Claim {
        return Ok(true);
    }
    let there = runners::seen(connection).await?;
    let now = there.iter().find(|other| other.id.0 == holder);
    Ok(now.is_none_or(|now| now.is_silent && before.is_some()))
}

/// A task that so many runners were lost with may be what ends its processes.
pub(super) async fn give_up(
    connection: &mut Connection,
    id: &TaskId,
    at: Timestamp,
) -> Result<(), Failure> {
    let task = read::found(connection, id).await?;
    let error = format!(
        "given up: {MAX_TAKE_OVERS} processes in a row were lost within a minute of taking it \
         over; it may be what ends them. A message starts an agent again."
    );
    ending::end_unheld(connection, &task, TaskStatus::Failed, Some(&error), at).await?;
    Ok(())
}

/// Undoes a claim; the task can be claimed again at once. A stop that was asked for meanwhile takes
/// place now: the task is killed instead.
pub(super) async fn release(
    connection: &mut Connection,
    id: &TaskId,
    epoch: u64,
    at: Timestamp,
) -> Result<(), Failure> {
    let task = read::found(connection, id).await?;
    task.held_under(epoch, TaskStatus::Pending)?;
    if let Some(reason) = &task.stop_reason {
        ending::end_unheld(connection, &task, TaskStatus::Killed, Some(reason), at).await?;
        return Ok(());
    }
    engine::query(sql::RELEASE)
        .bind(id.as_str())
        .bind(at.as_microsecond())
        .execute(&mut *connection)
        .await?;
    engine::query(sql::DROP_CLAIMS)
        .bind(id.as_str())
        .execute(connection)
        .await?;
    Ok(())
}
