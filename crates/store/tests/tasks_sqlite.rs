//! Tasks in a SQLite file: several processes, killed processes, large graphs.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod tasks_common;

use std::{
    collections::{HashMap, HashSet},
    env,
    io::{BufRead, BufReader, Lines, Write},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
};

use codespar_protocol::{EntryBody, SessionId, TaskId, TaskStatus, TaskType};
use codespar_store::{
    LeaseStore, NewTask, Outstanding, SqliteStore, Store, StoreError, TaskFilter, TaskStore,
};
use sqlx::{ConnectOptions, Connection, Executor};
use tasks_common::{Stores, after, claimed, ending, made, room, runner, said, session, task, told};

use TaskStatus::{Completed, Failed};
use TaskType::{LocalAgent, LocalBash};

const DIR: &str = "STORE_TEST_DIR";
const SESSION: &str = "STORE_TEST_SESSION";

#[tokio::test]
async fn the_database_refuses_to_change_what_a_task_runs() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let id = made(&store, task(LocalBash)).await;
    let before = store.task(&id).await.unwrap();
    let mut raw = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(dir.path().join("codespar.db"))
        .connect()
        .await
        .unwrap();
    for column in [
        "spec",
        "authority",
        "tree",
        "queue",
        "task_type",
        "reserved_for",
        "run_anyway",
    ] {
        let forged = format!("UPDATE tasks SET {column} = 'x' WHERE id = '{id}'");
        let error = raw.execute(sqlx::AssertSqlSafe(forged)).await.unwrap_err();
        let expected = "what a task runs, and by whose authority, cannot be changed";
        assert!(error.to_string().contains(expected), "{column}: {error}");
    }
    raw.close().await.unwrap();
    assert_eq!(store.task(&id).await.unwrap(), before);
}

async fn open(dir: &Path) -> SqliteStore {
    SqliteStore::open(dir).await.unwrap()
}

/// Out at once, past the test program's own capture: a killed process flushes nothing.
fn report(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n> {line}").unwrap();
    out.flush().unwrap();
}

