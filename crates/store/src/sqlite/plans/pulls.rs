//! How SQLite would run the queries of pull requests.

use super::assert_all_by_index;
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
    assert_all_by_index(EVERY, include_str!("../../pull_sql.rs")).await;
}
