-- Times are microseconds since 1970, money is billionths of a dollar.

CREATE TABLE sessions (
    id TEXT NOT NULL PRIMARY KEY,
    title TEXT,
    cwd TEXT NOT NULL,
    model TEXT NOT NULL,
    mode TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    last_seq BIGINT NOT NULL DEFAULT 0,
    input_tokens BIGINT NOT NULL DEFAULT 0,
    output_tokens BIGINT NOT NULL DEFAULT 0,
    cache_creation_input_tokens BIGINT NOT NULL DEFAULT 0,
    cache_read_input_tokens BIGINT NOT NULL DEFAULT 0,
    cache_creation_1h_input_tokens BIGINT NOT NULL DEFAULT 0,
    cost_nanos BIGINT NOT NULL DEFAULT 0,
    cost_unknown BOOLEAN NOT NULL DEFAULT FALSE
);

CREATE INDEX sessions_by_use ON sessions (updated_at, id);
CREATE INDEX sessions_by_cwd ON sessions (cwd, updated_at, id);

-- `body` is the entry as JSON, in the text it was written in: content blocks go back to their
-- provider byte for byte.
CREATE TABLE entries (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq BIGINT NOT NULL,
    id TEXT NOT NULL,
    at BIGINT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (session_id, seq)
);

-- One row for each call of a model; `cost_nanos` is null when the model has no known price.
CREATE TABLE usage (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq BIGINT NOT NULL,
    model TEXT NOT NULL,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    cache_creation_input_tokens BIGINT NOT NULL,
    cache_read_input_tokens BIGINT NOT NULL,
    cache_creation_1h_input_tokens BIGINT NOT NULL,
    cost_nanos BIGINT,
    at BIGINT NOT NULL,
    PRIMARY KEY (session_id, seq)
);
