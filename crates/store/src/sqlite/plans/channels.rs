//! How SQLite would run the queries of channels.

use super::assert_all_by_index;
use crate::channel_sql as sql;

const EVERY: &[&str] = &[
    sql::INSERT_MESSAGE,
    sql::MERGE_MENTION,
    sql::AMEND_MESSAGE,
    sql::MESSAGE,
    sql::MESSAGE_OF_TASK,
    sql::OPEN_MESSAGES,
    sql::MESSAGES_OF_THREAD,
    sql::CHANGE_MESSAGE,
    sql::IGNORE_MESSAGE,
    sql::MERGE_MESSAGE,
    sql::TURNS_OF_THREAD,
    sql::TURNS_OF_SPEAKER,
    sql::REFUSALS_OF_SPEAKER,
    sql::REFUSALS_IN_THREAD,
    sql::LAST_WORK,
    sql::SPENDING,
    sql::THREAD,
    sql::BIND_THREAD,
    sql::NO_DEFAULT_LINK,
    sql::LINK,
    sql::UNLINK,
    sql::MAKE_DEFAULT_LINK,
    sql::LINKS,
    sql::SET_PERSON,
    sql::REMOVE_PERSON,
    sql::PEOPLE,
    sql::PERSON,
    sql::PUT_OUTBOUND,
    sql::OUTBOUND,
    sql::UNSENT,
    sql::SENT_TO,
    sql::SENT_TO_THREAD,
    sql::OUTBOUND_BY_MESSAGE,
    sql::DELIVERY_BEGUN,
    sql::DELIVERY_SENT,
    sql::DELIVERY_SKIPPED,
    sql::DELIVERY_POSTPONED,
    sql::DELIVERY_FAILED,
    sql::PUT_TIMER,
    sql::TIMER,
    sql::TIMERS_OF,
    sql::DUE_TIMERS,
    sql::CHANGE_TIMER,
    sql::STOP_TIMER,
    sql::APPEND_AUDIT,
    sql::AUDIT,
    sql::LATEST_AUDIT,
];

#[tokio::test]
async fn no_query_of_channels_walks_a_table_or_sorts() {
    assert_all_by_index(EVERY, include_str!("../../channel_sql.rs")).await;
}
