//! The SQL of channels, in the dialect that SQLite and PostgreSQL share. A test looks at the plan of
//! each statement (`sqlite/plans/channels.rs`).

macro_rules! select_message {
    ($which:literal) => {
        concat!(
            "SELECT seq, identity, channel, conversation, thread, speaker, mentioned, body, state, \
             task_id, work, repository, received_at FROM channel_messages ",
            $which
        )
    };
}

macro_rules! select_outbox {
    ($which:literal) => {
        concat!(
            "SELECT seq, key, channel, conversation, thread, kind, body, revision, sent_revision, \
             message_id, attempts, not_before, failure, created_at FROM channel_outbox ",
            $which
        )
    };
}

macro_rules! select_timer {
    ($which:literal) => {
        concat!(
            "SELECT id, kind, channel, conversation, thread, body, state, next_at \
             FROM channel_timers ",
            $which
        )
    };
}

/// Nothing where the identity is known.
pub(crate) const INSERT_MESSAGE: &str = "INSERT INTO channel_messages (identity, channel, \
     conversation, thread, speaker, mentioned, body, state, received_at) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, 'received', $8) ON CONFLICT (identity) DO NOTHING";

/// A paired delivery brings the mention; what was ignored for lack of it is looked at again.
pub(crate) const MERGE_MENTION: &str = "UPDATE channel_messages SET mentioned = TRUE, \
     state = CASE state WHEN 'ignored' THEN 'received' ELSE state END \
     WHERE identity = $1 AND NOT mentioned RETURNING state";

/// Nothing where somebody has decided on it, or has changed it.
pub(crate) const AMEND_MESSAGE: &str = "UPDATE channel_messages SET body = $3 \
     WHERE identity = $1 AND body = $2 AND state IN ('received', 'ignored')";

pub(crate) const MESSAGE: &str = select_message!("WHERE identity = $1");

pub(crate) const MESSAGE_OF_TASK: &str =
    select_message!("WHERE task_id = $1 AND task_id IS NOT NULL ORDER BY seq LIMIT 1");

pub(crate) const OPEN_MESSAGES: &str = select_message!(
    "WHERE channel = $1 AND state IN ('received', 'queued', 'working') ORDER BY seq"
);

pub(crate) const MESSAGES_OF_THREAD: &str = select_message!(
    "WHERE channel = $1 AND conversation = $2 AND thread = $3 \
     ORDER BY received_at DESC, seq DESC LIMIT $4"
);

/// Writes all fields; the caller has read those that stay.
pub(crate) const CHANGE_MESSAGE: &str = "UPDATE channel_messages SET state = $2, task_id = $3, \
     repository = $4, cost_nanos = COALESCE($5, cost_nanos), handled_at = $6, \
     work = COALESCE($7, work), stranger = (stranger OR $8) WHERE identity = $1";

/// Nothing where a mention was merged after it was looked at.
pub(crate) const IGNORE_MESSAGE: &str = "UPDATE channel_messages SET state = 'ignored', \
     handled_at = $3 WHERE identity = $1 AND mentioned = $2 AND state IN ('received', 'queued')";

/// One that is settled stays as it is.
pub(crate) const MERGE_MESSAGE: &str = "UPDATE channel_messages SET state = 'handled', \
     handled_at = $2 WHERE identity = $1 AND state IN ('received', 'queued')";

pub(crate) const TURNS_OF_THREAD: &str = "SELECT COUNT(*) FROM channel_messages \
     WHERE channel = $1 AND conversation = $2 AND thread = $3 AND received_at >= $4 \
     AND seq <= $5 AND state <> 'ignored' AND NOT stranger";

pub(crate) const TURNS_OF_SPEAKER: &str = "SELECT COUNT(*) FROM channel_messages \
     WHERE channel = $1 AND speaker = $2 AND received_at >= $3 AND seq <= $4 \
     AND state <> 'ignored' AND NOT stranger";

/// Of one who has no role.
pub(crate) const REFUSALS_OF_SPEAKER: &str = "SELECT COUNT(*) FROM channel_messages \
     WHERE channel = $1 AND speaker = $2 AND received_at >= $3 AND stranger";

