//! The SQL of questions and changes.

macro_rules! select_question {
    ($which:literal) => {
        concat!(
            "SELECT id, session_id, task_id, project_root, key, request, asked_at, expires_at, status, \
             answer, answered_by, answered_at FROM questions ",
            $which
        )
    };
}

pub(crate) const INSERT_QUESTION: &str = "INSERT INTO questions (id, session_id, task_id, \
     project_root, key, request, asked_at, expires_at, status) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'open')";

pub(crate) const QUESTION: &str = select_question!("WHERE id = $1");

pub(crate) const QUESTION_BY_KEY: &str = select_question!("WHERE session_id = $1 AND key = $2");

pub(crate) const OPEN_QUESTIONS: &str =
    select_question!("WHERE status = 'open' ORDER BY asked_at, id");

pub(crate) const QUESTIONS_OF_SESSION: &str = select_question!("WHERE session_id = $1");

pub(crate) const ANSWER_QUESTION: &str = "UPDATE questions SET status = 'answered', answer = $2, \
     answered_by = $3, answered_at = $4 WHERE id = $1 AND status = 'open'";

pub(crate) const WITHDRAW_QUESTION: &str =
    "UPDATE questions SET status = 'withdrawn' WHERE id = $1 AND status = 'open'";

pub(crate) const NEWEST_CHANGE: &str = "SELECT COALESCE(MAX(seq), 0) FROM changes";

pub(crate) const OLDEST_CHANGE: &str = "SELECT COALESCE(MIN(seq), 0) FROM changes";

pub(crate) const CHANGES: &str = "SELECT seq, kind, session_id, task_id, detail FROM changes \
     WHERE seq > $1 ORDER BY seq LIMIT $2";

pub(crate) const DELETE_OLD_CHANGES: &str = "DELETE FROM changes WHERE seq <= $1";
