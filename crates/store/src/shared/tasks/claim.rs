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
//! room for.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
};

use codespar_protocol::{TaskId, TaskStatus, TaskType};
use jiff::Timestamp;

use super::{
    super::{
        failure::Failure,
        rows::{count, field},
    },
    ending, read,
    row::{damaged, task_id},
    runners,
};
use crate::engine::{self, Access, Connection};
use crate::{Capacity, Claimed, MAX_TAKE_OVERS, Projects, RunnerId, RunnerSeen, task_sql as sql};

/// A task that may be taken. `taken_from` is the lost runner, or `None` for a task that was
/// pending.
struct Candidate {
    seq: u64,
    id: TaskId,
    task_type: TaskType,
    taken_from: Option<RunnerId>,
}

/// What a runner has room for, as it fills.
struct Room {
    by_type: HashMap<TaskType, u32>,
    total: u32,
}

impl Room {
    /// A type that is named twice has the room of both.
    fn of(capacity: &Capacity) -> Self {
        let mut by_type: HashMap<TaskType, u32> = HashMap::new();
        for &(task_type, room) in &capacity.by_type {
            *by_type.entry(task_type).or_default() += room;
        }
        Self {
            by_type,
            total: capacity.total,
        }
    }

    /// How many of this type still fit; 0 for a type that the runner does not take.
    fn left(&self, task_type: TaskType) -> u32 {
        let left = self.by_type.get(&task_type).copied().unwrap_or_default();
        left.min(self.total)
    }

    /// Whether there was room for one.
    fn take(&mut self, task_type: TaskType) -> bool {
        if self.left(task_type) == 0 {
            return false;
        }
        self.total -= 1;
        if let Some(left) = self.by_type.get_mut(&task_type) {
            *left -= 1;
        }
        true
    }
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
    let queues: Vec<String> = engine::query_scalar(sql::READY_QUEUES)
        .fetch_all(&mut *connection)
        .await?;
    let there = runners::seen(connection).await?;
    // Others must not find it lost with what it takes now.
    let is_there = |seen: &RunnerSeen| seen.id == *runner && !seen.is_silent;
    if !there.iter().any(is_there) {
        runners::announce(connection, runner).await?;
    }
    let alive: HashSet<&str> = there
        .iter()
        .filter(|other| !other.is_silent)
        .map(|other| other.id.0.as_str())
        .collect();
    let open = |queue: &str| open_to(queue, runner, &capacity.projects, &alive);
    let Some(mut candidates) = lost(connection, runner, &there, at, open).await? else {
        return Ok(None);
    };
    candidates.retain(|task| !capacity.skip.contains(&task.id) && room.take(task.task_type));
    let mut ready = ready(connection, queues, &room, &capacity.skip, open).await?;
    ready.retain(|task| room.take(task.task_type));
    candidates.extend(ready);
    let mut epochs = Vec::with_capacity(candidates.len());
    for task in &candidates {
        let row = engine::query(sql::CLAIM)
            .bind(task.id.as_str())
            .bind(runner.0.as_str())
            .bind(at.as_microsecond())
            .fetch_one(&mut *connection)
            .await?;
        epochs.push(count(&row, "lease_epoch").map_err(damaged)?);
    }
    let ids: Vec<TaskId> = candidates.iter().map(|task| task.id.clone()).collect();
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

/// The type of a queue's tasks, if this runner may take them. A queue that is reserved for a runner
/// opens to all when that runner is lost. Queues of team lists are named after no type and are open
/// to nobody.
fn open_to(
    queue: &str,
    runner: &RunnerId,
    projects: &Projects,
    alive: &HashSet<&str>,
) -> Option<TaskType> {
    let (queue, project) = match queue.split_once('#') {
        Some((queue, project)) => (queue, Some(project)),
        // Of an earlier version, for nobody knows which project: whoever takes it says so.
        None => (queue, None),
    };
    if project.is_some_and(|root| !projects.include(Path::new(root))) {
        return None;
    }
    let (task_type, only) = match queue.split_once('@') {
        Some((task_type, only)) => (task_type, Some(only)),
        None => (queue, None),
    };
    let reserved = only.is_some_and(|only| only != runner.0 && alive.contains(only));
    (!reserved).then(|| task_type.parse().ok()).flatten()
}

/// Tasks of runners that are gone, and what another can continue of those that are silent, in order
/// of creation; none of this runner's own. One that was taken over too often ends here; `None` where
/// the connection was not begun for that.
async fn lost(
    connection: &mut Connection,
    runner: &RunnerId,
    there: &[RunnerSeen],
    at: Timestamp,
    open: impl Fn(&str) -> Option<TaskType>,
) -> Result<Option<Vec<Candidate>>, Failure> {
    let holders: Vec<String> = engine::query_scalar(sql::HOLDERS)
        .fetch_all(&mut *connection)
        .await?;
    let mut lost = Vec::new();
    for holder in holders {
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
            let Some(task_type) = open(field(row, "queue").map_err(damaged)?) else {
                continue;
            };
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
async fn give_up(connection: &mut Connection, id: &TaskId, at: Timestamp) -> Result<(), Failure> {
    let task = read::found(connection, id).await?;
    let error = format!(
        "given up: {MAX_TAKE_OVERS} processes in a row were lost within a minute of taking it \
         over; it may be what ends them. A message starts an agent again."
    );
    ending::end_unheld(connection, &task, TaskStatus::Failed, Some(&error), at).await?;
    Ok(())
}

/// The first of each queue there is room for, together in order of creation. May give more than
/// there is room for, since queues of one type share it; the caller cuts.
async fn ready(
    connection: &mut Connection,
    queues: Vec<String>,
    room: &Room,
    skip: &[TaskId],
    open: impl Fn(&str) -> Option<TaskType>,
) -> Result<Vec<Candidate>, Failure> {
    let mut ready = Vec::new();
    for queue in queues {
        let Some(task_type) = open(&queue).filter(|kind| room.left(*kind) > 0) else {
            continue;
        };
        let rows = engine::query(sql::READY_IN_QUEUE)
            .skip_locked()
            .bind(queue)
            .bind(i64::from(room.left(task_type)))
            .bind(read::json(skip.iter()))
            .fetch_all(&mut *connection)
            .await?;
        for row in &rows {
            ready.push(Candidate {
                seq: count(row, "seq").map_err(damaged)?,
                id: task_id(row, "id").map_err(damaged)?,
                task_type,
                taken_from: None,
            });
        }
    }
    ready.sort_by_key(|task| task.seq);
    Ok(ready)
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
