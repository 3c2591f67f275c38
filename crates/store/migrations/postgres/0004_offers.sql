-- Tasks that an engine brings to their runners. The comments on what columns mean are in
-- `migrations/sqlite/0011_offers.sql`. A process of the version before goes on beside this schema.
ALTER TABLE tasks ADD COLUMN offer BIGINT;

CREATE INDEX tasks_by_offer ON tasks (status, offer) WHERE offer IS NOT NULL;
