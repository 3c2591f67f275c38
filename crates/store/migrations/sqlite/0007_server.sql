-- Who may use the HTTP API. `hash` is the SHA-256 of the secret in hexadecimal; the secret itself is
-- shown once and kept nowhere. A revoked token stays on record.
CREATE TABLE access_tokens (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    created_at BIGINT NOT NULL,
    last_used_at BIGINT,
    revoked_at BIGINT
);

CREATE INDEX access_tokens_by_creation ON access_tokens (created_at, id);

-- Browsers that signed in with a token. `hash` is that of the cookie's value.
CREATE TABLE browser_sessions (
    hash TEXT NOT NULL PRIMARY KEY,
    token_id TEXT NOT NULL REFERENCES access_tokens (id) ON DELETE CASCADE,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);

CREATE INDEX browser_sessions_by_expiry ON browser_sessions (expires_at);
CREATE INDEX browser_sessions_by_token ON browser_sessions (token_id);

-- The agent task that a conversation belongs to. Queries must have the same expression.
CREATE INDEX tasks_by_agent_session ON tasks (COALESCE(
    json_extract(spec, '$.agent_session'), json_extract(spec, '$.agent.agent_session')));

-- Counted from the index alone.
CREATE INDEX tasks_by_type ON tasks (task_type, status);
