//! The SQL of tasks, in the dialect that SQLite and PostgreSQL share; the schema of PostgreSQL
//! defines `json_each`, which takes lists of ids apart.
//!
//! What the columns mean that a record does not show:
//!
//! ```text
//! seq             order of creation
//! unmet           dependencies that still hold the task back; 0 and pending means ready
//! queue           where runners look (`shared/tasks/queue.rs`), or `team:NAME` for list items
//! lease_owner     the runner that holds it; null also while it runs by hand
//! lease_epoch     the fencing number, one more with every claim
//! attempt_before  the attempt to go back to when a claim is undone
//! take_overs      claims in a row from lost runners
//! offer           the number of its offer, while an engine has it (`dispatch_store.rs`)
//! stop_reason     a stop was asked for while a runner held it
//! settled         (of a dependency) the blocker is over and was subtracted from `unmet`
//! ```
//!
//! Statements check nothing: the functions of `shared/tasks` look at the row first, in the same
//! write transaction, and then change it.

macro_rules! select_task {
    ($which:literal) => {
        concat!(
            "SELECT id, task_type, status, subject, description, active_form, owner, \
             metadata, spec, authority, reserved_for, labels, run_anyway, output_file, session_id, \
             parent_task_id, notify, unmet, created_at, updated_at, started_at, ended_at, error, exit_code, attempt, input_tokens, \
             output_tokens, cache_creation_input_tokens, cache_read_input_tokens, \
             cache_creation_1h_input_tokens, cost_nanos, cost_unknown, lease_owner, lease_epoch, \
             stop_reason FROM tasks ",
            $which
        )
    };
}

/// Since when a task that is ready has been so. It is ready from the start, or from its last change:
/// the end of what it waited for, a restart, or a claim that was undone. A task that waited for
/// nothing and was never begun may have been edited since.
macro_rules! ready_since {
    () => {
        "CASE WHEN attempt = 0 AND lease_epoch = 0 \
         AND NOT EXISTS (SELECT 1 FROM task_deps d WHERE d.task_id = tasks.id) \
         THEN created_at ELSE updated_at END"
    };
}
pub(crate) use ready_since;

pub(crate) const TASK: &str = select_task!("WHERE id = $1");

pub(crate) const TASKS_BY_IDS: &str = select_task!("WHERE id IN (SELECT value FROM json_each($1))");

/// Conditions follow.
pub(crate) const TASKS: &str = select_task!("");

/// The tasks that a task still holds back. Their status is for the caller to look at: asked for
/// here, it tempts the database to walk all that are pending.
pub(crate) const DEPENDENTS: &str = select_task!(
    "WHERE id IN (SELECT task_id FROM task_deps WHERE blocker = $1 AND settled = FALSE)"
);

pub(crate) const STATUSES: &str =
    "SELECT id, status FROM tasks WHERE id IN (SELECT value FROM json_each($1))";

pub(crate) const BLOCKERS_OF: &str = "SELECT place, task_id, blocker FROM task_deps \
     WHERE task_id IN (SELECT value FROM json_each($1))";

pub(crate) const BLOCKED_BY: &str = "SELECT place, task_id, blocker FROM task_deps \
     WHERE blocker IN (SELECT value FROM json_each($1))";

/// Every dependency above a task. The cross joins keep the database on the way up.
///
/// Gives the pairs of task and blocker, the task's own among them.
pub(crate) const ABOVE: &str = "WITH RECURSIVE above (id) AS (SELECT id FROM tasks WHERE id = $1 UNION \
     SELECT d.blocker FROM above a CROSS JOIN task_deps d WHERE d.task_id = a.id) \
     SELECT d.task_id, d.blocker FROM above a CROSS JOIN task_deps d WHERE d.task_id = a.id";

pub(crate) const WAITS_FOR: &str =
    "SELECT blocker FROM task_deps WHERE task_id = $1 AND settled = FALSE";

