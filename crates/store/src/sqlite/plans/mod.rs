//! Tests that look inside: how SQLite would run our queries, and what a failure leaves behind.
//!
//! Each query is given to `EXPLAIN QUERY PLAN` on an empty database, and its steps are compared
//! with what is allowed for it. A `SCAN` would make a call slower with every session on record,
//! which no test with a handful of rows would show.

use codespar_protocol::{EntryBody, Message, SessionId, SessionMode};

mod channels;
mod outputs;
mod pulls;
mod tasks;

use super::{SqliteStore, script::AppendScript};
use crate::{
    NewSession, Store, StoreError,
    engine::{self, Backend, failure::Failure},
    sql,
};

/// All constants of `sql.rs`. The test counts those in the file, so a new one fails until it stands
/// here.
const EVERY: &[&str] = &[
    sql::INSERT_SESSION,
    sql::SESSION,
    sql::SESSIONS,
    sql::SESSIONS_OF_CWD,
    sql::SET_MODE,
    sql::ENTRIES,
    sql::DELETE_SESSION,
    sql::OLD_SESSIONS,
    sql::DELETE_OLD_SESSION,
];

fn append_script() -> String {
    let mut script = AppendScript::begin();
    script.entry();
    script.entry();
    script.usage();
    script.end();
    script.commit();
    script.text()
}

/// The steps, one line each, as SQLite words them: `SEARCH …` by an index, `SCAN …` through a
/// table.
pub(super) async fn plan(store: &SqliteStore, query: &str) -> Vec<String> {
    let query = sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {query}"));
    let mut work = store.single().await.unwrap();
    let rows = engine::query(query).fetch_all(work.connection()).await;
    let rows = work.settle(rows.map_err(Failure::from)).await.unwrap();
    rows.iter()
        .map(|row| row.try_get("detail").unwrap())
        .collect()
}

/// No query walks a table or sorts; and all that `source` defines are among them.
pub(super) async fn assert_all_by_index(queries: &[&str], source: &str) {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).await.unwrap();
    let written = source.matches("pub(crate) const ").count();
    assert_eq!(queries.len(), written, "every query is looked at");
    for query in queries {
        let steps = plan(&store, query).await;
        let walked = steps
            .iter()
            .any(|step| step.starts_with("SCAN") || step.contains("B-TREE"));
        assert!(!walked, "{query}: {steps:#?}");
    }
}

#[tokio::test]
async fn no_query_walks_a_table_or_sorts() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).await.unwrap();
    let written = include_str!("../../sql.rs")
        .matches("pub(crate) const ")
        .count();
    assert_eq!(EVERY.len(), written, "every query is looked at");
    let append = append_script();
    let statements: Vec<&str> = append.split("; ").collect();
    let [_begin, of_append @ .., _commit] = &statements[..] else {
        panic!("{append}");
    };
    assert_eq!(of_append.len(), 4);
    for &query in EVERY.iter().chain(of_append) {
        let steps = plan(&store, query).await;
        let walks = |step: &&String| !step.starts_with("SEARCH");
        let walked: Vec<&String> = steps.iter().filter(walks).collect();
        // All sessions in order of use are read off the index until the limit.
        let expected: &[&str] = match query {
            sql::SESSIONS => &["SCAN sessions USING INDEX sessions_by_use"],
            _ => &[],
        };
        assert_eq!(walked, expected, "{query}");
    }
    let joined = plan(&store, sql::ENTRIES).await.join("\n");
    assert!(joined.contains("(session_id=? AND seq>?)"), "{joined}");
    // What a deletion takes along by foreign key is found by the same means.
    for child in ["entries", "usage"] {
        let query = format!("DELETE FROM {child} WHERE session_id = $1");
        let steps = plan(&store, &query).await.join("\n");
        assert!(steps.starts_with("SEARCH"), "{steps}");
    }
}

#[tokio::test]
async fn no_query_of_questions_and_changes_walks_a_table() {
    use crate::question_sql as sql;
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).await.unwrap();
    let every = [
        sql::INSERT_QUESTION,
        sql::QUESTION,
        sql::QUESTION_BY_KEY,
        sql::OPEN_QUESTIONS,
        sql::QUESTIONS_OF_SESSION,
        sql::ANSWER_QUESTION,
        sql::WITHDRAW_QUESTION,
        sql::NEWEST_CHANGE,
        sql::OLDEST_CHANGE,
        sql::CHANGES,
        sql::DELETE_OLD_CHANGES,
    ];
    let written = include_str!("../../question_sql.rs")
        .matches("pub(crate) const ")
        .count();
    assert_eq!(every.len(), written, "every query is looked at");
    for query in every {
        for step in plan(&store, query).await {
            assert!(step.starts_with("SEARCH"), "{query}: {step}");
        }
    }
}

