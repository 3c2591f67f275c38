-- Its speaker had no role: it does not count as a turn of the thread.
ALTER TABLE channel_messages ADD COLUMN stranger BOOLEAN NOT NULL DEFAULT FALSE;

CREATE INDEX channel_outbox_by_thread ON channel_outbox (channel, conversation, thread, seq);

-- Nothing could be put into it.
DROP TABLE channel_schedules;

-- What is looked at when its time has come: commands that are run regularly, pull requests that are
-- watched. `body` is JSON.
CREATE TABLE channel_timers (
    id TEXT NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    channel TEXT NOT NULL,
    conversation TEXT NOT NULL,
    thread TEXT NOT NULL,
    body TEXT NOT NULL,
    -- active, paused, ended
    state TEXT NOT NULL,
    next_at BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE INDEX channel_timers_due ON channel_timers (channel, next_at) WHERE state = 'active';
CREATE INDEX channel_timers_by_conversation
    ON channel_timers (channel, conversation, kind, created_at, id);

-- Also when a message is given up.
DROP TRIGGER changes_outbox_moved;

CREATE TRIGGER changes_outbox_moved AFTER UPDATE OF revision, sent_revision, failure
ON channel_outbox
WHEN NEW.revision IS NOT OLD.revision OR NEW.sent_revision IS NOT OLD.sent_revision
    OR NEW.failure IS NOT OLD.failure BEGIN
    INSERT INTO changes (kind, detail) VALUES ('outbox', NEW.channel);
END;

-- When a step was first recorded; not known of earlier ones.
ALTER TABLE task_steps ADD COLUMN at BIGINT;

CREATE TRIGGER steps_have_a_time AFTER INSERT ON task_steps WHEN NEW.at IS NULL BEGIN
    UPDATE task_steps SET at = CAST(unixepoch('subsec') * 1000000 AS INTEGER)
    WHERE task_id = NEW.task_id AND step = NEW.step;
END;
