//! Recording tasks: all of them or none.
//!
//! A caller may record a whole graph in one call, in any order: tasks may wait for others of the
//! same call. The steps are: what can be checked without the database (`check`), then within the
//! transaction the ids that are taken, the status of everything waited for, the rows, the
//! dependencies, and last the tasks that can never start because one they wait for has failed
//! already.

use std::collections::{HashMap, HashSet};

use codespar_protocol::{OnDependencyFailure, TaskId, TaskRecord, TaskStatus};
use jiff::Timestamp;
use sqlx::AssertSqlSafe;

use super::{
    super::{
        failure::Failure,
        rows::{int, path_text},
    },
    change,
    ending::{self, Cause},
    graph, queue, read,
    row::{as_text, damaged, status, task_id},
    runners,
};
use crate::engine::{self, Connection};
use crate::{NewTask, Notify, StoreError, TaskLease, task_sql as sql};

/// Rows that one statement inserts: a trip to the database for each would be most of the cost.
const AT_ONCE: usize = 50;
/// Of a repository or a user, in bytes.
const LONGEST_NAME: usize = 255;

/// What can be said of them without looking at others. Ids given twice, ids of the wrong letter,
/// keys that only runners write, and cycles within the call.
pub(super) fn check(new: &[NewTask]) -> Result<(), StoreError> {
    let mut ids = HashSet::with_capacity(new.len());
    let mut waits = HashMap::with_capacity(new.len());
    for task in new {
        let id = task.id.clone();
        if !ids.insert(&task.id) {
            return Err(StoreError::TaskExists(id));
        }
        change::refuse_result_keys(&task.id, &task.metadata)?;
        refuse_long_names(task)?;
        if task.id.task_type() != Some(task.spec.task_type()) {
            let task_type = task.spec.task_type();
            return Err(StoreError::WrongLetter { id, task_type });
        }
        waits.insert(&task.id, task.blocked_by.iter().collect());
    }
    // Nobody else can wait for a task that is not there yet.
    match graph::cycle(new.iter().map(|task| &task.id), &waits) {
        Some(cycle) => Err(StoreError::Cycle(cycle)),
        None => Ok(()),
    }
}

/// They are part of the name of its queue, which is the key of an index.
fn refuse_long_names(task: &NewTask) -> Result<(), StoreError> {
    let (repository, user) = (&task.authority.repository, &task.authority.user);
    for (what, name) in [("repository", repository), ("user", user)] {
        if name.as_ref().is_some_and(|name| name.len() > LONGEST_NAME) {
            return Err(StoreError::NotRecordable {
                id: task.id.clone(),
                message: format!(
                    "the name of its {what} is longer than {LONGEST_NAME} bytes; shorten it"
                ),
            });
        }
    }
    Ok(())
}

/// The records as they are in the end: one that waited for a failed task comes back as failed.
pub(super) async fn create(
    connection: &mut Connection,
    new: &[NewTask],
    at: Timestamp,
) -> Result<Vec<TaskRecord>, Failure> {
    refuse_lost_makers(connection, new).await?;
    let ids: Vec<TaskId> = new.iter().map(|task| task.id.clone()).collect();
    if let Some((id, _)) = statuses_of(connection, ids.iter()).await?.pop() {
        return Err(StoreError::TaskExists(id).into());
    }
    let known = statuses(connection, new).await?;
    let drafts: Vec<Draft> = new.iter().map(|task| Draft::of(task, &known)).collect();
    for runner in new.iter().filter_map(|task| task.start_here.as_ref()) {
        runners::announce(connection, runner).await?;
    }
    for some in drafts.chunks(AT_ONCE) {
        insert(connection, some, at).await?;
    }
    let dependencies: Vec<(&TaskId, &TaskId)> = drafts
        .iter()
        .flat_map(|draft| draft.blockers.iter().map(|id| (&draft.task.id, *id)))
        .collect();
    for some in dependencies.chunks(AT_ONCE) {
        insert_dependencies(connection, some, &known).await?;
    }
    for draft in &drafts {
        if let Some(blocker) = draft.doomed_by {
            fail_for(connection, &draft.task.id, blocker, at).await?;
        }
    }
    refuse_if_waiting(connection, new).await?;
    read::records(connection, &ids).await
}

