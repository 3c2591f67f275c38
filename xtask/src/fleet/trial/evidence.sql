-- What the server saw, in the order of commits: who changed a task, wrote to a conversation, took a
-- conversation. The lock is the one that orders the changes of the store (`record_change`): it is the
-- last one that a transaction takes.
CREATE TABLE trial_log (
    place BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at BIGINT NOT NULL,
    what TEXT NOT NULL,
    subject TEXT NOT NULL,
    status TEXT,
    owner TEXT,
    owner_before TEXT,
    number BIGINT,
    -- The address that the connection came from.
    writer TEXT
);

CREATE FUNCTION trial_note(what TEXT, subject TEXT, status TEXT, owner TEXT, owner_before TEXT,
    number BIGINT, home TEXT) RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('codespar changes ' || home, 0));
    INSERT INTO trial_log (at, what, subject, status, owner, owner_before, number, writer)
    VALUES ((extract(epoch FROM clock_timestamp()) * 1000000)::BIGINT, what, subject, status, owner,
        owner_before, number, host(inet_client_addr()));
END $$;

CREATE FUNCTION trial_task() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    PERFORM trial_note('task', NEW.id, NEW.status, NEW.lease_owner, OLD.lease_owner,
        NEW.lease_epoch, TG_TABLE_SCHEMA);
    RETURN NULL;
END $$;

CREATE CONSTRAINT TRIGGER trial_task AFTER UPDATE ON tasks
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
WHEN (NEW.status IS DISTINCT FROM OLD.status OR NEW.lease_owner IS DISTINCT FROM OLD.lease_owner
    OR NEW.lease_epoch IS DISTINCT FROM OLD.lease_epoch)
EXECUTE FUNCTION trial_task();

CREATE FUNCTION trial_stop() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    PERFORM trial_note('stop', NEW.id, NEW.status, NULL, NULL, NULL, TG_TABLE_SCHEMA);
    RETURN NULL;
END $$;

CREATE CONSTRAINT TRIGGER trial_stop AFTER UPDATE ON tasks
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
WHEN (NEW.stop_reason IS NOT NULL AND OLD.stop_reason IS NULL)
EXECUTE FUNCTION trial_stop();

CREATE FUNCTION trial_entry() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    PERFORM trial_note('entry', NEW.session_id, NULL, NULL, NULL, NEW.seq, TG_TABLE_SCHEMA);
    RETURN NULL;
END $$;

CREATE CONSTRAINT TRIGGER trial_entry AFTER INSERT ON entries
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
EXECUTE FUNCTION trial_entry();

CREATE FUNCTION trial_hold() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    PERFORM trial_note('hold', NEW.id, NULL, NEW.held_for_task, NULL, NEW.held_under_epoch,
        TG_TABLE_SCHEMA);
    RETURN NULL;
END $$;

CREATE CONSTRAINT TRIGGER trial_hold AFTER UPDATE ON sessions
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
WHEN (NEW.hold_epoch IS DISTINCT FROM OLD.hold_epoch)
EXECUTE FUNCTION trial_hold();

CREATE FUNCTION trial_notification() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    PERFORM trial_note('notification', NEW.task_id, NULL, NULL, NULL, NEW.attempt, TG_TABLE_SCHEMA);
    RETURN NULL;
END $$;

CREATE CONSTRAINT TRIGGER trial_notification AFTER INSERT ON notifications
DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
EXECUTE FUNCTION trial_notification();
