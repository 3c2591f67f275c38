//! The binary with its records on a PostgreSQL server. `cargo xtask test --only fleet` starts one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests"
)]

#[path = "../common/mod.rs"]
mod common;
mod outputs;
mod pages;
mod travelling;

use std::process::Command;

use codespar_testkit::{
    AfterLast, Conversation, Gate, Matcher, Script, Turn,
    process::{Finished, spawn},
};
use common::{Bench, PATIENCE, parsed, wait_for};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection, PgConnection};

/// A home, a repository, a model, and a schema of its own on the server of the tests.
struct Fleet {
    bench: Bench,
    server: String,
    schema: String,
}

/// Tests here have no runtime.
fn on_runtime(work: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(work);
}

fn on_server(server: &str, statement: String) {
    on_runtime(async {
        let mut connection = PgConnection::connect(server).await.unwrap();
        let statement = sqlx::raw_sql(AssertSqlSafe(statement));
        statement.execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    });
}

impl Fleet {
    fn new(script: Script) -> Self {
        let server = std::env::var("CODESPAR_TEST_POSTGRES").expect(
            "CODESPAR_TEST_POSTGRES names a server; `cargo xtask test --only fleet` starts one",
        );
        let id = codespar_protocol::SessionId::new().to_string();
        let schema = format!("test_{}", id.replace('-', ""));
        on_server(&server, format!("CREATE SCHEMA {schema}"));
        Self {
            bench: Bench::new(script),
            server,
            schema,
        }
    }

    /// With a password that the server does not ask for.
    fn url(&self) -> String {
        let server = self
            .server
            .replacen("codespar@", "codespar:hunter2-secret@", 1);
        format!("{server}?options=-csearch_path%3D{}", self.schema)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.bench.command(args);
        command.env("CODESPAR_DATABASE_URL", self.url());
        command
    }

    fn run(&self, args: &[&str]) -> Finished {
        let running = spawn(&mut self.command(args)).unwrap();
        running.wait(PATIENCE).unwrap()
    }

    fn tasks(&self) -> Vec<Value> {
        let listed = parsed(&self.run(&["task", "list", "--json"]).stdout);
        listed["tasks"].as_array().unwrap().clone()
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        on_server(&self.server, format!("DROP SCHEMA {} CASCADE", self.schema));
    }
}

fn sessions(finished: &Finished) -> usize {
    let listed = parsed(&finished.stdout);
    let sessions = listed.as_array().or_else(|| listed["sessions"].as_array());
    sessions.unwrap().len()
}

#[test]
#[ignore = "needs a server: cargo xtask test --only fleet"]
fn a_run_is_on_record_on_the_server_and_not_in_the_state_directory() {
    let fleet = Fleet::new(Script::new().turn(Turn::text("hello")));
    let finished = fleet.run(&["-p", "hi"]);
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    assert_eq!(finished.stdout.trim(), "hello");
    assert_eq!(sessions(&fleet.run(&["session", "list", "--json"])), 1);
    let file = fleet.bench.room.codespar_home().join("codespar.db");
    assert!(!file.exists());

    let doctor = fleet.run(&["doctor"]);
    assert!(
        doctor.stdout.contains("(PostgreSQL), 1 sessions"),
        "{}",
        doctor.stdout
    );
    assert!(!doctor.stdout.contains("hunter2"), "{}", doctor.stdout);
}