/// Those of one call mostly have the same maker, which is looked at once.
async fn refuse_lost_makers(connection: &mut Connection, new: &[NewTask]) -> Result<(), Failure> {
    let makers: HashSet<&TaskLease> = new
        .iter()
        .filter_map(|task| task.made_under.as_ref())
        .collect();
    for maker in makers {
        read::check_attempt(connection, maker).await?;
    }
    Ok(())
}

/// A new task, and what it finds.
struct Draft<'a> {
    task: &'a NewTask,
    run_anyway: bool,
    /// Each once, in their order.
    blockers: Vec<&'a TaskId>,
    /// Of its blockers, those that hold it back; it starts when this is 0.
    unmet: usize,
    /// It waits for one that will not complete any more.
    doomed_by: Option<&'a TaskId>,
}

impl<'a> Draft<'a> {
    /// `known` has the status of every blocker.
    fn of(task: &'a NewTask, known: &HashMap<TaskId, TaskStatus>) -> Self {
        let run_anyway = task.on_dependency_failure == OnDependencyFailure::Run;
        let mut seen = HashSet::new();
        let mut blockers: Vec<&TaskId> = task.blocked_by.iter().collect();
        blockers.retain(|id| seen.insert(*id));
        let holds = |id: &&TaskId| match known.get(*id) {
            Some(TaskStatus::Completed) => false,
            Some(TaskStatus::Failed | TaskStatus::Killed) => !run_anyway,
            Some(TaskStatus::Pending | TaskStatus::Running) | None => true,
        };
        let is_over = |id: &&&TaskId| known.get(**id).is_some_and(|status| status.is_final());
        Self {
            task,
            unmet: blockers.iter().filter(|id| holds(id)).count(),
            doomed_by: blockers
                .iter()
                .filter(is_over)
                .find(|id| holds(id))
                .copied(),
            run_anyway,
            blockers,
        }
    }
}

/// Of all that is waited for; new ones are pending.
async fn statuses(
    connection: &mut Connection,
    new: &[NewTask],
) -> Result<HashMap<TaskId, TaskStatus>, Failure> {
    let mut known: HashMap<TaskId, TaskStatus> = new
        .iter()
        .map(|task| (task.id.clone(), TaskStatus::Pending))
        .collect();
    let wanted = || new.iter().flat_map(|task| &task.blocked_by);
    let others: Vec<&TaskId> = wanted().filter(|id| !known.contains_key(*id)).collect();
    if !others.is_empty() {
        known.extend(statuses_of(connection, others.into_iter()).await?);
    }
    match wanted().find(|id| !known.contains_key(*id)) {
        Some(unknown) => Err(StoreError::NoSuchTask(unknown.clone()).into()),
        None => Ok(known),
    }
}

/// Ids that are not known are left out, and the order is the database's.
pub(super) async fn statuses_of(
    connection: &mut Connection,
    ids: impl Iterator<Item = &TaskId>,
) -> Result<Vec<(TaskId, TaskStatus)>, Failure> {
    let rows = engine::query(sql::STATUSES)
        .bind(read::json(ids))
        .fetch_all(connection)
        .await?;
    let mut read = Vec::with_capacity(rows.len());
    for row in &rows {
        let id = task_id(row, "id").map_err(damaged)?;
        read.push((id, status(row).map_err(damaged)?));
    }
    Ok(read)
}

