//! How SQLite would run the queries of tasks.
//!
//! As in `sqlite/plans`, with the scans that are allowed named one by one: lists that are passed
//! in, rows that a recursion makes, and the whole table where all of it is asked for.

use super::{SqliteStore, plan};
use crate::task_sql as sql;

const EVERY: &[&str] = &[
    sql::TASK,
    sql::TASKS_BY_IDS,
    sql::TASKS,
    sql::DEPENDENTS,
    sql::STATUSES,
    sql::BLOCKERS_OF,
    sql::BLOCKED_BY,
    sql::ABOVE,
    sql::WAITS_FOR,
    sql::INSERT_DEPENDENCY,
    sql::WAIT_FOR_MORE,
    sql::CHANGE_TASK,
    sql::BEGIN_BY_HAND,
    sql::READY_QUEUES,
    sql::READY_IN_QUEUE,
    sql::HOLDERS,
    sql::HELD_BY,
    sql::CLAIM,
    sql::NEWS_OF,
    sql::FORGET_TAKE_OVERS,
    sql::RELEASE,
    sql::ASK_TO_STOP,
    sql::END_TASK,
    sql::SET_OUTCOME,
    sql::LET_GO,
    sql::SETTLE_DEPENDENCIES,
    sql::RESTART,
    sql::SETTLE_ALL_OF,
    sql::RECORD_STEP,
    sql::STEPS,
    sql::STEP_TIMES,
    sql::INSERT_MAIL,
    sql::UNREAD,
    sql::HAS_MAIL,
    sql::MARK_READ,
    sql::INSERT_NOTIFICATION,
    sql::WAITING_NOTIFICATIONS,
    sql::MARK_DELIVERED,
    sql::CLAIM_OF_PATH,
    sql::CLAIM_BELOW,
    sql::INSERT_CLAIM,
    sql::DROP_CLAIMS,
    sql::INSERT_TEAM,
    sql::INSERT_MEMBER,
    sql::TEAMS,
    sql::DELETE_TEAM,
    sql::IS_MEMBER,
    sql::IDLE_MEMBERS,
    sql::FREE_ITEMS,
    sql::FREE_ITEM,
    sql::GIVE_BACK_ALL,
    sql::GIVE_BACK,
    sql::ANNOUNCE,
    sql::BEAT,
    sql::RUNNERS,
    sql::IS_WORK_ELSEWHERE,
    sql::MARK_SILENT,
    sql::REAP,
    sql::WITHDRAW,
    sql::OUTSTANDING,
    sql::DELETE_OLD_TASKS,
];

/// What hangs on a row that is deleted is looked up by these.
const TAKEN_ALONG: &[(&str, &str)] = &[
    ("task_deps", "task_id"),
    ("task_deps", "blocker"),
    ("task_steps", "task_id"),
    ("mailbox", "task_id"),
    ("notifications", "task_id"),
    ("notifications", "session_id"),
    ("path_claims", "task_id"),
    ("task_outputs", "task_id"),
    ("output_pieces", "task_id"),
    ("teams", "session_id"),
    ("team_members", "session_id"),
];

#[tokio::test]
async fn no_query_of_tasks_walks_a_table_or_sorts_what_it_does_not_return() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).await.unwrap();
    let written = include_str!("../../task_sql.rs")
        .matches("pub(crate) const ")
        .count();
    // The other four are the beginnings of insertions of many rows, and their widths.
    assert_eq!(EVERY.len() + 4, written, "every query is looked at");
    for &query in EVERY {
        let steps = plan(&store, query).await;
        let walks = |step: &&String| step.starts_with("SCAN") || step.contains("B-TREE");
        let walked: Vec<&str> = steps.iter().filter(walks).map(String::as_str).collect();
        // Lists that are handed in or made on the way are walked; so is the table when all of it
        // is asked for.
        let expected: &[&str] = match query {
            sql::TASKS => &["SCAN tasks"],
            sql::RUNNERS => &["SCAN runners"],
            sql::HOLDERS => &["SCAN holders", "SCAN holders"],
            sql::READY_IN_QUEUE | sql::FORGET_TAKE_OVERS => {
                &["SCAN json_each VIRTUAL TABLE INDEX 1:"]
            }
            sql::TASKS_BY_IDS | sql::STATUSES | sql::BLOCKERS_OF | sql::BLOCKED_BY => {
                &["SCAN json_each VIRTUAL TABLE INDEX 1:"]
            }
            sql::ABOVE => &["SCAN a", "SCAN a"],
            sql::READY_QUEUES => &[
                "SCAN queues",
                "SCAN queues",
                "SCAN task_limits USING COVERING INDEX sqlite_autoindex_task_limits_1",
            ],
            sql::OUTSTANDING | sql::HAS_MAIL | sql::IS_MEMBER | sql::IS_WORK_ELSEWHERE => {
                &["SCAN CONSTANT ROW"]
            }
            _ => &[],
        };
        assert_eq!(walked, expected, "{query}: {steps:#?}");
    }
    for (table, column) in TAKEN_ALONG {
        let query = format!("DELETE FROM {table} WHERE {column} = $1");
        let steps = plan(&store, &query).await.join("\n");
        assert!(steps.starts_with("SEARCH"), "{query}: {steps}");
    }
}

#[tokio::test]
async fn the_hot_path_finds_tasks_by_what_it_takes() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).await.unwrap();
    for (query, step) in [
        (
            sql::READY_IN_QUEUE,
            "SEARCH tasks USING INDEX tasks_by_readiness (status=? AND unmet=? AND queue=?)",
        ),
        (
            sql::HELD_BY,
            "SEARCH tasks USING INDEX tasks_by_lease (status=? AND lease_owner=?)",
        ),
        (
            sql::DEPENDENTS,
            "SEARCH tasks USING INDEX sqlite_autoindex_tasks_1 (id=?)",
        ),
        (
            sql::LET_GO,
            "SEARCH tasks USING INDEX sqlite_autoindex_tasks_1 (id=?)",
        ),
    ] {
        let steps = plan(&store, query).await;
        assert!(steps.iter().any(|found| found == step), "{steps:#?}");
    }
}
