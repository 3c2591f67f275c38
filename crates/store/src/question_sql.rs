//! The SQL of questions and changes.
//!
//! The statements keep to the dialect that SQLite and PostgreSQL share. A test runs each of them
//! through the query planner and fails if one walks a table (`sqlite/plans`); it counts the
//! constants of this file, so that none is forgotten.

macro_rules! select_question {
    ($which:literal) => {
        concat!(
            "SELECT id, session_id, task_id, project_root, key, request, asked_at, expires_at, status, \
             answer, answered_by, answered_at FROM questions ",
            $which
        )
    };
}

/// The caller has looked for the key first, within the same write transaction.
pub(crate) const INSERT_QUESTION: &str = "INSERT INTO questions (id, session_id, task_id, \
     project_root, key, request, asked_at, expires_at, status) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'open')";

pub(crate) const QUESTION: &str = select_question!("WHERE id = $1");

/// At most one row, whatever its status: the key is unique within a session.
pub(crate) const QUESTION_BY_KEY: &str = select_question!("WHERE session_id = $1 AND key = $2");

pub(crate) const OPEN_QUESTIONS: &str =
    select_question!("WHERE status = 'open' ORDER BY asked_at, id");

pub(crate) const QUESTIONS_OF_SESSION: &str = select_question!("WHERE session_id = $1");

/// Nothing where it is not open any more: the first answer counts.
pub(crate) const ANSWER_QUESTION: &str = "UPDATE questions SET status = 'answered', answer = $2, \
     answered_by = $3, answered_at = $4 WHERE id = $1 AND status = 'open'";

/// Nothing where it was answered or withdrawn before. The schema does the same to the open
/// questions of a task that ends.
pub(crate) const WITHDRAW_QUESTION: &str =
    "UPDATE questions SET status = 'withdrawn' WHERE id = $1 AND status = 'open'";

pub(crate) const NEWEST_CHANGE: &str = "SELECT COALESCE(MAX(seq), 0) FROM changes";

/// 0 where there is none, as for the newest.
pub(crate) const OLDEST_CHANGE: &str = "SELECT COALESCE(MIN(seq), 0) FROM changes";

pub(crate) const CHANGES: &str = "SELECT seq, kind, session_id, task_id, detail FROM changes \
     WHERE seq > $1 ORDER BY seq LIMIT $2";

/// Never to be given the newest place: the table numbers its rows by the largest it holds, and
/// would give that number a second time.
pub(crate) const DELETE_OLD_CHANGES: &str = "DELETE FROM changes WHERE seq <= $1";
