-- What an agent has changed in a working tree of its own, after its last step. `base`, `head` and
-- `tree` are names of git objects; `pack` has those that a clone with `base` lacks, `missing` says
-- why there is none.
CREATE TABLE task_trees (
    task_id TEXT COLLATE "C" NOT NULL PRIMARY KEY REFERENCES tasks (id) ON DELETE CASCADE,
    base TEXT COLLATE "C" NOT NULL,
    head TEXT COLLATE "C" NOT NULL,
    tree TEXT COLLATE "C" NOT NULL,
    pack BYTEA,
    missing TEXT COLLATE "C"
);
-- Packs are compressed already.
ALTER TABLE task_trees ALTER COLUMN pack SET STORAGE EXTERNAL;
