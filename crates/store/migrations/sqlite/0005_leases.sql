-- A lease is no longer a time: a task is held while its runner's row stands. `beats` counts the
-- signs of life of a runner; `silent` is set by others that have seen none for long enough.
-- `take_overs` counts how often in a row a task was taken over from a lost runner.
DROP INDEX tasks_by_lease;
ALTER TABLE tasks DROP COLUMN lease_until;
ALTER TABLE tasks ADD COLUMN take_overs BIGINT NOT NULL DEFAULT 0;
CREATE INDEX tasks_by_lease ON tasks (status, lease_owner);

DROP TABLE runners;
CREATE TABLE runners (
    id TEXT NOT NULL PRIMARY KEY,
    beats BIGINT NOT NULL,
    silent BOOLEAN NOT NULL
);
