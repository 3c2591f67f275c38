//! The SQL, in the dialect that SQLite and PostgreSQL share.

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

pub(crate) const INSERT_SESSION: &str = "INSERT INTO sessions (id, cwd, model, mode, created_at, updated_at) \
     VALUES ($1, $2, $3, $4, $5, $5) ON CONFLICT (id) DO NOTHING";

pub(crate) const SESSION: &str = select_session!("WHERE id = $1");

pub(crate) const SESSIONS: &str = select_session!("ORDER BY updated_at DESC, id DESC LIMIT $1");

pub(crate) const SESSIONS_OF_CWD: &str =
    select_session!("WHERE cwd = $1 ORDER BY updated_at DESC, id DESC LIMIT $2");

pub(crate) const SET_MODE: &str = "UPDATE sessions SET mode = $2 WHERE id = $1";

/// One statement, so that the session's last place and its entries are of one moment.
pub(crate) const ENTRIES: &str = "SELECT s.last_seq, e.seq, e.id, e.at, e.body FROM sessions s \
     LEFT JOIN entries e ON e.session_id = s.id AND e.seq >= $2 WHERE s.id = $1 ORDER BY e.seq";

pub(crate) const DELETE_SESSION: &str = "DELETE FROM sessions WHERE id = $1";

pub(crate) const OLD_SESSIONS: &str =
    "SELECT id FROM sessions WHERE updated_at < $1 ORDER BY updated_at, id";

pub(crate) const DELETE_OLD_SESSION: &str =
    "DELETE FROM sessions WHERE id = $1 AND updated_at < $2";
