//! The SQL of offers to an engine (`offer` in `task_sql.rs`). What is offered is bounded, by what runs
//! and by a window of what waits, so all of it may be read.

/// What waits in the hands of the engine, by what its windows are of.
pub(crate) const OFFERED_BY_QUEUE: &str = "SELECT queue, COUNT(*) AS tasks FROM tasks \
     WHERE offer IS NOT NULL AND status = 'pending' GROUP BY queue";

pub(crate) const OFFER: &str = "UPDATE tasks SET offer = lease_epoch WHERE id = $1 RETURNING offer";

/// What a runner has that no open offer is for: it had it without an engine, or began the offer that
/// there was.
pub(crate) const HELD_WITHOUT_OFFER: &str = "SELECT id, queue FROM tasks \
     WHERE status = 'running' AND lease_owner = $1 AND (offer IS NULL OR offer < lease_epoch)";

/// Offers, in order of creation, with whoever has begun them.
pub(crate) const OFFERS: &str = "SELECT seq, id, task_type, labels, offer, lease_owner FROM tasks \
     WHERE offer IS NOT NULL AND status IN ('pending', 'running') ORDER BY seq";

/// One of them, to be begun.
pub(crate) const OFFERED_TASK: &str = "SELECT id, task_type, status, offer, lease_owner, take_overs \
     FROM tasks WHERE id = $1";

/// By type, because that decides about the places that tasks take. Tasks that run by hand have no
/// owner of their lease.
pub(crate) const RUNNING_BY_RUNNER: &str = "SELECT lease_owner, task_type, COUNT(*) AS tasks \
     FROM tasks WHERE status = 'running' AND lease_owner > '' GROUP BY lease_owner, task_type";

pub(crate) const WITHDRAW_OFFERS: &str =
    "UPDATE tasks SET offer = NULL WHERE offer IS NOT NULL AND status = 'pending'";
