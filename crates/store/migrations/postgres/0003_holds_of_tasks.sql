-- Under which lease of a task a session is held: the agent of a later lease may end that hold, whose
-- process is frozen or cut off. Null for a hold that is no task's.
ALTER TABLE sessions ADD COLUMN held_for_task TEXT COLLATE "C";
ALTER TABLE sessions ADD COLUMN held_under_epoch BIGINT;
