-- What an agent has changed in a working tree of its own, after its last step. `base`, `head` and
-- `tree` are names of git objects; `pack` has those that a clone with `base` lacks, `missing` says
-- why there is none.
CREATE TABLE task_trees (
    task_id TEXT NOT NULL PRIMARY KEY REFERENCES tasks (id) ON DELETE CASCADE,
    base TEXT NOT NULL,
    head TEXT NOT NULL,
    tree TEXT NOT NULL,
    pack BLOB,
    missing TEXT
);
