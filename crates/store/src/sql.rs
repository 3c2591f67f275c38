//! The SQL, in the dialect that SQLite and PostgreSQL share.
//!
//! Arguments are numbered (`$1`), which both databases take. Times are microseconds since 1970,
//! money is billionths of a dollar. What an append writes is put together in `sqlite/script.rs`.
//!
//! A test runs each statement through the query planner and counts the constants of this file
//! (`sqlite/plans`): none may walk a table or sort.

macro_rules! select_session {
    ($which:literal) => {
        concat!(
            "SELECT id, title, cwd, model, mode, created_at, updated_at, last_seq, input_tokens, \
             output_tokens, cache_creation_input_tokens, cache_read_input_tokens, \
             cache_creation_1h_input_tokens, cost_nanos, cost_unknown FROM sessions ",
            $which
        )
    };
}

/// No row is affected where the id is taken.
pub(crate) const INSERT_SESSION: &str = "INSERT INTO sessions (id, cwd, model, mode, created_at, updated_at) \
     VALUES ($1, $2, $3, $4, $5, $5) ON CONFLICT (id) DO NOTHING";

pub(crate) const SESSION: &str = select_session!("WHERE id = $1");

/// Read off the index by time of use until the limit. The id decides between sessions of one
/// moment, so that the order is the same every time.
pub(crate) const SESSIONS: &str = select_session!("ORDER BY updated_at DESC, id DESC LIMIT $1");

pub(crate) const SESSIONS_OF_CWD: &str =
    select_session!("WHERE cwd = $1 ORDER BY updated_at DESC, id DESC LIMIT $2");

pub(crate) const SET_MODE: &str = "UPDATE sessions SET mode = $2 WHERE id = $1";

/// One statement, so that the session's last place and its entries are of one moment.
pub(crate) const ENTRIES: &str = "SELECT s.last_seq, e.seq, e.id, e.at, e.body FROM sessions s \
     LEFT JOIN entries e ON e.session_id = s.id AND e.seq >= $2 WHERE s.id = $1 ORDER BY e.seq";

/// Entries, usage, notifications and teams go by foreign key, questions by a trigger.
pub(crate) const DELETE_SESSION: &str = "DELETE FROM sessions WHERE id = $1";

pub(crate) const OLD_SESSIONS: &str =
    "SELECT id FROM sessions WHERE updated_at < $1 ORDER BY updated_at, id";

/// Asks for the age again: the session may have been used since it was listed.
pub(crate) const DELETE_OLD_SESSION: &str =
    "DELETE FROM sessions WHERE id = $1 AND updated_at < $2";
