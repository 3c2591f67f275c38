//! Claims of writers on paths.
//!
//! Only texts are compared; whether a path exists does not matter. A claim on a directory covers
//! all below it, so a conflict is an equal path, one of its ancestors, or anything below it. Claims
//! end with the attempt (`ending`, `claim::release`).

use std::path::{Component, Path, PathBuf};

use codespar_protocol::{TaskId, TaskStatus};

use super::{
    super::{
        failure::Failure,
        rows::{field, path_text},
    },
    read,
    row::{damaged, task_id},
};
use crate::engine::{self, Connection, Row};
use crate::{StoreError, TaskLease, task_sql as sql};

/// As they are compared: absolute, without `.` and `..`. Links are the caller's to resolve.
pub(super) fn plain(paths: &[PathBuf]) -> Result<Vec<PathBuf>, StoreError> {
    paths.iter().map(|path| plain_path(path)).collect()
}

fn plain_path(path: &Path) -> Result<PathBuf, StoreError> {
    if !path.is_absolute() {
        let path = path.to_owned();
        return Err(StoreError::RelativePath { path });
    }
    path_text(path)?;
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    Ok(plain)
}

/// All of the paths or none. Those that the task holds already are no conflict.
pub(super) async fn claim(
    connection: &mut Connection,
    lease: &TaskLease,
    paths: &[PathBuf],
) -> Result<(), Failure> {
    let id = &lease.task;
    let task = read::found(connection, id).await?;
    task.refuse_lost(lease.epoch)?;
    if task.record.status != TaskStatus::Running {
        let rule = "only a running task can claim paths";
        return Err(task.wrong_state(rule).into());
    }
    for path in paths {
        if let Some(row) = in_the_way(connection, id, path).await? {
            let held: &str = field(&row, "path").map_err(damaged)?;
            let refusal = StoreError::PathClaimed {
                path: path.clone(),
                holder: task_id(&row, "task_id").map_err(damaged)?,
                held: held.into(),
            };
            return Err(refusal.into());
        }
        engine::query(sql::INSERT_CLAIM)
            .bind(path_text(path)?)
            .bind(id.as_str())
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

/// Another's claim on the path, on one above it or on one below it.
async fn in_the_way(
    connection: &mut Connection,
    id: &TaskId,
    path: &Path,
) -> Result<Option<Row>, Failure> {
    for above in path.ancestors() {
        let claim = engine::query(sql::CLAIM_OF_PATH)
            .bind(path_text(above)?)
            .bind(id.as_str())
            .fetch_optional(&mut *connection)
            .await?;
        if claim.is_some() {
            return Ok(claim);
        }
    }
    // `0` comes right after `/`.
    let directory = path_text(path)?.trim_end_matches('/');
    let below = engine::query(sql::CLAIM_BELOW)
        .bind(format!("{directory}/"))
        .bind(format!("{directory}0"))
        .bind(id.as_str())
        .fetch_optional(connection)
        .await?;
    Ok(below)
}
