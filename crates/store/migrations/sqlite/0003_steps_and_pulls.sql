-- What the steps of a task gave, as JSON, in the order they were first recorded in.
CREATE TABLE task_steps (
    task_id TEXT NOT NULL REFERENCES tasks (id) ON DELETE CASCADE,
    place BIGINT NOT NULL,
    step TEXT NOT NULL,
    result TEXT NOT NULL,
    PRIMARY KEY (task_id, place),
    UNIQUE (task_id, step)
);

-- Pull requests of repositories that have no forge but us. Numbers begin at 1 in each.
CREATE TABLE pulls (
    repository TEXT NOT NULL,
    number BIGINT NOT NULL,
    title TEXT NOT NULL,
    body TEXT NOT NULL,
    state TEXT NOT NULL,
    draft BOOLEAN NOT NULL,
    head TEXT NOT NULL,
    head_commit TEXT NOT NULL,
    base TEXT NOT NULL,
    author TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    merge_commit TEXT,
    PRIMARY KEY (repository, number)
);

CREATE UNIQUE INDEX pulls_open_by_head ON pulls (repository, head) WHERE state = 'open';
CREATE INDEX pulls_by_state ON pulls (repository, state, number);

-- `comments` is a JSON array.
CREATE TABLE pull_reviews (
    repository TEXT NOT NULL,
    number BIGINT NOT NULL,
    place BIGINT NOT NULL,
    key TEXT NOT NULL,
    author TEXT NOT NULL,
    verdict TEXT NOT NULL,
    body TEXT NOT NULL,
    comments TEXT NOT NULL,
    commit_id TEXT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (repository, number, place),
    UNIQUE (repository, number, key),
    FOREIGN KEY (repository, number) REFERENCES pulls (repository, number) ON DELETE CASCADE
);

CREATE TABLE commit_checks (
    repository TEXT NOT NULL,
    commit_id TEXT NOT NULL,
    name TEXT NOT NULL,
    state TEXT NOT NULL,
    summary TEXT,
    url TEXT,
    at BIGINT NOT NULL,
    PRIMARY KEY (repository, commit_id, name)
);
