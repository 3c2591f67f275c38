//! What happens to the process.

use std::{path::PathBuf, time::Duration};

use rustix::process::{Pid, Signal, kill_process};
use sqlx::{ConnectOptions, Executor, SqliteConnection, sqlite::SqliteConnectOptions};

use crate::{common::Bench, world::World};

#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    /// Nothing runs in it for a while.
    Stopped,
    /// The clock of the machine is set.
    Clock(&'static str),
    /// Somebody else has the database.
    LockedDatabase,
}

/// How long a fault lasts. Longer than ten seconds, after which all of this went wrong once.
pub(crate) fn duration() -> Duration {
    let named = std::env::var("CODESPAR_LEASE_SECONDS").ok();
    Duration::from_secs(named.map_or(13, |seconds| seconds.parse().unwrap()))
}

impl Fault {
    pub(crate) fn happen(self, world: &World) {
        match self {
            Self::Stopped => {
                stop(world.pid());
                std::thread::sleep(duration());
                go_on(world.pid());
            }
            Self::Clock(offset) => {
                std::fs::write(world.clock(), offset).unwrap();
                std::thread::sleep(Duration::from_secs(4));
            }
            Self::LockedDatabase => in_runtime(async {
                let mut other = connect(&world.bench).await;
                other.execute("BEGIN IMMEDIATE").await.unwrap();
                tokio::time::sleep(duration()).await;
                other.execute("ROLLBACK").await.unwrap();
            }),
        }
    }
}

pub(crate) fn stop(process: u32) {
    signal(process, Signal::STOP);
}

/// Stops the first process where it does not hold the lock on the database: nobody could write as
/// long as it is stopped.
pub(crate) fn stop_outside_of_a_transaction(world: &World) {
    stop(world.pid());
    while is_locked(&world.bench) {
        go_on(world.pid());
        std::thread::sleep(Duration::from_millis(20));
        stop(world.pid());
    }
}

fn is_locked(bench: &Bench) -> bool {
    in_runtime(async {
        let mut connection = connect(bench).await;
        connection
            .execute("PRAGMA busy_timeout = 200")
            .await
            .unwrap();
        connection.execute("BEGIN IMMEDIATE").await.is_err()
    })
}

pub(crate) fn go_on(process: u32) {
    signal(process, Signal::CONT);
}

fn signal(process: u32, signal: Signal) {
    let process = Pid::from_raw(process.try_into().unwrap()).unwrap();
    kill_process(process, signal).unwrap();
}

pub(crate) fn in_runtime<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(work)
}

pub(crate) async fn connect(bench: &Bench) -> SqliteConnection {
    let database = bench.room.codespar_home().join("codespar.db");
    let options = SqliteConnectOptions::new()
        .filename(database)
        .busy_timeout(Duration::from_secs(60));
    options.connect().await.unwrap()
}

/// One number from the database.
pub(crate) fn count(bench: &Bench, query: &'static str, argument: &str) -> i64 {
    in_runtime(async {
        let mut connection = connect(bench).await;
        let count = sqlx::query_scalar(query)
            .bind(argument.to_owned())
            .fetch_one(&mut connection)
            .await;
        count.unwrap()
    })
}

/// How many processes run tasks.
pub(crate) fn runners(bench: &Bench) -> i64 {
    let query = "SELECT COUNT(*) FROM runners WHERE id <> $1";
    count(bench, query, "")
}

/// How many entries of all conversations have these words.
pub(crate) fn entries_with(bench: &Bench, text: &str) -> i64 {
    let query = "SELECT COUNT(*) FROM entries WHERE instr(body, $1) > 0";
    count(bench, query, text)
}

/// The library that gives a process a clock of its own (package `libfaketime`).
pub(crate) fn library() -> PathBuf {
    let found = std::fs::read_dir("/usr/lib").unwrap().flatten();
    found
        .map(|dir| dir.path().join("faketime/libfaketimeMT.so.1"))
        .find(|path| path.exists())
        .expect("libfaketimeMT.so.1: install the package libfaketime")
}