#[test]
#[ignore = "needs a server: cargo xtask test --only fleet"]
fn an_agent_of_a_killed_process_is_resumed_by_another_through_the_server() {
    let input = json!({"description": "child", "prompt": "child works", "run_in_background": true});
    let prompt = Matcher::first_user_contains("child works");
    let wait = "touch waiting; until [ -e gate ]; do sleep 0.1; done";
    let child = Conversation::new("child", prompt)
        .turn(Turn::tool(
            "Bash",
            &json!({"command": "echo once >> ran.txt"}),
        ))
        .turn(Turn::tool("Bash", &json!({"command": wait})))
        .turn(Turn::text("the child is done"));
    let script = Script::new()
        .turn(Turn::new().and_tool("Task", &input))
        .turn(Turn::text("waiting"))
        .after_last(AfterLast::Repeat)
        .conversation(child);
    let fleet = Fleet::new(script);
    let settings = fleet.bench.room.codespar_home().join("settings.json");
    std::fs::write(settings, r#"{"permissions": {"allow": ["Bash"]}}"#).unwrap();
    let first = spawn(&mut fleet.command(&["-p", "go"])).unwrap();
    let work = fleet.bench.work();
    wait_for("the child waits", || work.join("waiting").exists());

    first.kill_9().unwrap();
    fleet.bench.file("gate", "");
    let second = fleet.run(&["worker", "--until-idle"]);

    assert_eq!(second.status.code(), Some(0), "{}", second.stderr);
    let tasks = fleet.tasks();
    let [task] = tasks.as_slice() else {
        panic!("{tasks:#?}");
    };
    assert_eq!(task["status"], "completed", "{task:#}");
    let ran = std::fs::read_to_string(work.join("ran.txt")).unwrap();
    assert_eq!(ran, "once\n", "what was done is not done again");
}

/// Waits until an append waits for a row that this connection has locked, ends the connection that
/// makes it, and lets go of the row.
async fn cut_an_append(url: &str, release: impl FnOnce()) {
    let mut connection = PgConnection::connect(url).await.unwrap();
    let statement = "BEGIN; SELECT 1 FROM sessions FOR UPDATE";
    sqlx::raw_sql(statement)
        .execute(&mut connection)
        .await
        .unwrap();
    release();
    // A connection of its own: within a transaction the activity of others does not change.
    let mut watcher = PgConnection::connect(url).await.unwrap();
    let ended = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity \
         WHERE cardinality(pg_blocking_pids(pid)) > 0 AND query LIKE 'WITH moved%'";
    let began = std::time::Instant::now();
    loop {
        let query = sqlx::query_scalar(ended);
        let count: i64 = query.fetch_one(&mut watcher).await.unwrap();
        if count > 0 {
            break;
        }
        assert!(began.elapsed() < PATIENCE, "nothing is appended");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    connection.close().await.unwrap();
    watcher.close().await.unwrap();
}

#[test]
#[ignore = "needs a server: cargo xtask test --only fleet"]
fn an_agent_goes_on_when_the_server_ends_the_connection_of_an_append() {
    let gate = Gate::closed();
    let child = Conversation::new("child", Matcher::first_user_contains("child works"))
        .turn(Turn::tool("Read", &json!({"file_path": "a.txt"})).held_by(&gate))
        .turn(Turn::text("the child is done"));
    let fleet = Fleet::new(Script::new().conversation(child));
    fleet.bench.file("a.txt", "a");
    let worker = spawn(&mut fleet.command(&["worker"])).unwrap();
    let create = ["task", "create", "--type", "remote_agent", "--subject", "s"];
    let made = fleet.run(&[&create[..], &["--prompt", "child works"]].concat());
    assert_eq!(made.status.code(), Some(0), "{}", made.stderr);
    wait_for("the model is asked", || {
        fleet.bench.server.request_count() > 0
    });

    on_runtime(cut_an_append(&fleet.url(), || gate.open()));

    wait_for("the task is over", || {
        !matches!(
            fleet.tasks()[0]["status"].as_str(),
            Some("pending" | "running")
        )
    });
    let task = &fleet.tasks()[0];
    assert_eq!(task["status"], "completed", "{task:#}");
    worker.terminate().unwrap();
    worker.wait(PATIENCE).unwrap();
}

#[test]
#[ignore = "needs a server: cargo xtask test --only fleet"]
fn records_are_moved_from_sqlite_and_counted() {
    let fleet = Fleet::new(Script::new().turn(Turn::text("hello")));
    let before = fleet.bench.run(&["-p", "hi"]);
    assert_eq!(before.status.code(), Some(0), "{}", before.stderr);
    let from = format!("sqlite://{}", fleet.bench.room.codespar_home().display());

    let moved = fleet.run(&["migrate", "--from", &from, "--json"]);

    assert_eq!(moved.status.code(), Some(0), "{}", moved.stderr);
    let tables = parsed(&moved.stdout);
    let count = |name: &str| {
        let tables = tables["tables"].as_array().unwrap();
        let table = tables.iter().find(|table| table["table"] == name);
        table.unwrap()["rows"].as_u64().unwrap()
    };
    assert_eq!(count("sessions"), 1);
    assert_eq!(count("entries"), 2);
    assert_eq!(sessions(&fleet.run(&["session", "list", "--json"])), 1);

    let again = fleet.run(&["migrate", "--from", &from, "--to", &fleet.url()]);
    assert_eq!(again.status.code(), Some(1));
    assert!(
        again.stderr.contains("has records already"),
        "{}",
        again.stderr
    );
    assert!(!again.stderr.contains("hunter2"), "{}", again.stderr);
}

/// Nothing listens on port 1.
#[test]
fn a_server_that_is_not_there_is_said_without_the_password() {
    let bench = Bench::new(Script::new());
    for (url, wanted) in [
        (
            "postgres://me:hunter2-secret@127.0.0.1:1/db",
            "cannot use the database me@127.0.0.1:1/db",
        ),
        (
            "mysql://me:hunter2-secret@host/db",
            "begin with postgres://",
        ),
    ] {
        for args in [&["doctor"][..], &["-p", "hi"], &["session", "list"]] {
            let mut command = bench.command(args);
            command.env("CODESPAR_DATABASE_URL", url);
            let finished = spawn(&mut command).unwrap().wait(PATIENCE).unwrap();
            assert_eq!(finished.status.code(), Some(1), "{args:?}");
            let said = format!("{}{}", finished.stdout, finished.stderr);
            assert!(said.contains(wanted), "{args:?}: {said}");
            assert!(!said.contains("hunter2"), "{args:?}: {said}");
        }
    }
}
