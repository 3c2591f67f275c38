//! How tasks end, and what becomes of those that waited for them.
//!
//! A task ends by its runner (`finish`, under the epoch) or without one (`end_unheld`: stopped
//! while pending, ended by hand, given up, failed with a dependency). Both come to `end`, which
//! marks it, lets go of its paths and deals with its dependents:
//!
//! ```text
//! completed        dependents: unmet - 1
//! failed, killed   dependents made with OnDependencyFailure::Run: unmet - 1
//!                  other pending dependents: failed, with the first cause; then theirs, and so on
//! ```
//!
//! Each dependency is settled once, so `unmet` never counts one twice, whatever becomes of the two
//! tasks later.

use codespar_protocol::{Cost, OnDependencyFailure, TaskId, TaskStatus, Usage};
use jiff::Timestamp;

use super::{
    super::{failure::Failure, rows::int},
    items, mail, notify, read,
    row::{Found, as_text, merge},
};
use crate::engine::{self, Connection};
use crate::{Afterwards, StoreError, TaskEnding, task_sql as sql};

/// The task that failed or was killed first, and why; the same for all that fail with it.
pub(super) struct Cause {
    id: TaskId,
    status: TaskStatus,
    error: Option<String>,
}

impl Cause {
    /// A task that is over.
    pub(super) fn of(found: &Found) -> Self {
        Self {
            id: found.id().clone(),
            status: found.record.status,
            error: found.record.error.clone(),
        }
    }

    /// Why one fails that waited for `blocker`. Names the nearest and the first, not all between
    /// them: chains can be long.
    pub(super) fn reason_for(&self, blocker: &TaskId) -> String {
        let how = |status| match status {
            TaskStatus::Killed => "was killed",
            _ => "failed",
        };
        let mut reason = format!("it waited for {blocker}, which ");
        if *blocker != self.id {
            reason += &format!("failed because {} ", self.id);
        }
        reason += how(self.status);
        if let Some(error) = &self.error {
            reason += &format!(": {error}");
        }
        reason
    }
}

/// The ids of dependents that failed with it. A task that is pending again at once because of a
/// message has still ended this attempt: dependents and session have been told.
pub(super) async fn finish(
    connection: &mut Connection,
    id: &TaskId,
    epoch: u64,
    ending: TaskEnding,
    at: Timestamp,
) -> Result<Vec<TaskId>, Failure> {
    let task = read::found(connection, id).await?;
    task.held_under(epoch, ending.status)?;
    if !TaskStatus::Running.may_become(ending.status) {
        let refusal = StoreError::NoSuchStep {
            id: id.clone(),
            from: TaskStatus::Running,
            to: ending.status,
        };
        return Err(refusal.into());
    }
    let (status, error) = (ending.status, ending.error.clone());
    let again = ending.afterwards == Afterwards::Again && task.stop_reason.is_none();
    if !ending.notification.is_empty() {
        notify::tell(connection, &task, &ending.notification, at).await?;
    }
    set_outcome(connection, &task, ending).await?;
    let fallen = end(connection, &task, status, error.as_deref(), at).await?;
    // It came when the agent had looked for the last time: nobody else would read it.
    let has_mail = task.record.runs_agent() && mail::is_waiting(connection, id).await?;
    if status == TaskStatus::Completed && (again || has_mail) {
        mail::restart(connection, id, at).await?;
    }
    Ok(fallen)
}

/// Tokens and cost are added to those of earlier attempts; the exit code replaces the last.
async fn set_outcome(
    connection: &mut Connection,
    task: &Found,
    ending: TaskEnding,
) -> Result<(), Failure> {
    let mut metadata = task.record.metadata.clone();
    merge(&mut metadata, ending.metadata);
    let usage = sum(&task.record.usage, &ending.usage);
    let mut cost: Cost = task.record.cost_usd;
    cost += ending.cost;
    engine::query(sql::SET_OUTCOME)
        .bind(task.id().as_str())
        .bind(ending.exit_code)
        .bind(int(usage.input_tokens))
        .bind(int(usage.output_tokens))
        .bind(int(usage.cache_creation_input_tokens))
        .bind(int(usage.cache_read_input_tokens))
        .bind(int(usage.cache_creation_1h_input_tokens))
        .bind(int(cost.at_least().nanos()))
        .bind(cost.known().is_none())
        .bind(as_text(&metadata))
        .execute(connection)
        .await?;
    Ok(())
}

