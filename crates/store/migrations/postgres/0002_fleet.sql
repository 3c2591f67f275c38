-- Labels, repositories, users and limits. The comments on what columns mean are in
-- `migrations/sqlite/0010_fleet.sql`. A process of the version before goes on beside this schema.
ALTER TABLE tasks ADD COLUMN labels TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE tasks ADD COLUMN repository TEXT COLLATE "C";
ALTER TABLE tasks ADD COLUMN requested_by TEXT COLLATE "C";

DROP TRIGGER tasks_are_sealed ON tasks;

UPDATE tasks SET repository = COALESCE(json_extract(authority, '$.project_root'), ''),
    queue = CASE WHEN parent_task_id IS NOT NULL AND reserved_for IS NULL
            AND strpos(queue, '#') > 0 AND (queue < 'team:' OR queue >= 'team;')
        THEN substr(queue, 1, strpos(queue, '#') - 1) || '@+||' || substr(queue, strpos(queue, '#'))
        ELSE queue END;

CREATE TRIGGER tasks_are_sealed
BEFORE UPDATE OF task_type, spec, authority, tree, reserved_for, queue, run_anyway, labels,
    repository, requested_by ON tasks
FOR EACH ROW WHEN (NEW.task_type IS DISTINCT FROM OLD.task_type
    OR NEW.spec IS DISTINCT FROM OLD.spec OR NEW.authority IS DISTINCT FROM OLD.authority
    OR NEW.tree IS DISTINCT FROM OLD.tree OR NEW.reserved_for IS DISTINCT FROM OLD.reserved_for
    OR NEW.queue IS DISTINCT FROM OLD.queue OR NEW.run_anyway IS DISTINCT FROM OLD.run_anyway
    OR NEW.labels IS DISTINCT FROM OLD.labels
    OR NEW.repository IS DISTINCT FROM OLD.repository
    OR NEW.requested_by IS DISTINCT FROM OLD.requested_by)
EXECUTE FUNCTION refuse_change('what a task runs, and by whose authority, cannot be changed');

CREATE TABLE task_limits (
    scope TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    max_running BIGINT NOT NULL,
    PRIMARY KEY (scope, name)
);

ALTER TABLE runners ADD COLUMN about TEXT COLLATE "C";