/// As many rows as are wanted follow, by `rows`.
pub(crate) const INSERT_TASKS: &str = "INSERT INTO tasks (id, task_type, status, subject, \
     description, active_form, owner, metadata, spec, authority, tree, reserved_for, queue, \
     run_anyway, output_file, session_id, parent_task_id, notify, unmet, created_at, updated_at, \
     started_at, attempt, lease_owner, lease_epoch, labels, repository, requested_by) VALUES ";

/// The columns of `INSERT_TASKS`.
pub(crate) const TASK_COLUMNS: usize = 28;

/// As many rows as are wanted follow, by `rows`.
pub(crate) const INSERT_DEPENDENCIES: &str =
    "INSERT INTO task_deps (task_id, blocker, settled) VALUES ";

/// The columns of `INSERT_DEPENDENCIES`.
pub(crate) const DEPENDENCY_COLUMNS: usize = 3;

/// The placeholders of so many rows: `($1, $2), ($3, $4)` for two rows of two columns.
pub(crate) fn rows(rows: usize, columns: usize) -> String {
    let row = |row: usize| {
        let places = (1..=columns).map(|column| format!("${}", row * columns + column));
        format!("({})", places.collect::<Vec<String>>().join(", "))
    };
    (0..rows).map(row).collect::<Vec<String>>().join(", ")
}

/// No row is affected where the task waits for that one already.
pub(crate) const INSERT_DEPENDENCY: &str = "INSERT INTO task_deps (task_id, blocker, settled) \
     VALUES ($1, $2, $3) ON CONFLICT (task_id, blocker) DO NOTHING";

pub(crate) const WAIT_FOR_MORE: &str = "UPDATE tasks SET unmet = unmet + $2 WHERE id = $1";

pub(crate) const CHANGE_TASK: &str = "UPDATE tasks SET subject = $2, description = $3, \
     owner = $4, metadata = $5, updated_at = $6, active_form = $7 WHERE id = $1";

/// By hand: no lease, and whoever had one before is fenced off.
pub(crate) const BEGIN_BY_HAND: &str = "UPDATE tasks SET status = 'running', started_at = $2, \
     updated_at = $2, attempt_before = attempt, \
     attempt = CASE WHEN attempt = 0 THEN 1 ELSE attempt END, lease_epoch = lease_epoch + 1, \
     offer = NULL WHERE id = $1";

/// The queues that have something ready, each found by one step down the index, with their first
/// task; and whether there are limits, so that nobody has to ask where there are none.
pub(crate) const READY_QUEUES: &str = "WITH RECURSIVE queues (queue) AS (\
     SELECT MIN(queue) FROM tasks WHERE status = 'pending' AND unmet = 0 AND offer IS NULL UNION ALL \
     SELECT (SELECT MIN(t.queue) FROM tasks t WHERE t.status = 'pending' AND t.unmet = 0 \
     AND t.offer IS NULL AND t.queue > queues.queue) \
     FROM queues WHERE queues.queue IS NOT NULL) \
     SELECT queue, (SELECT MIN(t.seq) FROM tasks t WHERE t.status = 'pending' AND t.unmet = 0 \
     AND t.offer IS NULL AND t.queue = queues.queue) AS head, \
     EXISTS (SELECT 1 FROM task_limits) AS is_limited \
     FROM queues WHERE queue IS NOT NULL";

/// `$3` is a JSON list of ids to leave out.
pub(crate) const READY_IN_QUEUE: &str = "SELECT seq, id FROM tasks WHERE status = 'pending' \
     AND unmet = 0 AND offer IS NULL AND queue = $1 AND id NOT IN (SELECT value FROM json_each($3)) \
     ORDER BY seq LIMIT $2";

/// The runners that hold something, each found by one step down the index.
pub(crate) const HOLDERS: &str = "WITH RECURSIVE holders (holder) AS (\
     SELECT MIN(lease_owner) FROM tasks WHERE status = 'running' UNION ALL \
     SELECT (SELECT MIN(t.lease_owner) FROM tasks t \
     WHERE t.status = 'running' AND t.lease_owner > holders.holder) \
     FROM holders WHERE holders.holder IS NOT NULL) \
     SELECT holder FROM holders WHERE holder IS NOT NULL";

