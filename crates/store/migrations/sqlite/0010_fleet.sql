-- `labels`: what a runner must offer, sorted, with commas between. `repository`: the name that the
-- authority has, else the project root. `requested_by`: who asked for the task. The name of the
-- queue repeats all of it (`shared/tasks/queue.rs`), to be found by.
ALTER TABLE tasks ADD COLUMN labels TEXT NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN repository TEXT;
ALTER TABLE tasks ADD COLUMN requested_by TEXT;

UPDATE tasks SET repository = COALESCE(CASE WHEN json_valid(authority)
    THEN json_extract(authority, '$.project_root') END, '');

-- What another task made is admitted with it: limits do not count it.
DROP TRIGGER tasks_are_sealed;

UPDATE tasks SET queue = substr(queue, 1, instr(queue, '#') - 1) || '@+||'
    || substr(queue, instr(queue, '#'))
WHERE parent_task_id IS NOT NULL AND reserved_for IS NULL AND instr(queue, '#') > 0
    AND (queue < 'team:' OR queue >= 'team;');

CREATE TRIGGER tasks_are_sealed
BEFORE UPDATE OF task_type, spec, authority, tree, reserved_for, queue, run_anyway, labels,
    repository, requested_by ON tasks
WHEN NEW.task_type IS NOT OLD.task_type OR NEW.spec IS NOT OLD.spec
    OR NEW.authority IS NOT OLD.authority OR NEW.tree IS NOT OLD.tree
    OR NEW.reserved_for IS NOT OLD.reserved_for OR NEW.queue IS NOT OLD.queue
    OR NEW.run_anyway IS NOT OLD.run_anyway OR NEW.labels IS NOT OLD.labels
    OR NEW.repository IS NOT OLD.repository OR NEW.requested_by IS NOT OLD.requested_by
BEGIN
    SELECT RAISE(ABORT, 'what a task runs, and by whose authority, cannot be changed');
END;

-- How many tasks run at once. `scope` is all, repository, user or labels; an empty name of a
-- repository or user is for each that has no limit of its own.
CREATE TABLE task_limits (
    scope TEXT NOT NULL,
    name TEXT NOT NULL,
    max_running BIGINT NOT NULL,
    PRIMARY KEY (scope, name)
);

-- What the process says of itself, as JSON.
ALTER TABLE runners ADD COLUMN about TEXT;
