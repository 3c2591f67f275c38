-- `offer`: an engine has the task and brings it to a runner; the fencing number at the time is the
-- number of the offer. Null for a task that runners look for themselves.
ALTER TABLE tasks ADD COLUMN offer BIGINT;

CREATE INDEX tasks_by_offer ON tasks (status, offer) WHERE offer IS NOT NULL;
