-- Output of tasks for other hosts than the one that runs them. The comments on what columns mean are
-- in `migrations/sqlite/0012_outputs.sql`. A process of the version before goes on beside this
-- schema; the outputs of its tasks stay on its host.
CREATE TABLE task_outputs (
    task_id TEXT COLLATE "C" NOT NULL PRIMARY KEY REFERENCES tasks (id) ON DELETE CASCADE,
    epoch BIGINT NOT NULL,
    host TEXT COLLATE "C" NOT NULL,
    file TEXT COLLATE "C" NOT NULL,
    length BIGINT NOT NULL DEFAULT 0,
    is_cut BOOLEAN NOT NULL DEFAULT FALSE,
    has_objects BOOLEAN NOT NULL DEFAULT FALSE
);

CREATE TABLE output_pieces (
    task_id TEXT COLLATE "C" NOT NULL REFERENCES task_outputs (task_id) ON DELETE CASCADE,
    at BIGINT NOT NULL,
    length BIGINT NOT NULL,
    bytes BYTEA,
    object TEXT COLLATE "C",
    PRIMARY KEY (task_id, at)
);

CREATE TABLE removed_outputs (
    task_id TEXT COLLATE "C" NOT NULL PRIMARY KEY
);

CREATE FUNCTION keep_removed_output() RETURNS TRIGGER LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO removed_outputs (task_id) VALUES (OLD.task_id) ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;

CREATE TRIGGER outputs_removed AFTER DELETE ON task_outputs
FOR EACH ROW WHEN (OLD.has_objects)
EXECUTE FUNCTION keep_removed_output();
