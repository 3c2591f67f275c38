//! The SQL of tokens and reports.
//!
//! A test runs each statement through the query planner (`sqlite/plans`) and counts the constants
//! of this file, so that none is forgotten.

use crate::task_sql::ready_since;

macro_rules! select_token {
    ($which:literal) => {
        concat!(
            "SELECT t.id, t.name, t.role, t.created_at, t.last_used_at, t.revoked_at \
             FROM access_tokens t ",
            $which
        )
    };
}

pub(crate) const INSERT_TOKEN: &str =
    "INSERT INTO access_tokens (id, name, role, hash, created_at) VALUES ($1, $2, $3, $4, $5)";

pub(crate) const TOKENS: &str = select_token!("ORDER BY t.created_at, t.id");

pub(crate) const TOKEN: &str = select_token!("WHERE t.id = $1");

pub(crate) const TOKEN_BY_HASH: &str = select_token!("WHERE t.hash = $1 AND t.revoked_at IS NULL");

pub(crate) const REVOKE_TOKEN: &str =
    "UPDATE access_tokens SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL";

pub(crate) const TOUCH_TOKEN: &str = "UPDATE access_tokens SET last_used_at = $2 \
     WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < $3)";

pub(crate) const DELETE_SESSIONS_OF_TOKEN: &str =
    "DELETE FROM browser_sessions WHERE token_id = $1";

pub(crate) const DELETE_EXPIRED_SESSIONS: &str =
    "DELETE FROM browser_sessions WHERE expires_at <= $1";

pub(crate) const INSERT_BROWSER_SESSION: &str = "INSERT INTO browser_sessions \
     (hash, token_id, created_at, expires_at) VALUES ($1, $2, $3, $4)";

pub(crate) const BROWSER_TOKEN: &str = select_token!(
    "JOIN browser_sessions b ON b.token_id = t.id \
     WHERE b.hash = $1 AND b.expires_at > $2 AND t.revoked_at IS NULL"
);

pub(crate) const DELETE_BROWSER_SESSION: &str = "DELETE FROM browser_sessions WHERE hash = $1";

/// Read off the index `tasks_by_type`, without the rows.
pub(crate) const TASK_COUNTS: &str =
    "SELECT task_type, status, COUNT(*) AS count FROM tasks GROUP BY task_type, status";

/// Only tasks that are ready are looked at. What is on the list of a team waits for a member.
pub(crate) const OLDEST_READY: &str = concat!(
    "SELECT MIN(",
    ready_since!(),
    ") FROM tasks \
     WHERE status = 'pending' AND unmet = 0 AND (queue < 'team:' OR queue >= 'team;')"
);

/// Sessions that were not used since have no call in the time.
pub(crate) const USAGE_OF_SESSIONS: &str = "SELECT u.at / 86400000000 AS day, s.cwd AS directory, \
     u.model AS model, COUNT(*) AS calls, CAST(SUM(u.input_tokens) AS BIGINT) AS input_tokens, \
     CAST(SUM(u.output_tokens) AS BIGINT) AS output_tokens, \
     CAST(SUM(u.cache_creation_input_tokens) AS BIGINT) AS cache_creation_input_tokens, \
     CAST(SUM(u.cache_read_input_tokens) AS BIGINT) AS cache_read_input_tokens, \
     CAST(SUM(u.cache_creation_1h_input_tokens) AS BIGINT) AS cache_creation_1h_input_tokens, \
     CAST(COALESCE(SUM(u.cost_nanos), 0) AS BIGINT) AS cost_nanos, \
     COUNT(*) - COUNT(u.cost_nanos) AS cost_unknown \
     FROM sessions s CROSS JOIN usage u \
     WHERE u.session_id = s.id AND s.updated_at >= $1 AND u.at >= $1 AND u.at < $2 GROUP BY 1, 2, 3 ORDER BY 1, 2, 3";

/// What its agents have on record in their own conversations is taken off; a sum below zero is for
/// the reader to raise.
pub(crate) const USAGE_OF_RUNS: &str = "SELECT t.ended_at / 86400000000 AS day, \
     json_extract(t.authority, '$.project_root') AS directory, \
     json_extract(t.spec, '$.task_model') AS model, COUNT(*) AS calls, \
     CAST(SUM(t.input_tokens - COALESCE(c.input_tokens, 0)) AS BIGINT) AS input_tokens, \
     CAST(SUM(t.output_tokens - COALESCE(c.output_tokens, 0)) AS BIGINT) AS output_tokens, \
     CAST(SUM(t.cache_creation_input_tokens - COALESCE(c.created, 0)) AS BIGINT) \
         AS cache_creation_input_tokens, \
     CAST(SUM(t.cache_read_input_tokens - COALESCE(c.read, 0)) AS BIGINT) AS cache_read_input_tokens, \
     CAST(SUM(t.cache_creation_1h_input_tokens - COALESCE(c.created_1h, 0)) AS BIGINT) \
         AS cache_creation_1h_input_tokens, \
     CAST(SUM(t.cost_nanos - COALESCE(c.cost_nanos, 0)) AS BIGINT) AS cost_nanos, \
     SUM(CASE WHEN t.cost_unknown THEN 1 ELSE 0 END) AS cost_unknown \
     FROM tasks t LEFT JOIN (SELECT parent_task_id, SUM(input_tokens) AS input_tokens, \
         SUM(output_tokens) AS output_tokens, SUM(cache_creation_input_tokens) AS created, \
         SUM(cache_read_input_tokens) AS read, \
         SUM(cache_creation_1h_input_tokens) AS created_1h, SUM(cost_nanos) AS cost_nanos \
         FROM tasks WHERE parent_task_id IS NOT NULL GROUP BY parent_task_id) c \
         ON c.parent_task_id = t.id \
     WHERE t.ended_at >= $1 AND t.ended_at < $2 AND json_extract(t.spec, '$.kind') = 'dev' \
     AND t.input_tokens + t.output_tokens > 0 GROUP BY 1, 2, 3 ORDER BY 1, 2, 3";

/// `$1` is a JSON array of directories. Read off the index by time of use until the limit.
pub(crate) const SESSIONS_UNDER: &str = "SELECT id, title, cwd, model, mode, created_at, \
     updated_at, last_seq, input_tokens, output_tokens, cache_creation_input_tokens, \
     cache_read_input_tokens, cache_creation_1h_input_tokens, cost_nanos, cost_unknown \
     FROM sessions WHERE EXISTS (SELECT 1 FROM json_each($1) \
     WHERE cwd = value OR substr(cwd, 1, length(value) + 1) = value || '/') \
     AND ($2 IS NULL OR (updated_at, id) < (SELECT updated_at, id FROM sessions WHERE id = $2)) \
     ORDER BY updated_at DESC, id DESC LIMIT $3";

pub(crate) const ENTRIES_PAGE: &str = "SELECT seq, id, at, body FROM entries \
     WHERE session_id = $1 AND seq >= $2 ORDER BY seq LIMIT $3";

pub(crate) const FIND_ENTRIES: &str = "SELECT seq, id, at, body FROM entries \
     WHERE session_id = $1 AND body LIKE $2 ESCAPE '\\' ORDER BY seq DESC LIMIT $3";

/// The expression is that of the index.
pub(crate) const TASK_OF_SESSION: &str = "SELECT id FROM tasks WHERE COALESCE( \
     json_extract(spec, '$.agent_session'), json_extract(spec, '$.agent.agent_session')) = $1 \
     LIMIT 1";