async fn insert(
    connection: &mut Connection,
    drafts: &[Draft<'_>],
    at: Timestamp,
) -> Result<(), Failure> {
    let text = sql::INSERT_TASKS.to_owned() + &sql::rows(drafts.len(), sql::TASK_COLUMNS);
    let mut query = engine::query(AssertSqlSafe(text)).persistent(is_usual(drafts.len()));
    for draft in drafts {
        let task = draft.task;
        let not_recordable = |error: serde_json::Error| StoreError::NotRecordable {
            id: task.id.clone(),
            message: error.to_string(),
        };
        let spec = serde_json::to_string(&task.spec).map_err(not_recordable)?;
        let authority = serde_json::to_string(&task.authority).map_err(not_recordable)?;
        let output_file = task.output_file.as_deref().map(path_text).transpose()?;
        // One that waits stays pending; if it was to start here, that is refused in the end.
        let start = task.start_here.as_ref().filter(|_| draft.unmet == 0);
        let status = match start {
            Some(_) => TaskStatus::Running,
            None => TaskStatus::Pending,
        };
        let begun = i64::from(start.is_some());
        query = query
            .bind(task.id.as_str())
            .bind(task.spec.task_type().as_str())
            .bind(status.as_str())
            .bind(task.subject.as_str())
            .bind(task.description.as_deref())
            .bind(task.active_form.as_deref())
            .bind(task.spec.owner())
            .bind(as_text(&task.metadata))
            .bind(spec)
            .bind(authority)
            .bind(task.authority.tree.to_string())
            .bind(task.reserved_for.as_ref().map(|runner| runner.0.as_str()))
            .bind(queue::name_of(task)?)
            .bind(draft.run_anyway)
            .bind(output_file)
            .bind(task.session_id.map(|id| id.to_string()))
            .bind(task.parent_task_id.as_ref().map(TaskId::as_str))
            .bind(task.notify == Notify::Session)
            .bind(int(draft.unmet as u64))
            .bind(at.as_microsecond())
            .bind(at.as_microsecond())
            .bind(start.map(|_| at.as_microsecond()))
            .bind(begun)
            .bind(start.map(|runner| runner.0.as_str()))
            .bind(begun)
            .bind(task.labels.to_string())
            .bind(repository_of(task)?)
            .bind(task.authority.user.as_deref());
    }
    query.execute(connection).await?;
    Ok(())
}

fn repository_of(task: &NewTask) -> Result<&str, StoreError> {
    match &task.authority.repository {
        Some(repository) => Ok(repository),
        None => path_text(&task.authority.project_root),
    }
}

/// One on a task that is over is settled from the start: it shows in the record and is not counted.
async fn insert_dependencies(
    connection: &mut Connection,
    dependencies: &[(&TaskId, &TaskId)],
    known: &HashMap<TaskId, TaskStatus>,
) -> Result<(), Failure> {
    let rows = sql::rows(dependencies.len(), sql::DEPENDENCY_COLUMNS);
    let text = sql::INSERT_DEPENDENCIES.to_owned() + &rows;
    let mut query = engine::query(AssertSqlSafe(text)).persistent(is_usual(dependencies.len()));
    for (task, blocker) in dependencies {
        let settled = known.get(*blocker).is_some_and(|status| status.is_final());
        query = query
            .bind(task.as_str())
            .bind(blocker.as_str())
            .bind(settled);
    }
    query.execute(connection).await?;
    Ok(())
}

/// Numbers of rows that come again, whose statements are kept prepared.
fn is_usual(rows: usize) -> bool {
    rows == 1 || rows == AT_ONCE
}

/// Whether the dependency is new. A dependency that exists already keeps its state.
pub(super) async fn depend(
    connection: &mut Connection,
    task: &TaskId,
    blocker: &TaskId,
    settled: bool,
) -> Result<bool, Failure> {
    let done = engine::query(sql::INSERT_DEPENDENCY)
        .bind(task.as_str())
        .bind(blocker.as_str())
        .bind(settled)
        .execute(connection)
        .await?;
    Ok(done.rows_affected() > 0)
}

/// Fails a pending task that waits for one that has already failed or was killed.
pub(super) async fn fail_for(
    connection: &mut Connection,
    id: &TaskId,
    blocker: &TaskId,
    at: Timestamp,
) -> Result<(), Failure> {
    let task = read::found(connection, id).await?;
    // Another of these may have taken it along.
    if task.record.status == TaskStatus::Pending {
        let root = Cause::of(&read::found(connection, blocker).await?);
        let reason = root.reason_for(blocker);
        let failed = TaskStatus::Failed;
        ending::end_unheld(connection, &task, failed, Some(&reason), at).await?;
    }
    Ok(())
}

/// A task that was to start here and has to wait refuses the whole call. One that failed at once is
/// not refused; its record says why.
async fn refuse_if_waiting(connection: &mut Connection, new: &[NewTask]) -> Result<(), Failure> {
    for task in new {
        if task.start_here.is_some() && !task.blocked_by.is_empty() {
            let found = read::found(connection, &task.id).await?;
            if found.record.status == TaskStatus::Pending {
                return Err(read::waits_for(connection, &task.id).await?.into());
            }
        }
    }
    Ok(())
}

/// Adds to what a task waits for.
pub(super) async fn wait_for_more(
    connection: &mut Connection,
    id: &TaskId,
    more: u64,
) -> Result<(), Failure> {
    engine::query(sql::WAIT_FOR_MORE)
        .bind(id.as_str())
        .bind(int(more))
        .execute(connection)
        .await?;
    Ok(())
}
