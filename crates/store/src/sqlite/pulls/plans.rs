//! How SQLite would run the queries of pull requests.

use sqlx::{Executor, Row};

use super::super::SqliteStore;
use crate::pull_sql as sql;

const EVERY: &[&str] = &[
    sql::PULL,
    sql::PULLS,
    sql::PULLS_IN_STATE,
    sql::OPEN_PULL_OF_HEAD,
    sql::INSERT_PULL,
    sql::CHANGE_PULL,
    sql::INSERT_REVIEW,
    sql::REVIEW_BY_KEY,
    sql::REVIEWS,
    sql::SET_CHECK,
    sql::CHECKS,
];

#[tokio::test]
async fn no_query_of_pull_requests_walks_a_table_or_sorts() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).await.unwrap();
    let written = include_str!("../../pull_sql.rs")
        .matches("pub(crate) const ")
        .count();
    assert_eq!(EVERY.len(), written, "every query is looked at");
    for &query in EVERY {
        let explained = sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {query}"));
        let mut lease = store.link.lease().await.unwrap();
        let rows = lease.connection.fetch_all(explained).await.unwrap();
        lease.settle(Ok(())).unwrap();
        let steps: Vec<String> = rows.iter().map(|row| row.get("detail")).collect();
        let walked = steps
            .iter()
            .any(|step| step.starts_with("SCAN") || step.contains("B-TREE"));
        assert!(!walked, "{query}: {steps:#?}");
    }
}
