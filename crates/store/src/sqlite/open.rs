//! Opening the database: the directory, the file, its schema.
//!
//! An existing database is opened and its version compared: older ones are migrated, newer ones are
//! refused, so that an old binary never writes to a schema that it does not know. A missing one is
//! made beside its name and renamed. Both happen under `setup.lock`, with the question asked again
//! once the lock is held: another process may have been faster.
//!
//! What is not as this version leaves it (an empty file, a log without its database) is an error
//! that says what to do. Nothing is repaired or replaced: that would hide a loss.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection, Executor, SqlSafeStr, SqliteConnection,
    migrate::{Migration, MigrationType, Migrator},
    sqlite::{SqliteAutoVacuum, SqliteConnectOptions, SqliteSynchronous},
};

use super::{
    SqliteStore, failure::into_store_error, file_id::FileId, link::SharedConnection,
    writes::WriteWatch,
};
use crate::{StoreError, engine::failure::Failure, locks::Locks};

pub(crate) const DATABASE: &str = "codespar.db";

/// The database while it is being made. One that is found was left by a process that was killed;
/// nobody else can be at work on it under the lock.
const DRAFT: &str = "codespar.db.new";

/// Held while the schema is made or changed, so that several processes on a fresh directory do
/// it one after the other.
const SETUP_LOCK: &str = "setup.lock";

/// How long a lock of another process on the database is waited for. A backup or a checker may
/// hold it for half a minute; work that has been paid for is not given up for that.
const PATIENCE: Duration = Duration::from_secs(60);

/// Version, name, text; in order. A published one never changes: the migrator compares checksums.
/// Tests take the first few to make a database of an earlier version.
pub(super) const MIGRATIONS: &[(i64, &str, &str)] = &[
    (
        1,
        "sessions",
        include_str!("../../migrations/sqlite/0001_sessions.sql"),
    ),
    (
        2,
        "tasks",
        include_str!("../../migrations/sqlite/0002_tasks.sql"),
    ),
    (
        3,
        "steps_and_pulls",
        include_str!("../../migrations/sqlite/0003_steps_and_pulls.sql"),
    ),
    (
        4,
        "sealed_tasks",
        include_str!("../../migrations/sqlite/0004_sealed_tasks.sql"),
    ),
    (
        5,
        "leases",
        include_str!("../../migrations/sqlite/0005_leases.sql"),
    ),
    (
        6,
        "changes_and_questions",
        include_str!("../../migrations/sqlite/0006_changes_and_questions.sql"),
    ),
    (
        7,
        "server",
        include_str!("../../migrations/sqlite/0007_server.sql"),
    ),
    (
        8,
        "channels",
        include_str!("../../migrations/sqlite/0008_channels.sql"),
    ),
    (
        9,
        "timers",
        include_str!("../../migrations/sqlite/0009_timers.sql"),
    ),
    (
        10,
        "fleet",
        include_str!("../../migrations/sqlite/0010_fleet.sql"),
    ),
    (
        11,
        "offers",
        include_str!("../../migrations/sqlite/0011_offers.sql"),
    ),
    (
        12,
        "outputs",
        include_str!("../../migrations/sqlite/0012_outputs.sql"),
    ),
    (
        13,
        "trees",
        include_str!("../../migrations/sqlite/0013_trees.sql"),
    ),
];

impl SqliteStore {
    /// Opens the database in `dir`, making the directory and the database where they are
    /// missing.
    ///
    /// Several stores may be open on one directory, in one process or many.
    pub async fn open(dir: &Path) -> Result<Self, StoreError> {
        let dir = make_dir(dir)?;
        let options = options(&dir.join(DATABASE));
        let connection = connect(&dir, &options).await?;
        let file = FileId::of(&dir.join(DATABASE))?;
        Ok(Self {
            locks: Locks::in_state_dir(&dir),
            watch: WriteWatch::new(&dir),
            link: SharedConnection::new(dir.clone(), options, file, connection),
            dir,
        })
    }
}

/// The directory as an absolute path, made for its owner alone where it is missing. The permissions
/// of one that exists are left as they are.
fn make_dir(dir: &Path) -> Result<PathBuf, StoreError> {
    let failed = |error: io::Error| StoreError::unusable(dir, &error);
    // Absolute, so that a later change of the working directory does not matter.
    let dir = std::path::absolute(dir).map_err(failed)?;
    if fs::metadata(&dir).is_ok_and(|found| !found.is_dir()) {
        return Err(StoreError::Unusable {
            path: dir,
            message: "it is not a directory; set CODESPAR_HOME to one you can write to".to_owned(),
        });
    }
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&dir)
        .map_err(failed)?;
    if dir.to_str().is_none() {
        return Err(StoreError::NotText { path: dir });
    }
    Ok(dir)
}

/// How every connection is opened, the first and those after an error.
///
/// With a write-ahead log, `NORMAL` loses nothing when a process dies. A power failure may take the
/// last commits with it; what is left is consistent.
fn options(database: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(database)
        .synchronous(SqliteSynchronous::Normal)
        .foreign_keys(true)
        .busy_timeout(PATIENCE)
        // What is removed is wiped from pages that stay in use; the others go off the file.
        .pragma("secure_delete", "FAST")
        .disable_statement_logging()
}