struct Started {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

/// This test program again, for one of the `child_…` tests.
fn start(test: &str, dir: &Path, session: Option<SessionId>) -> Started {
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args([
            "--exact",
            test,
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(DIR, dir)
        .stdout(Stdio::piped());
    if let Some(session) = session {
        command.env(SESSION, session.to_string());
    }
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    Started { child, lines }
}

impl Started {
    /// The next line the child reported, `None` at its end.
    fn reported(&mut self) -> Option<String> {
        let line = |line: Result<String, _>| Some(line.unwrap().strip_prefix("> ")?.to_owned());
        self.lines.find_map(line)
    }

    fn ended(mut self) -> Vec<String> {
        let mut lines = Vec::new();
        while let Some(line) = self.reported() {
            lines.push(line);
        }
        assert!(self.child.wait().unwrap().success());
        lines
    }

    /// All that it had reported.
    fn killed(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        let mut lines = Vec::new();
        while let Some(line) = self.reported() {
            lines.push(line);
        }
        // A fast one may have come to its end before.
        let code = self.child.wait().unwrap().code();
        assert!(matches!(code, None | Some(0)), "{code:?}");
        lines
    }
}

async fn many(store: &SqliteStore, count: usize, new: impl Fn() -> NewTask) -> HashSet<String> {
    let new: Vec<NewTask> = (0..count).map(|_| new()).collect();
    let made = store.create_tasks(new).await.unwrap();
    made.iter().map(|task| task.task_id.to_string()).collect()
}

#[tokio::test]
#[ignore = "a child process of other tests"]
async fn child_claims_until_nothing_is_left() {
    let Ok(dir) = env::var(DIR) else { return };
    let store = open(Path::new(&dir)).await;
    let who = std::process::id().to_string();
    loop {
        let taken = claimed(&store, &who, 3).await;
        if taken.is_empty() {
            break;
        }
        for task in taken {
            assert_eq!(task.taken_from, None);
            report(task.record.task_id.as_str());
        }
    }
}

#[tokio::test]
async fn several_processes_claim_each_task_exactly_once() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let all = many(&store, 500, || task(LocalBash)).await;
    let start = |_| start("child_claims_until_nothing_is_left", dir.path(), None);
    let children: Vec<Started> = (0..3).map(start).collect();
    let mut taken: Vec<String> = children.into_iter().flat_map(Started::ended).collect();
    assert_eq!(taken.len(), 500);
    assert_eq!(taken.drain(..).collect::<HashSet<String>>(), all);
}

#[tokio::test]
#[ignore = "a child process of other tests"]
async fn child_works_while_there_is_work() {
    let Ok(dir) = env::var(DIR) else { return };
    let store = open(Path::new(&dir)).await;
    let who = std::process::id().to_string();
    while store.outstanding().await.unwrap() != Outstanding::default() {
        for task in claimed(&store, &who, 8).await {
            let id = &task.record.task_id;
            let how = ending(Completed, None);
            match store.finish_task(id, task.epoch, how).await {
                Ok(_) => report(id.as_str()),
                Err(StoreError::LeaseLost(_)) => {}
                Err(other) => panic!("{other}"),
            }
        }
    }
}

#[tokio::test]
async fn what_a_killed_process_had_taken_is_finished_by_others_and_told_once() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let session = session(&store).await;
    let all = many(&store, 400, || told(LocalAgent, session)).await;
    let mut done = Vec::new();
    for round in 0..4 {
        let mut child = start("child_works_while_there_is_work", dir.path(), None);
        for _ in 0..=(round * 5) {
            done.extend(child.reported());
        }
        done.extend(child.killed());
        for dead in store.runners().await.unwrap() {
            store.reap_runner(&dead).await.unwrap();
        }
    }
    let acknowledged = done.len();
    let unique: HashSet<String> = done.into_iter().collect();
    assert_eq!(unique.len(), acknowledged, "none was finished twice");
    while store.outstanding().await.unwrap() != Outstanding::default() {
        for task in claimed(&store, "rescue", 50).await {
            let id = &task.record.task_id;
            assert!(!unique.contains(id.as_str()), "{id} was finished");
            let how = ending(Completed, None);
            store.finish_task(id, task.epoch, how).await.unwrap();
        }
    }
    let told = store.notifications(session).await.unwrap();
    assert_eq!(told.len(), 400);
    let told: HashSet<String> = told.iter().map(|told| told.task_id.to_string()).collect();
    assert_eq!(told, all);
}

/// Moves what waits into the conversation, a few at a time.
async fn deliver(store: &dyn Stores, session: SessionId) -> Option<u64> {
    let waiting = store.notifications(session).await.unwrap();
    if waiting.is_empty() {
        return None;
    }
    let some = &waiting[..waiting.len().min(3)];
    let bodies = some
        .iter()
        .map(|told| said(told.task_id.as_str()))
        .collect();
    let seqs: Vec<u64> = some.iter().map(|told| told.seq).collect();
    let last = store.session(session).await.unwrap().last_seq;
    match store.append_notified(session, last, bodies, &seqs).await {
        Ok(entries) => entries.last().map(|entry| entry.seq),
        Err(StoreError::MovedOn { .. } | StoreError::NotWaiting { .. }) => Some(last),
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test]
#[ignore = "a child process of other tests"]
async fn child_delivers_notifications() {
    let (Ok(dir), Ok(session)) = (env::var(DIR), env::var(SESSION)) else {
        return;
    };
    let store = open(Path::new(&dir)).await;
    let session = session.parse().unwrap();
    while let Some(last) = deliver(&store, session).await {
        report(&last.to_string());
    }
}

#[tokio::test]
async fn each_notification_is_in_the_conversation_once_however_often_its_reader_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let session = session(&store).await;
    let all = many(&store, 300, || told(LocalBash, session)).await;
    for id in &all {
        let id: TaskId = id.parse().unwrap();
        store.stop_task(&id, "enough").await.unwrap();
    }
    for round in 0..4 {
        let child = || start("child_delivers_notifications", dir.path(), Some(session));
        let (mut one, two) = (child(), child());
        for _ in 0..=(round * 3) {
            one.reported();
        }
        one.killed();
        two.killed();
    }
    while deliver(&store, session).await.is_some() {}
    let entries = store.entries(session, 1).await.unwrap();
    let text = |body: &EntryBody| match body {
        EntryBody::User { message, .. } => message.text(),
        other => panic!("{other:?}"),
    };
    let said: Vec<String> = entries.iter().map(|entry| text(&entry.body)).collect();
    assert_eq!(said.len(), 300);
    assert_eq!(said.into_iter().collect::<HashSet<String>>(), all);
}

/// Chains, fans and a last task that waits for a thousand.
fn graph(size: usize) -> Vec<NewTask> {
    let mut new: Vec<NewTask> = Vec::with_capacity(size);
    for place in 0..size - 1 {
        let mut next = task(LocalBash);
        if place >= 10 {
            let near = new[place - 10].id.clone();
            next.blocked_by = vec![near, new[place / 2].id.clone()];
            next.blocked_by.dedup();
        }
        new.push(next);
    }
    let many: Vec<&TaskId> = new[size - 1001..].iter().map(|task| &task.id).collect();
    let last = after(LocalBash, &many);
    new.push(last);
    new
}

#[tokio::test]
async fn ten_thousand_tasks_with_dependencies_drain_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let new = graph(10_000);
    assert_eq!(store.create_tasks(new.clone()).await.unwrap().len(), 10_000);
    let mut done: HashMap<TaskId, usize> = HashMap::new();
    loop {
        let taken = claimed(&store, "r", 200).await;
        if taken.is_empty() {
            break;
        }
        for task in taken {
            let id = task.record.task_id;
            let how = ending(Completed, None);
            store.finish_task(&id, task.epoch, how).await.unwrap();
            let place = done.len();
            assert_eq!(done.insert(id, place), None, "once");
        }
    }
    assert_eq!(done.len(), 10_000);
    for task in &new {
        for blocker in &task.blocked_by {
            assert!(done[blocker] < done[&task.id]);
        }
    }
    let listed = store.tasks(TaskFilter::default()).await.unwrap();
    assert_eq!(listed.last().unwrap().blocked_by.len(), 1000);
    assert_eq!(store.outstanding().await.unwrap(), Outstanding::default());
}