/// Of all who have no role.
pub(crate) const REFUSALS_IN_THREAD: &str = "SELECT COUNT(*) FROM channel_messages \
     WHERE channel = $1 AND conversation = $2 AND thread = $3 AND received_at >= $4 AND stranger";

/// The last message of a thread whose work is of a kind; `$4` is the beginning of its JSON.
pub(crate) const LAST_WORK: &str = select_message!(
    "WHERE channel = $1 AND conversation = $2 AND thread = $3 AND substr(work, 1, length($4)) = $4 \
     ORDER BY received_at DESC LIMIT 1"
);

/// The cost of work that is under way is that of its task so far. Several messages may have been
/// for one task; the first one bears its cost.
pub(crate) const SPENDING: &str = "SELECT CAST(COALESCE(SUM(COALESCE(m.cost_nanos, t.cost_nanos, 0)), 0) AS BIGINT) \
     FROM channel_messages m LEFT JOIN tasks t ON t.id = m.task_id \
     WHERE m.received_at >= $1 AND ($2 IS NULL OR m.repository = $2)";

pub(crate) const THREAD: &str = "SELECT repository, session_id, pull_request \
     FROM channel_threads WHERE channel = $1 AND conversation = $2 AND thread = $3";

/// What is not given stays. A pull request belongs to a repository: with another one it is dropped.
pub(crate) const BIND_THREAD: &str = "INSERT INTO channel_threads (channel, conversation, thread, \
     repository, session_id, pull_request, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7) \
     ON CONFLICT (channel, conversation, thread) DO UPDATE SET \
     pull_request = CASE WHEN excluded.repository IS NOT NULL \
     AND excluded.repository <> channel_threads.repository THEN excluded.pull_request \
     ELSE COALESCE(excluded.pull_request, channel_threads.pull_request) END, \
     repository = COALESCE(excluded.repository, channel_threads.repository), \
     session_id = COALESCE(excluded.session_id, channel_threads.session_id), \
     updated_at = excluded.updated_at";

pub(crate) const NO_DEFAULT_LINK: &str = "UPDATE channel_links SET is_default = FALSE \
     WHERE channel = $1 AND conversation = $2";

pub(crate) const LINK: &str = "INSERT INTO channel_links (channel, conversation, repository, \
     is_default, linked_by, linked_at) VALUES ($1, $2, $3, TRUE, $4, $5) \
     ON CONFLICT (channel, conversation, repository) DO UPDATE SET is_default = TRUE, \
     linked_by = excluded.linked_by, linked_at = excluded.linked_at";

pub(crate) const UNLINK: &str = "DELETE FROM channel_links \
     WHERE channel = $1 AND conversation = $2 AND repository = $3";

pub(crate) const MAKE_DEFAULT_LINK: &str = "UPDATE channel_links SET is_default = TRUE \
     WHERE channel = $1 AND conversation = $2 AND repository = $3";

/// A conversation has a handful of links, so they are sorted by the caller.
pub(crate) const LINKS: &str = "SELECT repository, is_default, linked_by, linked_at \
     FROM channel_links WHERE channel = $1 AND conversation = $2";

pub(crate) const SET_PERSON: &str = "INSERT INTO channel_people (channel, user_id, role, \
     forge_login, set_by, set_at) VALUES ($1, $2, $3, $4, $5, $6) \
     ON CONFLICT (channel, user_id) DO UPDATE SET role = excluded.role, \
     forge_login = excluded.forge_login, set_by = excluded.set_by, set_at = excluded.set_at";

pub(crate) const REMOVE_PERSON: &str =
    "DELETE FROM channel_people WHERE channel = $1 AND user_id = $2";

pub(crate) const PEOPLE: &str = "SELECT channel, user_id, role, forge_login, set_by \
     FROM channel_people WHERE channel >= $1 ORDER BY channel, user_id";

pub(crate) const PERSON: &str = "SELECT channel, user_id, role, forge_login, set_by \
     FROM channel_people WHERE channel = $1 AND user_id = $2";