/// The first connection, to a database with the current schema.
async fn connect(
    dir: &Path,
    options: &SqliteConnectOptions,
) -> Result<SqliteConnection, StoreError> {
    let database = dir.join(DATABASE);
    if !is_there(dir)? {
        let _lock = lock_setup(dir).await?;
        if !is_there(dir)? {
            refuse_orphaned_log(dir)?;
            create(dir, &database).await?;
        }
    }
    let mut connection = established(dir, options).await?;
    let outcome = is_current(&mut connection, &database).await;
    if !outcome.map_err(|failure| into_store_error(failure, dir))? {
        let _lock = lock_setup(dir).await?;
        let outcome = migrate(&mut connection, MIGRATIONS).await;
        outcome.map_err(|failure| into_store_error(failure, dir))?;
    }
    Ok(connection)
}

/// Looked at from outside only: opening and closing the file would let go of the locks that
/// another store of this process has on it.
///
/// An empty file is not one of ours: a new database gets its name when it is whole. Making a new
/// one in its place would hide that everything in it was lost.
fn is_there(dir: &Path) -> Result<bool, StoreError> {
    let database = dir.join(DATABASE);
    match fs::metadata(&database) {
        Ok(found) if found.len() == 0 => Err(StoreError::Unusable {
            path: dir.to_owned(),
            message: format!(
                "{DATABASE} is an empty file, so its content was lost; restore it from a backup, \
                 or remove it and its -wal and -shm files to begin anew"
            ),
        }),
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(StoreError::unusable(&database, &error)),
    }
}

/// SQLite would apply the log of a database that was removed to the new one.
fn refuse_orphaned_log(dir: &Path) -> Result<(), StoreError> {
    let log = dir.join(format!("{DATABASE}-wal"));
    if fs::metadata(&log).is_ok_and(|found| found.len() > 0) {
        return Err(StoreError::Unusable {
            path: dir.to_owned(),
            message: format!(
                "{DATABASE} is missing, but {DATABASE}-wal holds changes of it; restore \
                 {DATABASE}, or remove {DATABASE}-wal and {DATABASE}-shm to begin anew"
            ),
        });
    }
    Ok(())
}

/// Made under another name and renamed: the change to WAL does not wait for readers, so nobody
/// may see the database before it is whole.
async fn create(dir: &Path, database: &Path) -> Result<(), StoreError> {
    let draft = dir.join(DRAFT);
    for suffix in ["", "-journal", "-wal", "-shm"] {
        // Left by a process that was killed here. What cannot be removed shows itself below.
        fs::remove_file(dir.join(format!("{DRAFT}{suffix}"))).ok();
    }
    // SQLite would make the file readable for all; its further files take after this one.
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&draft)
        .map_err(|error| StoreError::unusable(&draft, &error))?;
    // A setting that a database takes only while it is empty.
    let options = options(&draft).auto_vacuum(SqliteAutoVacuum::Incremental);
    let mut connection = established(dir, &options).await?;
    let outcome = make_schema(&mut connection).await;
    let closed = connection.close().await.map_err(Failure::Sql);
    outcome
        .and(closed)
        .map_err(|failure| into_store_error(failure, dir))?;
    fs::rename(&draft, database).map_err(|error| StoreError::unusable(database, &error))
}

/// WAL first: the mode stays with the file, so later connections need not ask for it.
async fn make_schema(connection: &mut SqliteConnection) -> Result<(), Failure> {
    connection.execute("PRAGMA journal_mode = WAL").await?;
    migrate(connection, MIGRATIONS).await
}

/// A connection; creates no file.
async fn established(
    dir: &Path,
    options: &SqliteConnectOptions,
) -> Result<SqliteConnection, StoreError> {
    let connected = options.connect().await;
    connected.map_err(|error| into_store_error(Failure::Sql(error), dir))
}

/// Waits without limit, on the blocking pool. The lock ends when the file is dropped or its process
/// dies.
async fn lock_setup(dir: &Path) -> Result<File, StoreError> {
    let path = dir.join(SETUP_LOCK);
    let wanted = path.clone();
    let locked = tokio::task::spawn_blocking(move || {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&wanted)?;
        file.lock()?;
        Ok(file)
    });
    let locked = locked.await.unwrap_or_else(|_| {
        Err(io::Error::other(
            "the runtime stopped while waiting for the lock",
        ))
    });
    locked.map_err(|error| StoreError::unusable(&path, &error))
}

/// False for a database without migrations, or with fewer than this version has. One with more is
/// `StoreError::TooNew`.
async fn is_current(connection: &mut SqliteConnection, database: &Path) -> Result<bool, Failure> {
    const TABLE: &str = "SELECT COUNT(*) FROM sqlite_master WHERE name = '_sqlx_migrations'";
    const NEWEST: &str = "SELECT COALESCE(MAX(version), 0) FROM _sqlx_migrations WHERE success";

    let tables: i64 = sqlx::query_scalar(TABLE)
        .fetch_one(&mut *connection)
        .await?;
    if tables == 0 {
        return Ok(false);
    }
    let found: i64 = sqlx::query_scalar(NEWEST).fetch_one(connection).await?;
    let known = MIGRATIONS.last().map_or(0, |(version, ..)| *version);
    if found > known {
        let path = database.to_owned();
        return Err(StoreError::TooNew { path }.into());
    }
    Ok(found == known)
}

/// Runs what has not been run yet. Each in a transaction with its mark. Fails if one that has been
/// run reads differently here.
pub(super) async fn migrate(
    connection: &mut SqliteConnection,
    migrations: &[(i64, &'static str, &'static str)],
) -> Result<(), Failure> {
    let migrations = migrations.iter().map(|&(version, name, sql)| {
        let sql = AssertSqlSafe(sql).into_sql_str();
        Migration::new(version, name.into(), MigrationType::Simple, sql, false)
    });
    let migrator = Migrator::with_migrations(migrations.collect());
    migrator.run(connection).await?;
    Ok(())
}
