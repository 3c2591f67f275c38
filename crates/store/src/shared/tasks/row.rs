//! Rows of tasks, to and from our types.
//!
//! A task is read in two steps: `Found` is its own row, with columns that are not part of the
//! record; `read::fill` adds the two lists of dependencies where a whole record is wanted. What
//! only decides about a task uses `Found` and saves the second step.

use codespar_protocol::{
    Cost, OnDependencyFailure, SessionId, TaskId, TaskRecord, TaskStatus, Usage, Usd,
};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::super::rows::{count, field, message_of, time};
use crate::StoreError;
use crate::engine::Row;

/// A task with what the store alone knows of it. Its dependencies are not filled in.
pub(super) struct Found {
    pub(super) record: TaskRecord,
    /// Dependencies that still hold it back.
    pub(super) unmet: u64,
    /// The session is told of its end.
    pub(super) notify: bool,
    /// Who holds the lease. A running task without one is run by hand.
    pub(super) runner: Option<String>,
    /// The fencing number of the last claim; a lease with another is lost.
    pub(super) epoch: u64,
    pub(super) stop_reason: Option<String>,
}

impl Found {
    /// The error names the task by the id in the row, if that much can be read.
    pub(super) fn of(row: &Row) -> Result<Self, StoreError> {
        read(row).map_err(|message| StoreError::DamagedTask {
            id: field(row, "id").unwrap_or_default(),
            message,
        })
    }

    pub(super) fn id(&self) -> &TaskId {
        &self.record.task_id
    }

    pub(super) fn wrong_state(&self, rule: &'static str) -> StoreError {
        StoreError::WrongState {
            id: self.id().clone(),
            status: self.record.status,
            rule,
        }
    }

    /// Passes for the latest lease, whatever became of the task since.
    pub(super) fn refuse_lost(&self, epoch: u64) -> Result<(), StoreError> {
        match self.epoch == epoch {
            true => Ok(()),
            false => Err(StoreError::LeaseLost(self.id().clone())),
        }
    }

    /// Passes for the runner whose lease is the latest, while the task runs. The lease is looked at
    /// first: a runner that lost it is told so even if the task is over by now. `next` is only for
    /// the message.
    pub(super) fn held_under(&self, epoch: u64, next: TaskStatus) -> Result<(), StoreError> {
        self.refuse_lost(epoch)?;
        let id = self.id().clone();
        let from = self.record.status;
        match from {
            TaskStatus::Running => Ok(()),
            _ => Err(StoreError::NoSuchStep { id, from, to: next }),
        }
    }
}

fn read(row: &Row) -> Result<Found, String> {
    Ok(Found {
        record: record(row)?,
        unmet: count(row, "unmet")?,
        notify: field(row, "notify")?,
        runner: field(row, "lease_owner")?,
        epoch: count(row, "lease_epoch")?,
        stop_reason: field(row, "stop_reason")?,
    })
}

fn record(row: &Row) -> Result<TaskRecord, String> {
    let exit_code: Option<i64> = field(row, "exit_code")?;
    let session_id: Option<&str> = field(row, "session_id")?;
    let parent: Option<&str> = field(row, "parent_task_id")?;
    Ok(TaskRecord {
        task_id: task_id(row, "id")?,
        task_type: field::<&str>(row, "task_type")?
            .parse()
            .map_err(message_of)?,
        status: status(row)?,
        subject: field(row, "subject")?,
        description: field::<Option<String>>(row, "description")?.unwrap_or_default(),
        active_form: field(row, "active_form")?,
        owner: field(row, "owner")?,
        spec: sealed(row, "spec")?,
        authority: sealed(row, "authority")?,
        reserved_for: field(row, "reserved_for")?,
        labels: field::<&str>(row, "labels")?.parse().map_err(message_of)?,
        on_dependency_failure: match field(row, "run_anyway")? {
            true => OnDependencyFailure::Run,
            false => OnDependencyFailure::Fail,
        },
        metadata: serde_json::from_str(field(row, "metadata")?).map_err(message_of)?,
        blocks: Vec::new(),
        blocked_by: Vec::new(),
        output_file: field(row, "output_file")?,
        created_at: time(row, "created_at")?,
        updated_at: time(row, "updated_at")?,
        started_at: maybe_time(row, "started_at")?,
        ended_at: maybe_time(row, "ended_at")?,
        error: field(row, "error")?,
        exit_code: exit_code
            .map(i32::try_from)
            .transpose()
            .map_err(message_of)?,
        attempt: u32::try_from(count(row, "attempt")?).map_err(message_of)?,
        usage: usage(row)?,
        cost_usd: cost(row)?,
        session_id: session_id
            .map(str::parse::<SessionId>)
            .transpose()
            .map_err(message_of)?,
        parent_task_id: parent
            .map(str::parse::<TaskId>)
            .transpose()
            .map_err(message_of)?,
    })
}

/// A record of an earlier version may lack it, or not be whole: it stays listed, and whoever would
/// run it says that it cannot. Text that does not parse is treated as missing, unlike every other
/// column.
fn sealed<T: DeserializeOwned>(row: &Row, column: &str) -> Result<Option<T>, String> {
    let text: Option<&str> = field(row, column)?;
    Ok(text.and_then(|text| serde_json::from_str(text).ok()))
}

fn usage(row: &Row) -> Result<Usage, String> {
    Ok(Usage {
        // Sums keep tokens only; what searches cost is in the cost.
        web_search_requests: 0,
        input_tokens: count(row, "input_tokens")?,
        output_tokens: count(row, "output_tokens")?,
        cache_creation_input_tokens: count(row, "cache_creation_input_tokens")?,
        cache_read_input_tokens: count(row, "cache_read_input_tokens")?,
        cache_creation_1h_input_tokens: count(row, "cache_creation_1h_input_tokens")?,
    })
}

fn cost(row: &Row) -> Result<Cost, String> {
    let known = Usd::from_nanos(count(row, "cost_nanos")?);
    Ok(match field(row, "cost_unknown")? {
        true => Cost::Unknown(known),
        false => Cost::Known(known),
    })
}

pub(super) fn maybe_time(row: &Row, column: &str) -> Result<Option<Timestamp>, String> {
    let at: Option<i64> = field(row, column)?;
    at.map(Timestamp::from_microsecond)
        .transpose()
        .map_err(message_of)
}

pub(super) fn task_id(row: &Row, column: &str) -> Result<TaskId, String> {
    field::<&str>(row, column)?.parse().map_err(message_of)
}

pub(super) fn status(row: &Row) -> Result<TaskStatus, String> {
    field::<&str>(row, "status")?.parse().map_err(message_of)
}

/// What went wrong with a row that is not a task's own.
#[allow(clippy::needless_pass_by_value)] // The form `map_err` wants.
pub(super) fn damaged(message: String) -> StoreError {
    StoreError::Database(format!("a damaged row: {message}"))
}

/// As the database keeps it.
pub(super) fn as_text(metadata: &Map<String, Value>) -> String {
    Value::Object(metadata.clone()).to_string()
}

/// The queue of a team's list. It matches no type of task, so no runner takes from it, and it sorts
/// between `team:` and `team;`, which is how the queries find all lists.
pub(super) fn list_of(team: &str) -> String {
    format!("team:{team}")
}

/// Adds key by key; `null` takes a key away.
pub(super) fn merge(metadata: &mut Map<String, Value>, more: Map<String, Value>) {
    for (key, value) in more {
        match value {
            // Keeps the others in their order.
            Value::Null => drop(metadata.shift_remove(&key)),
            value => drop(metadata.insert(key, value)),
        }
    }
}
