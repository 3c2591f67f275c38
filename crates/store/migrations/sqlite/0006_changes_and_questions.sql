-- What happened, in the order in which it was committed, for those who follow it. A row only points
-- at what changed. Old rows are removed, never the newest: places are not given twice.
CREATE TABLE changes (
    seq INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    session_id TEXT,
    task_id TEXT,
    -- The status of a task, the place of an entry, the id of a question.
    detail TEXT
);

-- A question to a person. `key` tells it from the others of its session: whoever asks again after a
-- crash finds the same question.
CREATE TABLE questions (
    id TEXT NOT NULL PRIMARY KEY,
    -- Not every task that asks has a conversation.
    session_id TEXT NOT NULL,
    task_id TEXT REFERENCES tasks (id) ON DELETE CASCADE,
    project_root TEXT NOT NULL,
    key TEXT NOT NULL,
    request TEXT NOT NULL,
    asked_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    status TEXT NOT NULL,
    answer TEXT,
    answered_by TEXT,
    answered_at BIGINT,
    UNIQUE (session_id, key)
);

CREATE INDEX questions_by_status ON questions (status, asked_at, id);
CREATE INDEX questions_by_task ON questions (task_id, status);

CREATE TRIGGER changes_task_created AFTER INSERT ON tasks BEGIN
    INSERT INTO changes (kind, session_id, task_id, detail)
    VALUES ('task', NEW.session_id, NEW.id, NEW.status);
END;

CREATE TRIGGER changes_task_moved AFTER UPDATE OF status, stop_reason ON tasks
WHEN NEW.status IS NOT OLD.status OR NEW.stop_reason IS NOT OLD.stop_reason BEGIN
    INSERT INTO changes (kind, session_id, task_id, detail)
    VALUES ('task', NEW.session_id, NEW.id, NEW.status);
END;

CREATE TRIGGER changes_entry AFTER INSERT ON entries BEGIN
    INSERT INTO changes (kind, session_id, detail)
    VALUES ('entry', NEW.session_id, NEW.seq);
END;

CREATE TRIGGER changes_mail AFTER INSERT ON mailbox BEGIN
    INSERT INTO changes (kind, task_id) VALUES ('mail', NEW.task_id);
END;

CREATE TRIGGER changes_notification AFTER INSERT ON notifications BEGIN
    INSERT INTO changes (kind, session_id, task_id)
    VALUES ('notification', NEW.session_id, NEW.task_id);
END;

CREATE TRIGGER changes_question_asked AFTER INSERT ON questions BEGIN
    INSERT INTO changes (kind, session_id, task_id, detail)
    VALUES ('question', NEW.session_id, NEW.task_id, NEW.id);
END;

CREATE TRIGGER changes_question_settled AFTER UPDATE OF status ON questions
WHEN NEW.status IS NOT OLD.status BEGIN
    INSERT INTO changes (kind, session_id, task_id, detail)
    VALUES ('question', NEW.session_id, NEW.task_id, NEW.id);
END;

CREATE TRIGGER questions_of_removed_sessions AFTER DELETE ON sessions BEGIN
    DELETE FROM questions WHERE session_id = OLD.id;
END;

-- Nobody waits for an answer to a task that is over.
CREATE TRIGGER questions_of_ended_tasks AFTER UPDATE OF status ON tasks
WHEN NEW.status IN ('completed', 'failed', 'killed') BEGIN
    UPDATE questions SET status = 'withdrawn' WHERE task_id = NEW.id AND status = 'open';
END;