pub(crate) const HELD_BY: &str = "SELECT seq, id, queue, task_type, take_overs FROM tasks \
     WHERE status = 'running' AND lease_owner = $1";

/// The first attempt is 1. One that is taken over from a lost runner stays the same attempt, and
/// counts as a take-over.
pub(crate) const CLAIM: &str = "UPDATE tasks SET lease_owner = $2, \
     lease_epoch = lease_epoch + 1, updated_at = $3, started_at = COALESCE(started_at, $3), \
     take_overs = CASE WHEN status = 'pending' THEN take_overs ELSE take_overs + 1 END, \
     attempt_before = CASE WHEN status = 'pending' THEN attempt ELSE attempt_before END, \
     attempt = CASE WHEN attempt = 0 THEN 1 ELSE attempt END, status = 'running' \
     WHERE id = $1 RETURNING lease_epoch";

/// What a runner is told with its heartbeat, for all tasks that it holds by the store's word.
pub(crate) const NEWS_OF: &str = "SELECT id, lease_epoch, stop_reason, \
     EXISTS (SELECT 1 FROM mailbox m WHERE m.task_id = tasks.id AND m.read_at IS NULL) \
     AS has_mail FROM tasks WHERE status = 'running' AND lease_owner = $1";

pub(crate) const FORGET_TAKE_OVERS: &str = "UPDATE tasks SET take_overs = 0 \
     WHERE id IN (SELECT value FROM json_each($1)) AND lease_owner = $2 AND take_overs > 0";

/// Undoes a claim: the attempt is not used up. An engine that has the task brings it to another.
pub(crate) const RELEASE: &str = "UPDATE tasks SET status = 'pending', lease_owner = NULL, \
     started_at = NULL, attempt = attempt_before, updated_at = $2 \
     WHERE id = $1";

/// The first reason stays.
pub(crate) const ASK_TO_STOP: &str = "UPDATE tasks SET \
     stop_reason = COALESCE(stop_reason, $2), updated_at = $3 WHERE id = $1";

pub(crate) const END_TASK: &str = "UPDATE tasks SET status = $2, error = $3, ended_at = $4, \
     updated_at = $4, lease_owner = NULL, stop_reason = NULL, offer = NULL WHERE id = $1";

pub(crate) const SET_OUTCOME: &str = "UPDATE tasks SET exit_code = $2, input_tokens = $3, \
     output_tokens = $4, cache_creation_input_tokens = $5, cache_read_input_tokens = $6, \
     cache_creation_1h_input_tokens = $7, cost_nanos = $8, cost_unknown = $9, metadata = $10 \
     WHERE id = $1";

/// A dependency that no longer holds anyone back. `$2` is whether only those go on that run in
/// spite of a failure. Each dependency that is not settled is counted in `unmet`, whatever has
/// become of the task. A pending task that has no other becomes ready, which is a change of it.
pub(crate) const LET_GO: &str = "UPDATE tasks SET unmet = unmet - 1, \
     updated_at = CASE WHEN status = 'pending' AND unmet = 1 THEN $3 ELSE updated_at END \
     WHERE (run_anyway OR NOT $2) AND id IN \
     (SELECT task_id FROM task_deps WHERE blocker = $1 AND settled = FALSE)";

pub(crate) const SETTLE_DEPENDENCIES: &str =
    "UPDATE task_deps SET settled = TRUE WHERE blocker = $1 AND settled = FALSE";

/// The next attempt of a task that is over. Usage and cost stay: they are of all attempts.
pub(crate) const RESTART: &str = "UPDATE tasks SET status = 'pending', attempt = attempt + 1, \
     unmet = 0, started_at = NULL, ended_at = NULL, error = NULL, exit_code = NULL, \
     take_overs = 0, updated_at = $2 WHERE id = $1";

pub(crate) const SETTLE_ALL_OF: &str =
    "UPDATE task_deps SET settled = TRUE WHERE task_id = $1 AND settled = FALSE";

