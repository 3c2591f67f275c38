-- A message of a person, stored before it is acknowledged. `identity` is what the platform knows it
-- by: the same message that is delivered twice is one row.
CREATE TABLE channel_messages (
    seq INTEGER PRIMARY KEY,
    identity TEXT NOT NULL UNIQUE,
    channel TEXT NOT NULL,
    conversation TEXT NOT NULL,
    thread TEXT NOT NULL,
    speaker TEXT NOT NULL,
    mentioned BOOLEAN NOT NULL,
    -- JSON, as it was when it was first received: later edits do not count.
    body TEXT NOT NULL,
    -- received, queued, working, handled, ignored
    state TEXT NOT NULL,
    -- Chosen before the task is made, so that a restart finds the same one.
    task_id TEXT,
    -- JSON: what was decided to be done, so that a restart does not decide again.
    work TEXT,
    repository TEXT,
    cost_nanos BIGINT,
    received_at BIGINT NOT NULL,
    handled_at BIGINT
);

CREATE INDEX channel_messages_open ON channel_messages (channel, seq)
    WHERE state IN ('received', 'queued', 'working');
CREATE INDEX channel_messages_by_task ON channel_messages (task_id) WHERE task_id IS NOT NULL;
CREATE INDEX channel_messages_by_thread
    ON channel_messages (channel, conversation, thread, received_at);
CREATE INDEX channel_messages_by_speaker ON channel_messages (channel, speaker, received_at);
CREATE INDEX channel_messages_by_time ON channel_messages (received_at);

CREATE TABLE channel_threads (
    channel TEXT NOT NULL,
    conversation TEXT NOT NULL,
    thread TEXT NOT NULL,
    repository TEXT,
    session_id TEXT,
    pull_request BIGINT,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (channel, conversation, thread)
);

CREATE TABLE channel_links (
    channel TEXT NOT NULL,
    conversation TEXT NOT NULL,
    repository TEXT NOT NULL,
    is_default BOOLEAN NOT NULL,
    linked_by TEXT NOT NULL,
    linked_at BIGINT NOT NULL,
    PRIMARY KEY (channel, conversation, repository)
);

CREATE TABLE channel_people (
    channel TEXT NOT NULL,
    user_id TEXT NOT NULL,
    role TEXT,
    forge_login TEXT,
    set_by TEXT NOT NULL,
    set_at BIGINT NOT NULL,
    PRIMARY KEY (channel, user_id)
);

-- A message to people. `revision` grows with each change of the body; what was sent of it is in
-- `sent_revision`, and `message_id` is the platform's name for it, so that a restart edits the same.
CREATE TABLE channel_outbox (
    seq INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    channel TEXT NOT NULL,
    conversation TEXT NOT NULL,
    thread TEXT NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    revision BIGINT NOT NULL,
    sent_revision BIGINT NOT NULL DEFAULT 0,
    message_id TEXT,
    priority BIGINT NOT NULL,
    not_before BIGINT NOT NULL DEFAULT 0,
    attempts BIGINT NOT NULL DEFAULT 0,
    -- Why it is not tried again.
    failure TEXT,
    created_at BIGINT NOT NULL
);

CREATE INDEX channel_outbox_due ON channel_outbox (channel, priority, seq)
    WHERE sent_revision < revision AND failure IS NULL;
CREATE INDEX channel_outbox_by_conversation ON channel_outbox (channel, conversation, seq);
CREATE INDEX channel_outbox_by_message ON channel_outbox (channel, conversation, message_id)
    WHERE message_id IS NOT NULL;

CREATE TABLE channel_schedules (
    id TEXT NOT NULL PRIMARY KEY,
    channel TEXT NOT NULL,
    conversation TEXT NOT NULL,
    thread TEXT NOT NULL,
    speaker TEXT NOT NULL,
    times TEXT NOT NULL,
    command TEXT NOT NULL,
    next_at BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE INDEX channel_schedules_due ON channel_schedules (next_at);
CREATE INDEX channel_schedules_by_conversation
    ON channel_schedules (channel, conversation, created_at, id);

-- Who asked for what, with which rights, and what came of it.
CREATE TABLE channel_audit (
    seq INTEGER PRIMARY KEY,
    at BIGINT NOT NULL,
    channel TEXT NOT NULL,
    conversation TEXT NOT NULL,
    thread TEXT NOT NULL,
    identity TEXT NOT NULL,
    speaker TEXT NOT NULL,
    role TEXT,
    action TEXT NOT NULL,
    decision TEXT NOT NULL,
    detail TEXT NOT NULL,
    repository TEXT,
    task_id TEXT
);

CREATE TRIGGER channel_audit_is_not_changed BEFORE UPDATE ON channel_audit BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;

CREATE TRIGGER channel_audit_is_not_deleted BEFORE DELETE ON channel_audit BEGIN
    SELECT RAISE(ABORT, 'the audit log is append-only');
END;

CREATE TRIGGER changes_inbound AFTER INSERT ON channel_messages BEGIN
    INSERT INTO changes (kind, detail) VALUES ('inbound', NEW.channel);
END;

CREATE TRIGGER changes_inbound_moved AFTER UPDATE OF state ON channel_messages
WHEN NEW.state IS NOT OLD.state BEGIN
    INSERT INTO changes (kind, detail) VALUES ('inbound', NEW.channel);
END;

CREATE TRIGGER changes_outbox_put AFTER INSERT ON channel_outbox BEGIN
    INSERT INTO changes (kind, detail) VALUES ('outbox', NEW.channel);
END;

CREATE TRIGGER changes_outbox_moved AFTER UPDATE OF revision, sent_revision ON channel_outbox
WHEN NEW.revision IS NOT OLD.revision OR NEW.sent_revision IS NOT OLD.sent_revision BEGIN
    INSERT INTO changes (kind, detail) VALUES ('outbox', NEW.channel);
END;

CREATE TRIGGER changes_step AFTER INSERT ON task_steps BEGIN
    INSERT INTO changes (kind, task_id, detail) VALUES ('step', NEW.task_id, NEW.step);
END;