#[tokio::test]
async fn reports_and_tokens_are_found_by_their_indexes() {
    use crate::server_sql as sql;
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).await.unwrap();
    let every = [
        sql::INSERT_TOKEN,
        sql::TOKENS,
        sql::TOKEN,
        sql::TOKEN_BY_HASH,
        sql::REVOKE_TOKEN,
        sql::TOUCH_TOKEN,
        sql::DELETE_SESSIONS_OF_TOKEN,
        sql::DELETE_EXPIRED_SESSIONS,
        sql::INSERT_BROWSER_SESSION,
        sql::BROWSER_TOKEN,
        sql::DELETE_BROWSER_SESSION,
        sql::TASK_COUNTS,
        sql::OLDEST_READY,
        sql::USAGE_OF_SESSIONS,
        sql::USAGE_OF_RUNS,
        sql::SESSIONS_UNDER,
        sql::ENTRIES_PAGE,
        sql::FIND_ENTRIES,
        sql::TASK_OF_SESSION,
    ];
    let written = include_str!("../../server_sql.rs")
        .matches("pub(crate) const ")
        .count();
    assert_eq!(every.len(), written, "every query is looked at");
    for query in every {
        let steps = plan(&store, query).await;
        let walked: Vec<&str> = steps
            .iter()
            .map(String::as_str)
            .filter(|step| step.starts_with("SCAN"))
            .collect();
        let expected: &[&str] = match query {
            sql::TOKENS => &["SCAN t USING INDEX access_tokens_by_creation"],
            sql::TASK_COUNTS => &["SCAN tasks USING COVERING INDEX tasks_by_type"],
            // Until the limit.
            sql::SESSIONS_UNDER => &[
                "SCAN sessions USING INDEX sessions_by_use",
                "SCAN json_each EXISTS VIRTUAL TABLE INDEX 1:",
            ],
            _ => &[],
        };
        assert_eq!(walked, expected, "{query}");
    }
}

#[tokio::test]
async fn limits_and_the_fleet_are_found_by_what_runs_and_what_is_ready() {
    use crate::fleet_sql as sql;
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).await.unwrap();
    let every = [
        sql::LIMITS,
        sql::SET_LIMIT,
        sql::REMOVE_LIMIT,
        sql::ADMITTED_BY_QUEUE,
        sql::RUNNERS_ABOUT,
        sql::RUNNING_TASKS,
        sql::READY_BY_KIND,
    ];
    let written = include_str!("../../fleet_sql.rs")
        .matches("pub(crate) const ")
        .count();
    assert_eq!(every.len(), written, "every query is looked at");
    for query in every {
        let steps = plan(&store, query).await;
        let walks = |step: &&String| step.starts_with("SCAN") || step.contains("B-TREE");
        let walked: Vec<&str> = steps.iter().filter(walks).map(String::as_str).collect();
        let expected: &[&str] = match query {
            sql::LIMITS => &["SCAN task_limits USING INDEX sqlite_autoindex_task_limits_1"],
            sql::RUNNERS_ABOUT => &["SCAN runners USING INDEX sqlite_autoindex_runners_1"],
            // Of what is ready, which a report may look at, and of open offers, of which an engine
            // has few.
            sql::ADMITTED_BY_QUEUE | sql::READY_BY_KIND => &["USE TEMP B-TREE FOR GROUP BY"],
            _ => &[],
        };
        assert_eq!(walked, expected, "{query}: {steps:#?}");
    }
}

#[tokio::test]
async fn offers_are_found_by_their_index() {
    use crate::dispatch_sql as sql;
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).await.unwrap();
    let every = [
        sql::OFFERED_BY_QUEUE,
        sql::OFFER,
        sql::HELD_WITHOUT_OFFER,
        sql::OFFERS,
        sql::OFFERED_TASK,
        sql::RUNNING_BY_RUNNER,
        sql::WITHDRAW_OFFERS,
    ];
    let written = include_str!("../../dispatch_sql.rs")
        .matches("pub(crate) const ")
        .count();
    assert_eq!(every.len(), written, "every query is looked at");
    for query in every {
        let steps = plan(&store, query).await;
        assert!(
            !steps.iter().any(|step| step.starts_with("SCAN")),
            "{query}: {steps:#?}"
        );
        let by_offer = steps[0].contains("tasks_by_offer");
        let by_key = steps[0].contains("(id=?)") || steps[0].contains("tasks_by_lease");
        assert!(by_offer || by_key, "{query}: {steps:#?}");
    }
}

