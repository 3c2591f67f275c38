//! Making the schema, once, and refusing one that this version does not know.

use sqlx::{AssertSqlSafe, PgConnection};

use crate::{StoreError, engine::failure::Failure};

/// Version and text, in order. A published one never changes.
const MIGRATIONS: &[(i64, &str)] = &[
    (1, include_str!("../../migrations/postgres/0001_schema.sql")),
    (2, include_str!("../../migrations/postgres/0002_fleet.sql")),
    (
        3,
        include_str!("../../migrations/postgres/0003_holds_of_tasks.sql"),
    ),
    (4, include_str!("../../migrations/postgres/0004_offers.sql")),
    (
        5,
        include_str!("../../migrations/postgres/0005_outputs.sql"),
    ),
    (6, include_str!("../../migrations/postgres/0006_trees.sql")),
];

/// Processes that start at once wait for each other here, so it is made once. All of it is one
/// transaction: a process that is killed leaves nothing.
pub(super) async fn make(connection: &mut PgConnection, place: &str) -> Result<(), Failure> {
    let known = MIGRATIONS.last().map_or(0, |(version, _)| *version);
    let found = version(connection).await?;
    if found == known {
        return Ok(());
    }
    if found < known {
        run(
            connection,
            "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT pg_advisory_xact_lock(\
             hashtextextended('codespar schema ' || current_schema(), 0))",
        )
        .await?;
        let found = version(connection).await?;
        for (version, text) in MIGRATIONS.iter().filter(|(version, _)| *version > found) {
            run(connection, text).await?;
            run(
                connection,
                &format!(
                    "CREATE TABLE IF NOT EXISTS codespar_schema (version BIGINT PRIMARY KEY); \
                     INSERT INTO codespar_schema VALUES ({version})"
                ),
            )
            .await?;
        }
        run(connection, "COMMIT").await?;
    }
    // Another process may have made a newer one meanwhile.
    let found = version(connection).await?;
    if found > known {
        let message = format!(
            "it was written by a newer version of codespar (its schema is {found}, this one knows \
             {known}); use that version, or another database"
        );
        let place = place.to_owned();
        return Err(StoreError::Unreachable { place, message }.into());
    }
    Ok(())
}

/// 0 where there is no schema.
async fn version(connection: &mut PgConnection) -> Result<i64, Failure> {
    let schema: Option<String> = sqlx::query_scalar("SELECT current_schema()::TEXT")
        .fetch_one(&mut *connection)
        .await?;
    if schema.is_none() {
        let message = "the search path of the user names no schema that exists; create one";
        return Err(StoreError::Database(message.to_owned()).into());
    }
    let is_made: bool = sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = current_schema() \
         AND tablename = 'codespar_schema')",
    )
    .fetch_one(&mut *connection)
    .await?;
    if !is_made {
        return Ok(0);
    }
    let newest = "SELECT COALESCE(MAX(version), 0) FROM codespar_schema";
    Ok(sqlx::query_scalar(newest).fetch_one(connection).await?)
}

async fn run(connection: &mut PgConnection, statements: &str) -> Result<(), Failure> {
    let statements = sqlx::raw_sql(AssertSqlSafe(statements.to_owned()));
    statements.execute(connection).await?;
    Ok(())
}