/// A step recorded again keeps its place.
pub(crate) const RECORD_STEP: &str = "INSERT INTO task_steps (task_id, place, step, result) \
     SELECT $1, COALESCE(MAX(place), 0) + 1, $2, $3 FROM task_steps WHERE task_id = $1 \
     ON CONFLICT (task_id, step) DO UPDATE SET result = excluded.result";

pub(crate) const STEPS: &str =
    "SELECT step, result FROM task_steps WHERE task_id = $1 ORDER BY place";

pub(crate) const STEP_TIMES: &str =
    "SELECT step, at FROM task_steps WHERE task_id = $1 AND at IS NOT NULL ORDER BY place";

pub(crate) const INSERT_MAIL: &str =
    "INSERT INTO mailbox (task_id, sender, body, at) VALUES ($1, $2, $3, $4)";

pub(crate) const UNREAD: &str = "SELECT seq, sender, body, at FROM mailbox \
     WHERE task_id = $1 AND read_at IS NULL ORDER BY seq";

pub(crate) const HAS_MAIL: &str =
    "SELECT EXISTS (SELECT 1 FROM mailbox WHERE task_id = $1 AND read_at IS NULL)";

/// No row is affected where it was read before.
pub(crate) const MARK_READ: &str =
    "UPDATE mailbox SET read_at = $2 WHERE seq = $1 AND read_at IS NULL";

/// Nothing where the session is gone.
pub(crate) const INSERT_NOTIFICATION: &str = "INSERT INTO notifications (session_id, task_id, \
     attempt, body, at) SELECT id, $2, $3, $4, $5 FROM sessions WHERE id = $1 \
     ON CONFLICT (task_id, attempt) DO NOTHING";

pub(crate) const WAITING_NOTIFICATIONS: &str = "SELECT seq, task_id, attempt, body \
     FROM notifications WHERE session_id = $1 AND delivered_at IS NULL ORDER BY seq";

pub(crate) const MARK_DELIVERED: &str = "UPDATE notifications SET delivered_at = $2 \
     WHERE seq = $1 AND session_id = $3 AND delivered_at IS NULL";

/// Of another task than `$2`: one does not stand in its own way.
pub(crate) const CLAIM_OF_PATH: &str =
    "SELECT path, task_id FROM path_claims WHERE path = $1 AND task_id <> $2";

/// `$1` and `$2` enclose all that lies below a directory.
pub(crate) const CLAIM_BELOW: &str = "SELECT path, task_id FROM path_claims \
     WHERE path > $1 AND path < $2 AND task_id <> $3 ORDER BY path LIMIT 1";

pub(crate) const INSERT_CLAIM: &str = "INSERT INTO path_claims (path, task_id) VALUES ($1, $2) \
     ON CONFLICT (path) DO NOTHING";

pub(crate) const DROP_CLAIMS: &str = "DELETE FROM path_claims WHERE task_id = $1";

pub(crate) const INSERT_TEAM: &str = "INSERT INTO teams (session_id, name) VALUES ($1, $2) ON CONFLICT (session_id, name) DO NOTHING";

pub(crate) const INSERT_MEMBER: &str = "INSERT INTO team_members (session_id, team, place, name, \
     task_id) VALUES ($1, $2, $3, $4, $5)";

pub(crate) const TEAMS: &str = "SELECT t.name AS team, m.name, m.task_id FROM teams t \
     LEFT JOIN team_members m ON m.session_id = t.session_id AND m.team = t.name \
     WHERE t.session_id = $1 ORDER BY t.name, m.place";

pub(crate) const DELETE_TEAM: &str = "DELETE FROM teams WHERE session_id = $1 AND name = $2";

pub(crate) const IS_MEMBER: &str = "SELECT EXISTS (SELECT 1 FROM team_members WHERE session_id = $1 AND team = $2 AND task_id = $3)";

/// Members that have come to their end, in their order.
pub(crate) const IDLE_MEMBERS: &str = "SELECT m.task_id FROM team_members m \
     CROSS JOIN tasks t WHERE m.session_id = $1 AND m.team = $2 AND t.id = m.task_id \
     AND t.status = 'completed' ORDER BY m.place";

