//! Outputs of tasks.
//!
//! Writing locks the row of the output and nothing else, so attempts that write at the same time do
//! not wait for each other, nor for the lock that makes changes one at a time. The row has the
//! number of the attempt that began it last: whoever has an earlier one is refused, also when it
//! looked at the task just before that was claimed again.

use async_trait::async_trait;
use codespar_protocol::{TaskId, TaskStatus};

use super::{
    failure::Failure,
    rows::{count, field, message_of},
};
use crate::{
    OutputPiece, OutputPlace, OutputRange, OutputRemainder, OutputState, OutputStore, PieceContent,
    StoreError, TaskLease,
    engine::{self, Access, Backend, Connection, Row},
    output_sql as sql,
};

/// A piece that is shorter than this is continued by the next: a task that writes a line each second
/// has a few rows and not thousands.
const SHORT: usize = 16 << 10;

#[async_trait]
impl<B: Backend> OutputStore for B {
    async fn begin_output(
        &self,
        lease: &TaskLease,
        place: &OutputPlace,
    ) -> Result<Option<OutputState>, StoreError> {
        let mut work = self.begin(Access::Claim).await?;
        let outcome = begin(work.connection(), lease, place).await;
        work.settle(outcome).await
    }

    async fn append_output(
        &self,
        lease: &TaskLease,
        at: u64,
        content: PieceContent,
    ) -> Result<u64, StoreError> {
        let mut work = self.begin(Access::Claim).await?;
        let outcome = append(work.connection(), lease, at, content).await;
        work.settle(outcome).await
    }

    async fn cut_output(&self, lease: &TaskLease) -> Result<(), StoreError> {
        let mut work = self.begin(Access::Claim).await?;
        let outcome = cut(work.connection(), lease).await;
        work.settle(outcome).await
    }

    async fn output_state(&self, task: &TaskId) -> Result<Option<OutputState>, StoreError> {
        let mut work = self.single().await?;
        let outcome = found(work.connection(), task).await;
        let found = work.settle(outcome).await?;
        Ok(found.map(|found| found.state))
    }

    async fn output(
        &self,
        task: &TaskId,
        from: u64,
        limit: u64,
    ) -> Result<Option<OutputRange>, StoreError> {
        let mut work = self.look().await?;
        let outcome = range(work.connection(), task, from, limit).await;
        work.settle(outcome).await
    }

    async fn removed_outputs(&self) -> Result<Vec<TaskId>, StoreError> {
        let mut work = self.single().await?;
        let outcome = removed(work.connection()).await;
        work.settle(outcome).await
    }

    async fn forget_removed_output(&self, task: &TaskId) -> Result<(), StoreError> {
        let mut work = self.single().await?;
        let forgotten = engine::query(sql::FORGET_REMOVED)
            .bind(task.as_str())
            .execute(work.connection())
            .await;
        work.settle(forgotten.map(drop).map_err(Failure::from))
            .await
    }
}

struct FoundOutput {
    epoch: u64,
    state: OutputState,
}

async fn found(connection: &mut Connection, task: &TaskId) -> Result<Option<FoundOutput>, Failure> {
    let row = engine::query(sql::OUTPUT)
        .for_update()
        .bind(task.as_str())
        .fetch_optional(connection)
        .await?;
    let read = |row: &Row| -> Result<FoundOutput, String> {
        Ok(FoundOutput {
            epoch: count(row, "epoch")?,
            state: OutputState {
                place: OutputPlace {
                    host: field(row, "host")?,
                    file: field(row, "file")?,
                },
                length: count(row, "length")?,
                remainder: match field(row, "is_cut")? {
                    true => OutputRemainder::OnHost,
                    false => OutputRemainder::None,
                },
            },
        })
    };
    let found = row.as_ref().map(read).transpose();
    found.map_err(|message| damaged(task, message))
}

/// The lease is looked at when the row is locked: what is written under an earlier one is either
/// seen here or refused.
async fn begin(
    connection: &mut Connection,
    lease: &TaskLease,
    place: &OutputPlace,
) -> Result<Option<OutputState>, Failure> {
    check_holder(connection, lease).await?;
    let before = found(connection, &lease.task).await?;
    engine::query(sql::BEGIN_OUTPUT)
        .bind(lease.task.as_str())
        .bind(number(lease.epoch)?)
        .bind(place.host.as_str())
        .bind(place.file.as_str())
        .execute(connection)
        .await?;
    check_holder(connection, lease).await?;
    Ok(before.map(|before| before.state))
}

async fn check_holder(connection: &mut Connection, lease: &TaskLease) -> Result<(), Failure> {
    let id = &lease.task;
    let row = engine::query(sql::HOLDER)
        .bind(id.as_str())
        .fetch_optional(connection)
        .await?;
    let row = row.ok_or_else(|| StoreError::NoSuchTask(id.clone()))?;
    let read = |row: &Row| -> Result<(u64, TaskStatus), String> {
        let status = field::<&str>(row, "status")?.parse().map_err(message_of)?;
        Ok((count(row, "lease_epoch")?, status))
    };
    match read(&row).map_err(|message| damaged(id, message))? {
        (epoch, _) if epoch != lease.epoch => Err(StoreError::LeaseLost(id.clone()).into()),
        (_, TaskStatus::Running) => Ok(()),
        (_, status) => Err(StoreError::WrongState {
            id: id.clone(),
            status,
            rule: "only a task that runs has new output",
        }
        .into()),
    }
}