#[tokio::test]
async fn working_trees_are_found_by_their_task() {
    use crate::tree_sql as sql;
    let every = [sql::KEEP_TREE, sql::KEPT_TREE, sql::FORGET_TREE];
    assert_all_by_index(&every, include_str!("../../tree_sql.rs")).await;
}

#[tokio::test]
async fn whoever_was_away_for_too_long_is_told_that_changes_are_gone() {
    let dir = tempfile::tempdir().unwrap();
    let (store, id) = store_with_session(dir.path()).await;
    for place in 0..4 {
        store.append(id, place, said("x")).await.unwrap();
    }
    run(&store, "DELETE FROM changes WHERE seq <= 2").await;
    let gone = store.changes(crate::ChangeCursor(1)).await;
    assert!(
        matches!(
            gone,
            Err(StoreError::ChangesForgotten {
                cursor: 1,
                oldest: 3
            })
        ),
        "{gone:?}"
    );
    let after = store.changes(crate::ChangeCursor(2)).await.unwrap();
    assert_eq!(after.len(), 2);
}

fn said(text: &str) -> Vec<EntryBody> {
    vec![EntryBody::User {
        message: Message::user(text),
        synthetic: false,
    }]
}

async fn store_with_session(dir: &std::path::Path) -> (SqliteStore, SessionId) {
    let store = SqliteStore::open(dir).await.unwrap();
    let new = NewSession {
        id: SessionId::new(),
        cwd: "/w".into(),
        model: "m".to_owned(),
        mode: SessionMode::Normal,
    };
    let id = store.create_session(new).await.unwrap().id;
    (store, id)
}

async fn run(store: &SqliteStore, pragma: &'static str) {
    let mut work = store.single().await.unwrap();
    let done = engine::query(pragma).fetch_all(work.connection()).await;
    work.settle(done.map_err(Failure::from)).await.unwrap();
}

#[tokio::test]
async fn a_full_disk_is_said_and_once_there_is_room_work_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let (store, id) = store_with_session(dir.path()).await;
    store.append(id, 0, said("before")).await.unwrap();
    // SQLite's own bound on the file stands in for the disk's; it goes with the connection.
    run(&store, "PRAGMA max_page_count = 1").await;

    let full = store.append(id, 1, said(&"x".repeat(1 << 20))).await;

    let path = dir.path().join("codespar.db");
    assert!(
        matches!(&full, Err(StoreError::DiskFull { path: at }) if *at == path),
        "{full:?}"
    );
    let kept = store.append(id, 1, said("after")).await.unwrap();
    assert_eq!(kept[0].seq, 2);
    assert_eq!(store.entries(id, 1).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_database_that_stays_locked_is_said_to_be_busy_and_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let (store, id) = store_with_session(dir.path()).await;
    let other = SqliteStore::open(dir.path()).await.unwrap();
    run(&store, "PRAGMA busy_timeout = 1").await;
    let blocking = other.change().await.unwrap();

    let busy = store.append(id, 0, said("now")).await;

    assert!(matches!(busy, Err(StoreError::Busy { .. })), "{busy:?}");
    blocking.settle(Ok(())).await.unwrap();
    assert_eq!(store.append(id, 0, said("now")).await.unwrap()[0].seq, 1);
}

#[tokio::test]
async fn an_append_given_up_half_way_leaves_the_store_usable() {
    let dir = tempfile::tempdir().unwrap();
    let (store, id) = store_with_session(dir.path()).await;
    for _ in 0..50 {
        let last = store.session(id).await.unwrap().last_seq;
        tokio::select! {
            biased;
            // The one given up before may come to its end after we looked.
            done = store.append(id, last, said("maybe")) => match done {
                Ok(_) | Err(StoreError::MovedOn { .. }) => {}
                Err(error) => panic!("{error}"),
            },
            () = tokio::task::yield_now() => {}
        }
    }
    let sure = loop {
        let last = store.session(id).await.unwrap().last_seq;
        match store.append(id, last, said("sure")).await {
            Ok(entries) => break entries[0].seq,
            Err(StoreError::MovedOn { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    };
    assert_eq!(
        store.entries(id, 1).await.unwrap().len(),
        usize::try_from(sure).unwrap()
    );
}
