//! The processes that run tasks.

use jiff::Timestamp;
use sqlx::SqliteConnection;

use super::super::failure::Failure;
use crate::{RunnerId, task_sql as sql};

/// Gives the number of others that live.
pub(super) async fn announce(
    connection: &mut SqliteConnection,
    runner: &RunnerId,
    pid: u32,
    at: Timestamp,
    until: i64,
) -> Result<u32, Failure> {
    sqlx::query(sql::DROP_DEAD_RUNNERS)
        .bind(at.as_microsecond())
        .execute(&mut *connection)
        .await?;
    sqlx::query(sql::ANNOUNCE)
        .bind(runner.0.as_str())
        .bind(i64::from(pid))
        .bind(until)
        .execute(&mut *connection)
        .await?;
    let living = living(connection, at).await?;
    let others = living.iter().filter(|id| *id != runner).count();
    Ok(u32::try_from(others).unwrap_or(u32::MAX))
}

pub(super) async fn living(
    connection: &mut SqliteConnection,
    at: Timestamp,
) -> Result<Vec<RunnerId>, Failure> {
    let ids: Vec<String> = sqlx::query_scalar(sql::LIVING_RUNNERS)
        .bind(at.as_microsecond())
        .fetch_all(connection)
        .await?;
    Ok(ids.into_iter().map(RunnerId).collect())
}

pub(super) async fn bury(
    connection: &mut SqliteConnection,
    runner: &RunnerId,
) -> Result<(), Failure> {
    sqlx::query(sql::END_LEASES_OF)
        .bind(runner.0.as_str())
        .execute(&mut *connection)
        .await?;
    withdraw(connection, runner).await
}

pub(super) async fn withdraw(
    connection: &mut SqliteConnection,
    runner: &RunnerId,
) -> Result<(), Failure> {
    sqlx::query(sql::WITHDRAW)
        .bind(runner.0.as_str())
        .execute(connection)
        .await?;
    Ok(())
}
