-- `seq` is the order of creation. `unmet` counts the tasks a pending one still waits for. `queue`
-- is the type, and `@runner` where only that runner may take it while it lives; `run_anyway` says
-- that a failed dependency does not matter. Both repeat what `metadata` says, to be found by.
-- `lease_epoch` grows with every claim; a task run by hand has no lease.
CREATE TABLE tasks (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    task_type TEXT NOT NULL,
    status TEXT NOT NULL,
    subject TEXT NOT NULL,
    description TEXT,
    active_form TEXT,
    owner TEXT,
    metadata TEXT NOT NULL,
    queue TEXT NOT NULL,
    run_anyway BOOLEAN NOT NULL,
    output_file TEXT,
    session_id TEXT,
    parent_task_id TEXT,
    notify BOOLEAN NOT NULL,
    unmet BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    started_at BIGINT,
    ended_at BIGINT,
    error TEXT,
    exit_code BIGINT,
    attempt BIGINT NOT NULL DEFAULT 0,
    attempt_before BIGINT NOT NULL DEFAULT 0,
    input_tokens BIGINT NOT NULL DEFAULT 0,
    output_tokens BIGINT NOT NULL DEFAULT 0,
    cache_creation_input_tokens BIGINT NOT NULL DEFAULT 0,
    cache_read_input_tokens BIGINT NOT NULL DEFAULT 0,
    cache_creation_1h_input_tokens BIGINT NOT NULL DEFAULT 0,
    cost_nanos BIGINT NOT NULL DEFAULT 0,
    cost_unknown BOOLEAN NOT NULL DEFAULT FALSE,
    lease_owner TEXT,
    lease_epoch BIGINT NOT NULL DEFAULT 0,
    lease_until BIGINT,
    stop_reason TEXT
);

CREATE INDEX tasks_by_readiness ON tasks (status, unmet, queue, seq);
CREATE INDEX tasks_by_lease ON tasks (status, lease_until);
CREATE INDEX tasks_by_session ON tasks (session_id, seq);
CREATE INDEX tasks_by_parent ON tasks (parent_task_id, seq);
CREATE INDEX tasks_by_end ON tasks (ended_at);

-- A task waits for its blocker until the dependency is settled: the blocker is over, and the
-- task was told.
CREATE TABLE task_deps (
    place INTEGER PRIMARY KEY,
    task_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    blocker TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    settled BOOLEAN NOT NULL,
    UNIQUE (task_id, blocker)
);

CREATE INDEX task_deps_by_blocker ON task_deps (blocker, settled, task_id);

-- Places in mailboxes and among notifications are never given twice: they are what marks a row.
CREATE TABLE mailbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    task_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    sender TEXT NOT NULL,
    body TEXT NOT NULL,
    at BIGINT NOT NULL,
    read_at BIGINT
);

CREATE INDEX mailbox_by_task ON mailbox (task_id, read_at, seq);

CREATE TABLE notifications (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    task_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    attempt BIGINT NOT NULL,
    body TEXT NOT NULL,
    at BIGINT NOT NULL,
    delivered_at BIGINT,
    UNIQUE (task_id, attempt)
);

CREATE INDEX notifications_by_session ON notifications (session_id, delivered_at, seq);

CREATE TABLE path_claims (
    path TEXT NOT NULL PRIMARY KEY,
    task_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE
);

CREATE INDEX path_claims_by_task ON path_claims (task_id);

CREATE TABLE teams (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    name TEXT NOT NULL,
    PRIMARY KEY (session_id, name)
);

CREATE TABLE team_members (
    session_id TEXT NOT NULL,
    team TEXT NOT NULL,
    place BIGINT NOT NULL,
    name TEXT NOT NULL,
    task_id TEXT NOT NULL,
    PRIMARY KEY (session_id, team, place),
    FOREIGN KEY (session_id, team) REFERENCES teams (session_id, name) ON DELETE CASCADE
);

CREATE TABLE runners (
    id TEXT NOT NULL PRIMARY KEY,
    pid BIGINT NOT NULL,
    until BIGINT NOT NULL
);

CREATE INDEX runners_by_life ON runners (until);
