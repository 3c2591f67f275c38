//! What only PostgreSQL can get wrong: the order of commits, lost connections, holds that end with
//! their connection, claims at once, the schema, passwords.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "these are tests"
)]

#[macro_use]
mod backends;
mod tasks_common;

use std::{collections::HashSet, sync::Arc, time::Duration};

use backends::Schema;
use codespar_protocol::{TaskStatus, TaskType};
use codespar_store::{
    ChangeCursor, ChangeKind, ChannelStore, Database, LeaseStore, LimitScope, LimitStore, NewAudit,
    PostgresStore, ReportStore, Store, StoreError, TaskLease, TaskStore, ThreadRef,
};
use sqlx::Executor;
use tasks_common::{claimed, ending, made, room, runner, said, session, task};

const PATIENCE: Duration = Duration::from_secs(60);

async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.expect("in time")
}

/// Asks again until it holds.
async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let asking = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, asking).await.expect(what);
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test --only fleet"]
async fn a_reader_never_passes_over_a_change_that_commits_later() {
    let schema = Schema::make().await;
    let store = schema.open().await;
    let first = made(&store, task(TaskType::LocalAgent)).await;
    let second = made(&store, task(TaskType::LocalAgent)).await;
    let start = store.newest_change().await.unwrap();
    // Written first, committed last.
    let mut slow = schema.connection().await;
    slow.execute("BEGIN").await.unwrap();
    let stop = "UPDATE tasks SET stop_reason = 'slow' WHERE id = $1";
    sqlx::query(stop)
        .bind(first.as_str())
        .execute(&mut slow)
        .await
        .unwrap();
    let mut quick = schema.connection().await;
    sqlx::query(stop)
        .bind(second.as_str())
        .execute(&mut quick)
        .await
        .unwrap();

    let seen = in_time(store.changes(start)).await.unwrap();
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].task_id.as_ref(), Some(&second));

    slow.execute("COMMIT").await.unwrap();
    let late = in_time(store.changes(seen[0].cursor)).await.unwrap();
    assert_eq!(late.len(), 1, "{late:?}");
    assert_eq!(late[0].task_id.as_ref(), Some(&first));
    // From the beginning both are there once, without a hole.
    let all = in_time(store.changes(start)).await.unwrap();
    let places: Vec<u64> = all.iter().map(|change| change.cursor.0).collect();
    assert_eq!(places, [start.0 + 1, start.0 + 2]);
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test --only fleet"]
async fn many_writers_at_once_leave_no_hole_for_a_reader() {
    const WRITERS: u64 = 6;
    const EACH: u64 = 15;
    let schema = Schema::make().await;
    let store = Arc::new(schema.open().await);
    let mut writers = Vec::new();
    for _ in 0..WRITERS {
        let (store, id) = (store.clone(), session(&*store).await);
        writers.push(tokio::spawn(async move {
            for after in 0..EACH {
                store.append(id, after, vec![said("x")]).await.unwrap();
            }
        }));
    }
    let mut cursor = ChangeCursor(0);
    let mut seen = HashSet::new();
    while (seen.len() as u64) < WRITERS * EACH {
        for change in in_time(store.changes(cursor)).await.unwrap() {
            assert_eq!(change.cursor.0, cursor.0 + 1);
            cursor = change.cursor;
            let ChangeKind::Entry { seq } = change.kind else {
                panic!("{change:?}");
            };
            assert!(seen.insert((change.session_id, seq)));
        }
    }
    for writer in writers {
        writer.await.unwrap();
    }
}

