//! How SQLite would run the queries of outputs.

use super::{SqliteStore, plan};
use crate::output_sql as sql;

#[tokio::test]
async fn no_query_of_outputs_walks_a_table() {
    let dir = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(dir.path()).await.unwrap();
    let every = [
        sql::OUTPUT,
        sql::BEGIN_OUTPUT,
        sql::HOLDER,
        sql::LAST_PIECE,
        sql::PUT_PIECE,
        sql::LENGTHEN,
        sql::CUT,
        sql::PIECES,
        sql::REMOVED,
        sql::FORGET_REMOVED,
    ];
    let written = include_str!("../../output_sql.rs")
        .matches("pub(crate) const ")
        .count();
    assert_eq!(every.len(), written, "every query is looked at");
    for query in every {
        let steps = plan(&store, query).await;
        let walks = |step: &&String| step.starts_with("SCAN") || step.contains("B-TREE");
        let walked: Vec<&str> = steps.iter().filter(walks).map(String::as_str).collect();
        // All that are to be removed, in the order of the index until the limit.
        let expected: &[&str] = match query {
            sql::REMOVED => {
                &["SCAN removed_outputs USING COVERING INDEX sqlite_autoindex_removed_outputs_1"]
            }
            _ => &[],
        };
        assert_eq!(walked, expected, "{query}: {steps:#?}");
    }
    let steps = plan(&store, sql::PIECES).await.join("\n");
    let range = "SEARCH output_pieces USING INDEX sqlite_autoindex_output_pieces_1 \
                 (task_id=? AND at>? AND at<?)";
    assert!(steps.contains(range), "{steps}");
}