/// What is free on the lists of all teams; their queues are those between `team:` and `team;`.
pub(crate) const FREE_ITEMS: &str = "SELECT id, session_id, queue FROM tasks \
     WHERE status = 'pending' AND unmet = 0 AND queue >= 'team:' AND queue < 'team;' \
     AND owner IS NULL AND session_id IS NOT NULL ORDER BY queue, seq";

pub(crate) const FREE_ITEM: &str = "SELECT id FROM tasks WHERE status = 'pending' \
     AND unmet = 0 AND queue = $2 AND session_id = $1 AND owner IS NULL ORDER BY seq LIMIT 1";

/// All that one member has taken.
pub(crate) const GIVE_BACK_ALL: &str = "UPDATE tasks SET owner = NULL, status = 'pending', \
     started_at = NULL, attempt = attempt_before, updated_at = $4 WHERE session_id = $1 \
     AND queue = $2 AND owner = $3 AND status = 'running'";

pub(crate) const GIVE_BACK: &str = "UPDATE tasks SET status = 'pending', started_at = NULL, \
     attempt = attempt_before, updated_at = $2 WHERE id = $1";

/// Also brings back a runner whose row was removed, with a count from 1.
pub(crate) const ANNOUNCE: &str = "INSERT INTO runners (id, beats, silent) \
     VALUES ($1, 1, FALSE) \
     ON CONFLICT (id) DO UPDATE SET beats = runners.beats + 1, silent = FALSE";

/// The same with what the runner says of itself. One statement: a row is written whole in any case,
/// so looking first whether `about` differs would cost more than it saves.
pub(crate) const BEAT: &str = "INSERT INTO runners (id, beats, silent, about) \
     VALUES ($1, 1, FALSE, $2) ON CONFLICT (id) \
     DO UPDATE SET beats = runners.beats + 1, silent = FALSE, about = excluded.about";

pub(crate) const RUNNERS: &str = "SELECT id, beats, silent FROM runners";

/// What others hold, and what is ready and was not taken: it may be reserved for a process that is
/// about to end. Items on the lists of teams are taken by nobody.
pub(crate) const IS_WORK_ELSEWHERE: &str = "SELECT EXISTS (SELECT 1 FROM tasks \
     WHERE status = 'running' AND lease_owner < $1) \
     OR EXISTS (SELECT 1 FROM tasks WHERE status = 'running' AND lease_owner > $1) \
     OR EXISTS (SELECT 1 FROM tasks WHERE status = 'pending' AND unmet = 0 AND queue < 'team:') \
     OR EXISTS (SELECT 1 FROM tasks WHERE status = 'pending' AND unmet = 0 AND queue >= 'team;')";

/// Nothing where the runner has beaten since it was seen; so for `REAP`.
pub(crate) const MARK_SILENT: &str =
    "UPDATE runners SET silent = TRUE WHERE id = $1 AND beats = $2";

pub(crate) const REAP: &str = "DELETE FROM runners WHERE id = $1 AND beats = $2";

pub(crate) const WITHDRAW: &str = "DELETE FROM runners WHERE id = $1";

/// Items on the lists of teams are left out: nothing runs them, members do.
pub(crate) const OUTSTANDING: &str = "SELECT \
     (SELECT COUNT(*) FROM tasks WHERE status = 'pending' \
     AND (queue < 'team:' OR queue >= 'team;')) AS pending, \
     (SELECT COUNT(*) FROM tasks WHERE status = 'pending' AND unmet = 0 \
     AND (queue < 'team:' OR queue >= 'team;')) AS ready, \
     (SELECT COUNT(*) FROM tasks WHERE status = 'running' \
     AND (queue < 'team:' OR queue >= 'team;')) AS running";

/// Tasks that are not over have no end and stay. All that refers to a task goes by foreign key.
pub(crate) const DELETE_OLD_TASKS: &str = "DELETE FROM tasks WHERE ended_at < $1 RETURNING seq, id";
