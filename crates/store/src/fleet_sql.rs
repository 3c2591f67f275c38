//! The SQL of limits and of the fleet report.
//!
//! A test runs each statement through the query planner (`sqlite/plans`) and counts the constants
//! of this file.

use crate::task_sql::ready_since;

pub(crate) const LIMITS: &str =
    "SELECT scope, name, max_running FROM task_limits ORDER BY scope, name";

pub(crate) const SET_LIMIT: &str = "INSERT INTO task_limits (scope, name, max_running) \
     VALUES ($1, $2, $3) ON CONFLICT (scope, name) DO UPDATE SET max_running = excluded.max_running";

pub(crate) const REMOVE_LIMIT: &str = "DELETE FROM task_limits WHERE scope = $1 AND name = $2";

/// What has been admitted: what runs, and what an engine has and may begin at any moment. One
/// statement, because of what begins meanwhile two would see neither the offer nor the run.
///
/// Tasks that run by hand have no owner of their lease and are not counted. What runs waits for
/// nothing, so that the index by readiness has all of it.
pub(crate) const ADMITTED_BY_QUEUE: &str = "SELECT queue, COUNT(lease_owner) AS tasks FROM tasks \
     WHERE status = 'running' AND unmet = 0 GROUP BY queue UNION ALL \
     SELECT queue, COUNT(*) AS tasks FROM tasks \
     WHERE offer IS NOT NULL AND status = 'pending' GROUP BY queue";

pub(crate) const RUNNERS_ABOUT: &str = "SELECT id, beats, silent, about FROM runners ORDER BY id";

/// An earlier version that runs beside this one writes no repository.
pub(crate) const RUNNING_TASKS: &str = "SELECT seq, id, lease_owner, task_type, subject, \
     COALESCE(repository, json_extract(authority, '$.project_root')) AS repository, \
     started_at, attempt, take_overs FROM tasks \
     WHERE status = 'running' AND lease_owner > '' ORDER BY lease_owner";

/// What is ready is read off the index by readiness; what is on the list of a team waits for a
/// member.
pub(crate) const READY_BY_KIND: &str = concat!(
    "SELECT task_type, labels, \
     COALESCE(repository, json_extract(authority, '$.project_root')) AS repository, \
     COUNT(*) AS ready, MIN(",
    ready_since!(),
    ") AS oldest FROM tasks \
     WHERE status = 'pending' AND unmet = 0 AND (queue < 'team:' OR queue >= 'team;') \
     GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"
);