#[tokio::test]
async fn a_failure_falls_through_a_chain_of_thousands() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let mut chain = vec![task(LocalBash)];
    for place in 1..3000 {
        chain.push(after(LocalBash, &[&chain[place - 1].id]));
    }
    store.create_tasks(chain.clone()).await.unwrap();
    let first = claimed(&store, "r", 9).await.remove(0);
    let how = ending(Failed, Some("exit 1"));
    let fallen = store
        .finish_task(&chain[0].id, first.epoch, how)
        .await
        .unwrap();
    let expected: Vec<TaskId> = chain[1..].iter().map(|task| task.id.clone()).collect();
    assert_eq!(fallen, expected);
    let last = store.task(&chain[2999].id).await.unwrap();
    let message = format!(
        "it waited for {}, which failed because {} failed: exit 1",
        chain[2998].id, chain[0].id
    );
    assert_eq!(last.error, Some(message));
}

#[tokio::test]
async fn a_change_given_up_half_way_leaves_the_store_usable() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    for _ in 0..50 {
        tokio::select! {
            biased;
            made = store.create_tasks(vec![task(LocalBash), task(LocalBash)]) => drop(made.unwrap()),
            () = tokio::task::yield_now() => {}
        }
    }
    let there = store.tasks(TaskFilter::default()).await.unwrap().len();
    assert_eq!(there % 2, 0, "all or none");
    let taken = store.claim_tasks(&runner("r"), &room(1000)).await.unwrap();
    assert_eq!(taken.len(), there);
}

#[tokio::test]
async fn a_database_of_sessions_only_gets_the_tables_of_tasks() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path()).await;
    let session = session(&store).await;
    store.close().await.unwrap();
    let mut database = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(dir.path().join("codespar.db"))
        .connect()
        .await
        .unwrap();
    for trigger in ["changes_entry", "questions_of_removed_sessions"] {
        let drop = sqlx::AssertSqlSafe(format!("DROP TRIGGER {trigger}"));
        database.execute(drop).await.unwrap();
    }
    for table in [
        "removed_outputs",
        "task_trees",
        "output_pieces",
        "task_outputs",
        "task_limits",
        "browser_sessions",
        "access_tokens",
        "channel_messages",
        "channel_threads",
        "channel_links",
        "channel_people",
        "channel_outbox",
        "channel_timers",
        "channel_audit",
        "questions",
        "changes",
        "commit_checks",
        "pull_reviews",
        "pulls",
        "task_steps",
        "task_deps",
        "mailbox",
        "notifications",
        "path_claims",
        "team_members",
        "teams",
        "runners",
        "tasks",
    ] {
        let drop = sqlx::AssertSqlSafe(format!("DROP TABLE {table}"));
        database.execute(drop).await.unwrap();
    }
    let earlier = "DELETE FROM _sqlx_migrations WHERE version > 1";
    database.execute(earlier).await.unwrap();
    database.close().await.unwrap();

    let store = open(dir.path()).await;
    store.session(session).await.unwrap();
    let id = made(&store, told(LocalAgent, session)).await;
    assert_eq!(store.task(&id).await.unwrap().session_id, Some(session));
}