/// Ends the connections that hold sessions of the schema; how many there were.
async fn end_holding_connections(schema: &Schema) -> usize {
    let mut connection = schema.connection().await;
    let ended: Vec<bool> = sqlx::query_scalar(
        "SELECT pg_terminate_backend(l.pid) FROM pg_locks l WHERE l.locktype = 'advisory' \
         AND l.granted AND l.pid <> pg_backend_pid() AND EXISTS (SELECT 1 FROM sessions s \
         WHERE hashtextextended('codespar session ' || current_schema() || ' ' || s.id, 0) = \
         (l.classid::BIGINT << 32) | l.objid::BIGINT)",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();
    ended.len()
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test --only fleet"]
async fn a_holder_whose_session_was_taken_after_its_connection_was_lost_cannot_append() {
    let schema = Schema::make().await;
    let (here, there) = (schema.open().await, schema.open().await);
    let id = session(&here).await;
    let hold = here.hold_session(id).await.unwrap();
    here.append(id, 0, vec![said("one")]).await.unwrap();
    let refused = there.hold_session(id).await;
    assert!(matches!(refused, Err(StoreError::SessionInUse { .. })));

    // Whoever is faster has it; the loser is refused, whichever of the two it is.
    let mut taken = None;
    until("the other takes it", async || {
        end_holding_connections(&schema).await;
        taken = there.hold_session(id).await.ok();
        taken.is_some()
    })
    .await;

    let late = here.append(id, 1, vec![said("two")]).await;
    assert!(matches!(late, Err(StoreError::HoldLost(_))), "{late:?}");
    let nothing = here.append(id, 1, Vec::new()).await;
    assert!(
        matches!(nothing, Err(StoreError::HoldLost(_))),
        "{nothing:?}"
    );
    there.append(id, 1, vec![said("two")]).await.unwrap();
    assert_eq!(here.entries(id, 1).await.unwrap().len(), 2);
    drop(hold);
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test --only fleet"]
async fn a_later_lease_of_a_task_takes_the_session_from_a_frozen_process() {
    let schema = Schema::make().await;
    let (frozen, there) = (schema.open().await, schema.open().await);
    let (id, bystander) = (session(&frozen).await, session(&frozen).await);
    let task = made(&frozen, task(TaskType::LocalAgent)).await;
    let lease = |epoch| TaskLease {
        task: task.clone(),
        epoch,
    };
    let hold = frozen.hold_session_for(id, &lease(3)).await.unwrap();
    let _other = frozen.hold_session(bystander).await.unwrap();
    frozen.append(id, 0, vec![said("one")]).await.unwrap();
    // The same or an earlier lease has no right to it, nor has another task or a person.
    for epoch in [2, 3] {
        let refused = there.hold_session_for(id, &lease(epoch)).await;
        assert!(matches!(refused, Err(StoreError::SessionInUse { .. })));
    }
    let other_task = TaskLease {
        task: made(&frozen, tasks_common::task(TaskType::LocalAgent)).await,
        epoch: 9,
    };
    let refused = there.hold_session_for(id, &other_task).await;
    assert!(matches!(refused, Err(StoreError::SessionInUse { .. })));
    let refused = there.hold_session(id).await;
    assert!(matches!(refused, Err(StoreError::SessionInUse { .. })));

    let taken = there.hold_session_for(id, &lease(4)).await.unwrap();
    there.append(id, 1, vec![said("two")]).await.unwrap();
    let late = frozen.append(id, 2, vec![said("stale")]).await;
    assert!(matches!(late, Err(StoreError::HoldLost(_))), "{late:?}");
    // What else the process held is still its own.
    frozen
        .append(bystander, 0, vec![said("mine")])
        .await
        .unwrap();
    drop((hold, taken));
}

/// Whoever has the task now may not have come to its conversation yet, or have put the task back.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test --only fleet"]
async fn an_agent_whose_task_was_claimed_cannot_append_before_its_session_is_taken() {
    let schema = Schema::make().await;
    let (frozen, there) = (schema.open().await, schema.open().await);
    let id = session(&frozen).await;
    let task = made(&frozen, task(TaskType::LocalAgent)).await;
    assert_eq!(claimed(&frozen, "lost", 1).await[0].epoch, 1);
    let lease = TaskLease {
        task: task.clone(),
        epoch: 1,
    };
    let hold = frozen.hold_session_for(id, &lease).await.unwrap();
    frozen.append(id, 0, vec![said("one")]).await.unwrap();
    frozen.withdraw_runner(&runner("lost")).await.unwrap();
    assert_eq!(claimed(&there, "next", 1).await[0].epoch, 2);

    let late = frozen.append(id, 1, vec![said("stale")]).await;

    assert!(matches!(late, Err(StoreError::HoldLost(_))), "{late:?}");
    there.release_task(&task, 2).await.unwrap();
    let late = frozen.append(id, 1, vec![said("stale")]).await;
    assert!(matches!(late, Err(StoreError::HoldLost(_))), "{late:?}");
    drop(hold);
    // Nor can it take the session again.
    let late = frozen.hold_session_for(id, &lease).await;
    assert!(
        matches!(
            late,
            Err(StoreError::HoldLost(_) | StoreError::SessionInUse { .. })
        ),
        "{late:?}"
    );
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test --only fleet"]
async fn a_person_who_holds_the_session_of_a_task_keeps_it() {
    let schema = Schema::make().await;
    let (here, there) = (schema.open().await, schema.open().await);
    let id = session(&here).await;
    let task = made(&here, task(TaskType::LocalAgent)).await;
    let lease = |epoch| TaskLease {
        task: task.clone(),
        epoch,
    };
    drop(here.hold_session_for(id, &lease(1)).await.unwrap());
    let mut person = None;
    until("the session is free", async || {
        person = here.hold_session(id).await.ok();
        person.is_some()
    })
    .await;
    let refused = there.hold_session_for(id, &lease(2)).await;
    assert!(matches!(refused, Err(StoreError::SessionInUse { .. })));
    here.append(id, 0, vec![said("by hand")]).await.unwrap();
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test --only fleet"]
async fn a_hold_that_nobody_took_goes_on_after_the_connection_is_back() {
    let schema = Schema::make().await;
    let (here, there) = (schema.open().await, schema.open().await);
    let id = session(&here).await;
    let hold = here.hold_session(id).await.unwrap();
    assert_eq!(end_holding_connections(&schema).await, 1);
    let mut connection = schema.connection().await;
    until("the hold is back", async || {
        let locks: i64 = sqlx::query_scalar(
            "SELECT COUNT(*) FROM pg_locks l, sessions s WHERE l.locktype = 'advisory' \
             AND l.granted AND hashtextextended('codespar session ' || current_schema() || ' ' \
             || s.id, 0) = (l.classid::BIGINT << 32) | l.objid::BIGINT",
        )
        .fetch_one(&mut connection)
        .await
        .unwrap();
        locks == 1
    })
    .await;
    let refused = there.hold_session(id).await;
    assert!(matches!(refused, Err(StoreError::SessionInUse { .. })));
    here.append(id, 0, vec![said("one")]).await.unwrap();
    // And it can be let go.
    drop(hold);
    until("it is free", async || there.hold_session(id).await.is_ok()).await;
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test --only fleet"]
async fn the_feed_and_the_calls_go_on_after_all_connections_were_cut() {
    let schema = Schema::make().await;
    let (store, other) = (Arc::new(schema.open().await), schema.open().await);
    let id = session(&*store).await;
    store.append(id, 0, vec![said("one")]).await.unwrap();
    let newest = store.newest_change().await.unwrap();
    let waiting = tokio::spawn({
        let store = store.clone();
        async move {
            loop {
                // An error of the moment of the cut is the caller's to repeat.
                if let Ok(changes) = store.changes(newest).await {
                    return changes;
                }
            }
        }
    });
    schema.cut_connections().await;
    until("an append after the cut", async || {
        other.append(id, 1, vec![said("two")]).await.is_ok()
            || other
                .entries(id, 2)
                .await
                .is_ok_and(|more| !more.is_empty())
    })
    .await;
    let heard = in_time(waiting).await.unwrap();
    assert_eq!(heard[0].kind, ChangeKind::Entry { seq: 2 });
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test --only fleet"]
async fn runners_that_claim_at_once_never_get_the_same_task() {
    const TASKS: usize = 60;
    let schema = Schema::make().await;
    let store = Arc::new(schema.open().await);
    let new = (0..TASKS).map(|_| task(TaskType::LocalAgent)).collect();
    store.create_tasks(new).await.unwrap();
    let runners = (0..5).map(|number| {
        let store = store.clone();
        tokio::spawn(async move {
            let name = runner(&format!("r{number}"));
            let mut taken = Vec::new();
            loop {
                let some = store.claim_tasks(&name, &room(3)).await.unwrap();
                if some.is_empty() && store.outstanding().await.unwrap().ready == 0 {
                    return taken;
                }
                for claimed in some {
                    let (id, epoch) = (claimed.record.task_id, claimed.epoch);
                    let end = ending(TaskStatus::Completed, None);
                    store.finish_task(&id, epoch, end).await.unwrap();
                    taken.push(id);
                }
            }
        })
    });
    let mut all = Vec::new();
    for runner in runners.collect::<Vec<_>>() {
        all.extend(in_time(runner).await.unwrap());
    }
    let distinct: HashSet<_> = all.iter().collect();
    assert_eq!((all.len(), distinct.len()), (TASKS, TASKS));
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test --only fleet"]
async fn a_claim_does_not_wait_for_a_task_that_another_is_taking() {
    let schema = Schema::make().await;
    let store = schema.open().await;
    let first = made(&store, task(TaskType::LocalAgent)).await;
    let second = made(&store, task(TaskType::LocalAgent)).await;
    let mut other = schema.connection().await;
    other.execute("BEGIN").await.unwrap();
    sqlx::query("SELECT 1 FROM tasks WHERE id = $1 FOR UPDATE")
        .bind(first.as_str())
        .execute(&mut other)
        .await
        .unwrap();
    let taken = in_time(claimed(&store, "r", 2)).await;
    let ids: Vec<_> = taken.into_iter().map(|one| one.record.task_id).collect();
    assert_eq!(ids, [second]);
    other.execute("ROLLBACK").await.unwrap();
    assert_eq!(claimed(&store, "r", 2).await.len(), 1);
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test --only fleet"]
async fn stores_that_start_at_once_make_the_schema_once() {
    let schema = Arc::new(Schema::make().await);
    let opening = (0..6).map(|_| {
        let schema = schema.clone();
        tokio::spawn(async move { schema.open().await })
    });
    let mut stores = Vec::new();
    for opened in opening.collect::<Vec<_>>() {
        stores.push(in_time(opened).await.unwrap());
    }
    let mut connection = schema.connection().await;
    let versions: Vec<i64> = sqlx::query_scalar("SELECT version FROM codespar_schema ORDER BY 1")
        .fetch_all(&mut connection)
        .await
        .unwrap();
    assert_eq!(versions, [1, 2, 3, 4, 5, 6]);
    for store in stores {
        assert!(store.sessions(Default::default()).await.unwrap().is_empty());
        store.close().await.unwrap();
    }
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test --only fleet"]
async fn a_newer_schema_is_refused() {
    let schema = Schema::make().await;
    schema.open().await.close().await.unwrap();
    let mut connection = schema.connection().await;
    connection
        .execute("INSERT INTO codespar_schema VALUES (99)")
        .await
        .unwrap();
    let refused = PostgresStore::open(&schema.url()).await.err().unwrap();
    let said = refused.to_string();
    assert!(said.contains("newer version of codespar"), "{said}");
    assert!(said.contains("99"), "{said}");
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test --only fleet"]
async fn what_a_task_runs_and_the_audit_log_cannot_be_changed() {
    let schema = Schema::make().await;
    let store = schema.open().await;
    made(&store, task(TaskType::LocalAgent)).await;
    let at = ThreadRef {
        channel: "test".to_owned(),
        conversation: "c".to_owned(),
        thread: "t".to_owned(),
    };
    let entry = NewAudit {
        at,
        identity: "i".to_owned(),
        speaker: "s".to_owned(),
        role: None,
        action: "merge".to_owned(),
        decision: "refused".to_owned(),
        detail: String::new(),
        repository: None,
        task_id: None,
    };
    store.append_audit(entry).await.unwrap();
    let mut connection = schema.connection().await;
    for attack in [
        "UPDATE tasks SET spec = '{}'",
        "UPDATE tasks SET authority = NULL",
        "UPDATE channel_audit SET decision = 'allowed'",
        "DELETE FROM channel_audit",
    ] {
        let refused = connection.execute(attack).await.unwrap_err().to_string();
        let is_ours = refused.contains("append-only") || refused.contains("cannot be changed");
        assert!(is_ours, "{attack}: {refused}");
    }
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test --only fleet"]
async fn a_nul_in_a_text_does_not_lose_the_message() {
    let schema = Schema::make().await;
    let store = schema.open().await;
    let id = session(&store).await;
    store.append(id, 0, vec![said("a\0b")]).await.unwrap();
    assert_eq!(store.entries(id, 1).await.unwrap()[0].body, said("a\0b"));
    let agent = made(&store, task(TaskType::LocalAgent)).await;
    store.send_mail(&agent, "me", "a\0b").await.unwrap();
    let mail = store.mail(&agent).await.unwrap();
    assert_eq!(mail[0].body, "a\u{fffd}b");
}

/// No server is needed: nothing listens there.
#[tokio::test]
async fn an_error_names_the_place_and_never_the_password() {
    let secret = "hunter2-secret";
    for (url, wanted) in [
        (
            format!("postgres://me:{secret}@127.0.0.1:1/db"),
            "database me@127.0.0.1:1/db",
        ),
        (format!("mysql://me:{secret}@host/db"), "postgres://"),
        (format!("postgres://me:{secret}@[::1/db"), "cannot be read"),
        (
            format!("postgres://me@127.0.0.1:1/db?password={secret}"),
            "is the server running",
        ),
    ] {
        let error = PostgresStore::open(&url).await.err().expect("an error");
        let said = format!("{error} {error:?}");
        assert!(said.contains(wanted), "{said}");
        assert!(!said.contains(secret), "{said}");
    }
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test --only fleet"]
async fn a_database_that_is_not_there_is_said_with_what_to_do() {
    let schema = Schema::make().await;
    let url = schema.url();
    let (server, settings) = url.split_once('?').unwrap();
    let (host, _) = server.rsplit_once('/').unwrap();
    let url = format!("{host}/nothing-there?{settings}");
    let error = PostgresStore::open(&url).await.err().unwrap().to_string();
    assert!(error.contains("create the database"), "{error}");
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test --only fleet"]
async fn a_change_given_up_half_way_is_undone_and_blocks_nobody() {
    let schema = Schema::make().await;
    let store: Arc<dyn Database> = Arc::new(schema.open().await);
    for _ in 0..30 {
        let new = (0..20).map(|_| task(TaskType::LocalAgent)).collect();
        let making = store.create_tasks(new);
        // Dropped at any point of the way.
        let _ = tokio::time::timeout(Duration::from_millis(2), making).await;
    }
    let made = in_time(store.create_tasks(vec![task(TaskType::LocalAgent)])).await;
    made.unwrap();
    let all = store.tasks(Default::default()).await.unwrap();
    assert_eq!(all.len() % 20, 1, "each call is whole or undone");
}

/// A task as the first version of the schema has it.
const OLD_TASK: &str = "INSERT INTO tasks (id, task_type, status, subject, metadata, queue, \
     run_anyway, notify, unmet, created_at, updated_at, parent_task_id, authority, lease_owner) \
     VALUES ($1, 'local_agent', $2, 's', '{}', 'local_agent#/p', FALSE, FALSE, 0, 1, 1, $3, \
     '{\"tree\":\"018f2b7a-7c1e-7d3a-8b1a-000000000001\",\"project_root\":\"/p\",\"mode\":\"default\"}', \
     CASE WHEN $2 = 'running' THEN 'old' END)";

/// A process that is frozen or cut off while its changes wait would be given the lock for each.
#[tokio::test]
#[ignore = "needs a server: cargo xtask test --only fleet"]
async fn only_one_change_of_a_process_waits_at_the_server() {
    const TAKE: &str = "SELECT pg_advisory_lock(\
         hashtextextended('codespar writer ' || current_schema(), 0))";
    const FREE: &str = "SELECT pg_advisory_unlock(\
         hashtextextended('codespar writer ' || current_schema(), 0))";
    const WAITING: &str = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' \
         AND NOT granted AND (classid::BIGINT << 32) | objid::BIGINT = \
         hashtextextended('codespar writer ' || current_schema(), 0)";
    let schema = Schema::make().await;
    let store = Arc::new(schema.open().await);
    let task = made(&*store, task(TaskType::LocalAgent)).await;
    let mut other = schema.connection().await;
    other.execute(TAKE).await.unwrap();
    let change = |store: Arc<PostgresStore>| {
        let task = task.clone();
        tokio::spawn(async move { store.send_mail(&task, "me", "hello").await })
    };
    let changes: Vec<_> = (0..5).map(|_| change(store.clone())).collect();
    let mut most = 0;
    for _ in 0..20 {
        let now: i64 = sqlx::query_scalar(WAITING)
            .fetch_one(&mut other)
            .await
            .unwrap();
        most = most.max(now);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(most, 1);
    other.execute(FREE).await.unwrap();
    for change in changes {
        in_time(change).await.unwrap().unwrap();
    }
}

#[tokio::test]
#[ignore = "needs a server: cargo xtask test --only fleet"]
async fn a_process_of_the_version_before_works_beside_the_new_schema() {
    let schema = Schema::make().await;
    let mut old = schema.connection().await;
    let first = include_str!("../migrations/postgres/0001_schema.sql");
    let version = "CREATE TABLE codespar_schema (version BIGINT PRIMARY KEY); \
         INSERT INTO codespar_schema VALUES (1); INSERT INTO runners VALUES ('old', 1, FALSE)";
    for text in [first, version] {
        old.execute(sqlx::raw_sql(text)).await.unwrap();
    }
    let mut insert = async |id: &str, status: &str, parent: Option<&str>| {
        let query = sqlx::query(OLD_TASK).bind(id.to_owned());
        let query = query.bind(status.to_owned());
        let query = query.bind(parent.map(str::to_owned));
        query.execute(&mut old).await.unwrap();
    };
    insert("a-00000001", "running", None).await;
    insert("a-00000002", "pending", None).await;
    insert("a-00000003", "pending", Some("a-00000001")).await;
    let store = in_time(schema.open()).await;
    insert("a-00000004", "pending", None).await;

    let fleet = store.fleet().await.unwrap();
    assert_eq!(fleet.runners[0].running[0].repository, "/p");
    let depths: Vec<_> = fleet.queues.iter().map(|one| one.ready).collect();
    assert_eq!(depths, [3], "all of one repository");
    store
        .set_limit(LimitScope::Repository, "/p", Some(2))
        .await
        .unwrap();
    let taken = claimed(&store, "new", 9).await;
    let taken: Vec<_> = taken
        .iter()
        .map(|task| task.record.task_id.as_str())
        .collect();
    assert_eq!(taken, ["a-00000002", "a-00000003"]);
}
