-- Output of tasks for other hosts than the one that runs them. Written only where records are shared
-- between hosts, so with SQLite the tables stay empty.
--
-- `epoch`: the attempt that writes. `host`, `file`: where it writes first. `length`: bytes that are
-- here, in pieces without gaps. `is_cut`: there is more, in that file alone.
CREATE TABLE task_outputs (
    task_id TEXT NOT NULL PRIMARY KEY REFERENCES tasks (id) ON DELETE CASCADE,
    epoch BIGINT NOT NULL,
    host TEXT NOT NULL,
    file TEXT NOT NULL,
    length BIGINT NOT NULL DEFAULT 0,
    is_cut BOOLEAN NOT NULL DEFAULT FALSE,
    has_objects BOOLEAN NOT NULL DEFAULT FALSE
);

-- A piece is here (`bytes`) or in the object store under the name `object`.
CREATE TABLE output_pieces (
    task_id TEXT NOT NULL REFERENCES task_outputs (task_id) ON DELETE CASCADE,
    at BIGINT NOT NULL,
    length BIGINT NOT NULL,
    bytes BLOB,
    object TEXT,
    PRIMARY KEY (task_id, at)
);

-- Tasks that are gone and whose objects are to be removed.
CREATE TABLE removed_outputs (
    task_id TEXT NOT NULL PRIMARY KEY
);

CREATE TRIGGER outputs_removed AFTER DELETE ON task_outputs WHEN OLD.has_objects
BEGIN
    INSERT INTO removed_outputs (task_id) VALUES (OLD.task_id) ON CONFLICT DO NOTHING;
END;
