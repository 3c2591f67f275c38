//! Taking ready tasks under a lease, and keeping or giving back what was taken.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
    time::Duration,
};

use codespar_protocol::{TaskId, TaskStatus, TaskType};
use jiff::Timestamp;
use sqlx::{Row, SqliteConnection};

use super::{
    super::{
        failure::Failure,
        rows::{count, field, int},
    },
    ending, read,
    row::{damaged, task_id},
    runners, until,
};
use crate::{Capacity, Claimed, Projects, Renewal, RunnerId, task_sql as sql};

/// A task that may be taken.
struct Candidate {
    seq: u64,
    id: TaskId,
    task_type: TaskType,
    was_lost: bool,
}

/// What a runner has room for, as it fills.
struct Room {
    by_type: HashMap<TaskType, u32>,
    total: u32,
}

impl Room {
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

pub(super) async fn claim(
    connection: &mut SqliteConnection,
    runner: &RunnerId,
    capacity: &Capacity,
    lease: Duration,
    at: Timestamp,
) -> Result<Vec<Claimed>, Failure> {
    let mut room = Room::of(capacity);
    let living: HashSet<String> = runners::living(connection, at)
        .await?
        .into_iter()
        .map(|runner| runner.0)
        .collect();
    let open = |queue: &str| open_to(queue, runner, &capacity.projects, &living);
    let mut candidates = expired(connection, at, open).await?;
    candidates.retain(|lost| room.take(lost.task_type));
    let mut ready = ready(connection, &room, open).await?;
    ready.retain(|task| room.take(task.task_type));
    candidates.extend(ready);
    let mut epochs = Vec::with_capacity(candidates.len());
    for task in &candidates {
        let row = sqlx::query(sql::CLAIM)
            .bind(task.id.as_str())
            .bind(runner.0.as_str())
            .bind(until(at, lease))
            .bind(at.as_microsecond())
            .fetch_one(&mut *connection)
            .await?;
        epochs.push(count(&row, "lease_epoch").map_err(damaged)?);
    }
    let ids: Vec<TaskId> = candidates.iter().map(|task| task.id.clone()).collect();
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let records = read::records(connection, &ids).await?;
    let taken = records.into_iter().zip(epochs).zip(candidates);
    let claimed = taken.map(|((record, epoch), task)| Claimed {
        record,
        epoch,
        was_lost: task.was_lost,
    });
    Ok(claimed.collect())
}

/// The type of a queue's tasks, if this runner may take them.
fn open_to(
    queue: &str,
    runner: &RunnerId,
    projects: &Projects,
    living: &HashSet<String>,
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
    let reserved = only.is_some_and(|only| only != runner.0 && living.contains(only));
    (!reserved).then(|| task_type.parse().ok()).flatten()
}

/// In order of creation. All of them are read: they are no more than were running.
async fn expired(
    connection: &mut SqliteConnection,
    at: Timestamp,
    open: impl Fn(&str) -> Option<TaskType>,
) -> Result<Vec<Candidate>, Failure> {
    let rows = sqlx::query(sql::EXPIRED)
        .bind(at.as_microsecond())
        .fetch_all(connection)
        .await?;
    let mut lost = Vec::new();
    for row in &rows {
        if let Some(task_type) = open(field(row, "queue").map_err(damaged)?) {
            lost.push(Candidate {
                seq: count(row, "seq").map_err(damaged)?,
                id: task_id(row, "id").map_err(damaged)?,
                task_type,
                was_lost: true,
            });
        }
    }
    lost.sort_by_key(|task| task.seq);
    Ok(lost)
}

/// The first of each queue there is room for, together in order of creation.
async fn ready(
    connection: &mut SqliteConnection,
    room: &Room,
    open: impl Fn(&str) -> Option<TaskType>,
) -> Result<Vec<Candidate>, Failure> {
    if room.total == 0 {
        return Ok(Vec::new());
    }
    let queues: Vec<String> = sqlx::query_scalar(sql::READY_QUEUES)
        .fetch_all(&mut *connection)
        .await?;
    let mut ready = Vec::new();
    for queue in queues {
        let Some(task_type) = open(&queue).filter(|kind| room.left(*kind) > 0) else {
            continue;
        };
        let rows = sqlx::query(sql::READY_IN_QUEUE)
            .bind(queue)
            .bind(i64::from(room.left(task_type)))
            .fetch_all(&mut *connection)
            .await?;
        for row in &rows {
            ready.push(Candidate {
                seq: count(row, "seq").map_err(damaged)?,
                id: task_id(row, "id").map_err(damaged)?,
                task_type,
                was_lost: false,
            });
        }
    }
    ready.sort_by_key(|task| task.seq);
    Ok(ready)
}

pub(super) async fn renew(
    connection: &mut SqliteConnection,
    runner: &RunnerId,
    held: &[(TaskId, u64)],
    until: i64,
) -> Result<Renewal, Failure> {
    let mut renewal = Renewal::default();
    for (id, epoch) in held {
        let row = sqlx::query(sql::RENEW)
            .bind(id.as_str())
            .bind(runner.0.as_str())
            .bind(int(*epoch))
            .bind(until)
            .fetch_optional(&mut *connection)
            .await?;
        let Some(row) = row else {
            renewal.lost.push(id.clone());
            continue;
        };
        if let Some(reason) = field(&row, "stop_reason").map_err(damaged)? {
            renewal.stop.push((id.clone(), reason));
        }
        if row.try_get("has_mail")? {
            renewal.mail.push(id.clone());
        }
    }
    Ok(renewal)
}

/// A stop that was asked for meanwhile takes place now.
pub(super) async fn release(
    connection: &mut SqliteConnection,
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
    sqlx::query(sql::RELEASE)
        .bind(id.as_str())
        .bind(at.as_microsecond())
        .execute(&mut *connection)
        .await?;
    sqlx::query(sql::DROP_CLAIMS)
        .bind(id.as_str())
        .execute(connection)
        .await?;
    Ok(())
}