/// The output, locked, if this attempt may write it.
async fn own(connection: &mut Connection, lease: &TaskLease) -> Result<OutputState, Failure> {
    let found = found(connection, &lease.task).await?;
    check_holder(connection, lease).await?;
    match found {
        Some(found) if found.epoch == lease.epoch => Ok(found.state),
        _ => Err(StoreError::LeaseLost(lease.task.clone()).into()),
    }
}

async fn append(
    connection: &mut Connection,
    lease: &TaskLease,
    at: u64,
    content: PieceContent,
) -> Result<u64, Failure> {
    let length = own(connection, lease).await?.length;
    let Some(known) = length.checked_sub(at) else {
        return Ok(length);
    };
    let after = length.max(at.saturating_add(content.length()));
    if after == length {
        return Ok(length);
    }
    let is_object = matches!(content, PieceContent::Object { .. });
    match content {
        PieceContent::Bytes(mut bytes) => {
            let new = bytes.split_off(usize::try_from(known).unwrap_or(bytes.len()));
            put_bytes(connection, &lease.task, length, new).await?;
        }
        // Part of an object cannot be left out.
        PieceContent::Object { .. } if known > 0 => return Ok(length),
        PieceContent::Object { key, length: size } => {
            engine::query(sql::PUT_PIECE)
                .bind(lease.task.as_str())
                .bind(number(at)?)
                .bind(number(size)?)
                .bind(None::<Vec<u8>>)
                .bind(key)
                .execute(connection)
                .await?;
        }
    }
    engine::query(sql::LENGTHEN)
        .bind(lease.task.as_str())
        .bind(number(after)?)
        .bind(is_object)
        .execute(connection)
        .await?;
    Ok(after)
}

/// As a piece of its own, or as the rest of the last one.
async fn put_bytes(
    connection: &mut Connection,
    task: &TaskId,
    at: u64,
    new: Vec<u8>,
) -> Result<(), Failure> {
    let last = engine::query(sql::LAST_PIECE)
        .bind(task.as_str())
        .fetch_optional(connection)
        .await?;
    let last = match &last {
        Some(row) => Some((
            count(row, "at").map_err(|message| damaged(task, message))?,
            row.try_get::<Option<Vec<u8>>>("bytes")?,
        )),
        None => None,
    };
    let (at, bytes) = match last {
        Some((at, Some(mut bytes))) if bytes.len() + new.len() <= SHORT => {
            bytes.extend(new);
            (at, bytes)
        }
        _ => (at, new),
    };
    engine::query(sql::PUT_PIECE)
        .bind(task.as_str())
        .bind(number(at)?)
        .bind(number(bytes.len() as u64)?)
        .bind(Some(bytes))
        .bind(None::<String>)
        .execute(connection)
        .await?;
    Ok(())
}

async fn cut(connection: &mut Connection, lease: &TaskLease) -> Result<(), Failure> {
    own(connection, lease).await?;
    engine::query(sql::CUT)
        .bind(lease.task.as_str())
        .execute(connection)
        .await?;
    Ok(())
}

async fn range(
    connection: &mut Connection,
    task: &TaskId,
    from: u64,
    limit: u64,
) -> Result<Option<OutputRange>, Failure> {
    let Some(FoundOutput { state, .. }) = found(connection, task).await? else {
        return Ok(None);
    };
    let end = from.saturating_add(limit).min(state.length);
    let mut pieces = Vec::new();
    if from < end {
        let rows = engine::query(sql::PIECES)
            .bind(task.as_str())
            .bind(number(from)?)
            .bind(number(end)?)
            .fetch_all(connection)
            .await?;
        let read: Result<_, String> = rows.iter().map(piece).collect();
        pieces = read.map_err(|message| damaged(task, message))?;
    }
    Ok(Some(OutputRange { state, pieces }))
}

fn piece(row: &Row) -> Result<OutputPiece, String> {
    let content = match (
        field::<Option<Vec<u8>>>(row, "bytes")?,
        field::<Option<String>>(row, "object")?,
    ) {
        (Some(bytes), _) => PieceContent::Bytes(bytes),
        (None, Some(key)) => PieceContent::Object {
            key,
            length: count(row, "length")?,
        },
        (None, None) => return Err("a piece of its output has no content".to_owned()),
    };
    Ok(OutputPiece {
        at: count(row, "at")?,
        content,
    })
}

async fn removed(connection: &mut Connection) -> Result<Vec<TaskId>, Failure> {
    let ids: Vec<String> = engine::query_scalar(sql::REMOVED)
        .fetch_all(connection)
        .await?;
    let ids: Result<_, _> = ids.iter().map(|id| id.parse::<TaskId>()).collect();
    ids.map_err(|error| StoreError::Database(format!("a damaged task: {error}")).into())
}

fn number(value: u64) -> Result<i64, Failure> {
    i64::try_from(value).map_err(|_| StoreError::Database(format!("{value} is too large")).into())
}

fn damaged(task: &TaskId, message: String) -> Failure {
    StoreError::DamagedTask {
        id: task.to_string(),
        message,
    }
    .into()
}