/// The next revision where the body differs, and nothing where it does not. Attempts count anew,
/// except that one which may have arrived under no known name stays known as such.
pub(crate) const PUT_OUTBOUND: &str = "INSERT INTO channel_outbox (key, channel, conversation, \
     thread, kind, body, revision, priority, created_at) VALUES ($1, $2, $3, $4, $5, $6, 1, $7, $8) \
     ON CONFLICT (key) DO UPDATE SET body = excluded.body, kind = excluded.kind, \
     revision = channel_outbox.revision + 1, priority = excluded.priority, \
     attempts = CASE WHEN channel_outbox.message_id IS NULL AND channel_outbox.attempts > 0 \
     THEN 1 ELSE 0 END, failure = NULL WHERE channel_outbox.body <> excluded.body";

pub(crate) const OUTBOUND: &str = select_outbox!("WHERE key = $1");

pub(crate) const UNSENT: &str = select_outbox!(
    "WHERE channel = $1 AND sent_revision < revision AND failure IS NULL \
     ORDER BY priority, seq LIMIT 200"
);

pub(crate) const SENT_TO: &str =
    select_outbox!("WHERE channel = $1 AND conversation = $2 ORDER BY seq DESC LIMIT $3");

pub(crate) const SENT_TO_THREAD: &str = select_outbox!(
    "WHERE channel = $1 AND conversation = $2 AND thread = $3 ORDER BY seq DESC LIMIT $4"
);

pub(crate) const OUTBOUND_BY_MESSAGE: &str = select_outbox!(
    "WHERE channel = $1 AND conversation = $2 AND message_id = $3 AND message_id IS NOT NULL"
);

pub(crate) const DELIVERY_BEGUN: &str =
    "UPDATE channel_outbox SET attempts = attempts + 1 WHERE key = $1";

pub(crate) const DELIVERY_SENT: &str = "UPDATE channel_outbox SET sent_revision = $2, \
     message_id = $3, attempts = 0, not_before = 0 WHERE key = $1";

pub(crate) const DELIVERY_SKIPPED: &str =
    "UPDATE channel_outbox SET sent_revision = $2 WHERE key = $1";

pub(crate) const DELIVERY_POSTPONED: &str =
    "UPDATE channel_outbox SET not_before = $2 WHERE key = $1";

pub(crate) const DELIVERY_FAILED: &str = "UPDATE channel_outbox SET failure = $2 WHERE key = $1";

pub(crate) const PUT_TIMER: &str = "INSERT INTO channel_timers (id, kind, channel, conversation, \
     thread, body, state, next_at, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) \
     ON CONFLICT (id) DO UPDATE SET thread = excluded.thread, body = excluded.body, \
     state = excluded.state, next_at = excluded.next_at";

pub(crate) const TIMER: &str = select_timer!("WHERE id = $1");

pub(crate) const TIMERS_OF: &str =
    select_timer!("WHERE channel = $1 AND conversation = $2 AND kind = $3 ORDER BY created_at, id");

pub(crate) const DUE_TIMERS: &str =
    select_timer!("WHERE channel = $1 AND next_at <= $2 AND state = 'active' ORDER BY next_at");

/// Nothing where another process was there first.
pub(crate) const CHANGE_TIMER: &str = "UPDATE channel_timers SET body = $3, state = $4, \
     next_at = $5 WHERE id = $1 AND next_at = $2 AND state = 'active'";

pub(crate) const STOP_TIMER: &str = "UPDATE channel_timers SET state = $2 WHERE id = $1";

pub(crate) const APPEND_AUDIT: &str = "INSERT INTO channel_audit (at, channel, conversation, \
     thread, identity, speaker, role, action, decision, detail, repository, task_id) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";

macro_rules! select_audit {
    ($which:literal) => {
        concat!(
            "SELECT seq, at, channel, conversation, thread, identity, speaker, role, action, \
             decision, detail, repository, task_id FROM channel_audit ",
            $which
        )
    };
}

pub(crate) const AUDIT: &str = select_audit!("WHERE seq > $1 ORDER BY seq LIMIT $2");

pub(crate) const LATEST_AUDIT: &str = select_audit!("WHERE seq < $1 ORDER BY seq DESC LIMIT $2");