/// Absurd counts stop at the end of what the database holds.
fn sum(one: &Usage, other: &Usage) -> Usage {
    let add = |count: fn(&Usage) -> u64| count(one).saturating_add(count(other));
    Usage {
        // Sums keep tokens only; what searches cost is in the cost.
        web_search_requests: 0,
        input_tokens: add(|usage| usage.input_tokens),
        output_tokens: add(|usage| usage.output_tokens),
        cache_creation_input_tokens: add(|usage| usage.cache_creation_input_tokens),
        cache_read_input_tokens: add(|usage| usage.cache_read_input_tokens),
        cache_creation_1h_input_tokens: add(|usage| usage.cache_creation_1h_input_tokens),
    }
}

/// Ends a task that no runner has, with a notification made here.
pub(super) async fn end_unheld(
    connection: &mut Connection,
    task: &Found,
    status: TaskStatus,
    error: Option<&str>,
    at: Timestamp,
) -> Result<Vec<TaskId>, Failure> {
    let body = notify::body(&task.record, status, error);
    notify::tell(connection, task, &body, at).await?;
    end(connection, task, status, error, at).await
}

/// Ends a task and settles its dependents; gives those that failed with it.
async fn end(
    connection: &mut Connection,
    task: &Found,
    status: TaskStatus,
    error: Option<&str>,
    at: Timestamp,
) -> Result<Vec<TaskId>, Failure> {
    mark(connection, task.id(), status, error, at).await?;
    if status == TaskStatus::Completed {
        settle_dependents(connection, task.id(), status, at).await?;
        return Ok(Vec::new());
    }
    items::give_back_of(connection, &task.record, at).await?;
    let cause = Cause {
        id: task.id().clone(),
        status,
        error: error.map(str::to_owned),
    };
    cascade(connection, &cause, at).await
}

async fn mark(
    connection: &mut Connection,
    id: &TaskId,
    status: TaskStatus,
    error: Option<&str>,
    at: Timestamp,
) -> Result<(), Failure> {
    engine::query(sql::END_TASK)
        .bind(id.as_str())
        .bind(status.as_str())
        .bind(error)
        .bind(at.as_microsecond())
        .execute(connection)
        .await?;
    Ok(())
}

/// Lets go of all a task held: its paths, and those that waited for it and go on. One script, so
/// that it is one trip to the database's thread.
async fn settle_dependents(
    connection: &mut Connection,
    id: &TaskId,
    status: TaskStatus,
    at: Timestamp,
) -> Result<(), Failure> {
    let statements = [sql::DROP_CLAIMS, sql::LET_GO, sql::SETTLE_DEPENDENCIES];
    let did_not_complete = status != TaskStatus::Completed;
    engine::script(connection, &statements, |query| {
        query
            .bind(id.as_str())
            .bind(did_not_complete)
            .bind(at.as_microsecond())
    })
    .await?;
    Ok(())
}

/// Fails what waited for a task that did not complete, generation by generation, each in the order
/// of ids. Without recursion: the graph may be deep. A task is failed once, by the first path that
/// reaches it, because only pending ones are taken.
async fn cascade(
    connection: &mut Connection,
    cause: &Cause,
    at: Timestamp,
) -> Result<Vec<TaskId>, Failure> {
    let mut fallen = Vec::new();
    let mut generation = vec![cause.id.clone()];
    while !generation.is_empty() {
        let mut next = Vec::new();
        for id in &generation {
            for task in fallen_with(connection, id).await? {
                let reason = cause.reason_for(id);
                let failed = TaskStatus::Failed;
                mark(connection, task.id(), failed, Some(&reason), at).await?;
                let body = notify::body(&task.record, failed, Some(&reason));
                notify::tell(connection, &task, &body, at).await?;
                next.push(task.record.task_id);
            }
            settle_dependents(connection, id, TaskStatus::Failed, at).await?;
        }
        next.sort();
        fallen.extend(next.iter().cloned());
        generation = next;
    }
    Ok(fallen)
}

/// Pending dependents that do not run in spite of a failure, in the order of ids.
async fn fallen_with(connection: &mut Connection, id: &TaskId) -> Result<Vec<Found>, Failure> {
    let rows = engine::query(sql::DEPENDENTS)
        .bind(id.as_str())
        .fetch_all(connection)
        .await?;
    let mut tasks: Vec<Found> = rows.iter().map(Found::of).collect::<Result<_, _>>()?;
    tasks.retain(|task| {
        task.record.status == TaskStatus::Pending
            && task.record.on_dependency_failure == OnDependencyFailure::Fail
    });
    tasks.sort_by(|one, other| one.id().cmp(other.id()));
    Ok(tasks)
}
