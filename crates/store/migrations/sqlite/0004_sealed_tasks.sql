-- What a task runs (`spec`) and by whose authority (`authority`), as JSON, apart from the metadata
-- that anyone may change. `tree` repeats the session at the top, to be found by. `reserved_for` is
-- the runner that alone takes the task while it lives. `queue` is `type[@runner]#project root`:
-- a process takes from the queues of its own project. Nothing changes these once they are written.
ALTER TABLE tasks ADD COLUMN spec TEXT;
ALTER TABLE tasks ADD COLUMN authority TEXT;
ALTER TABLE tasks ADD COLUMN tree TEXT;
ALTER TABLE tasks ADD COLUMN reserved_for TEXT;

CREATE INDEX tasks_by_tree ON tasks (tree, seq);

-- Earlier versions kept all of it in the metadata. What is not whole there does not become a spec:
-- the task stays on record and cannot run.
UPDATE tasks SET
    reserved_for = json_extract(metadata, '$.runner_only'),
    spec = CASE
        WHEN task_type = 'local_bash' THEN json_set(metadata, '$.kind', 'shell')
        WHEN task_type = 'local_agent' THEN json_set(metadata, '$.kind', 'agent')
        WHEN task_type = 'remote_agent' THEN json_set(metadata, '$.kind', 'remote_agent')
        WHEN task_type = 'dream' THEN json_set(metadata, '$.kind', 'dream')
        WHEN task_type = 'monitor_mcp' THEN json_set(metadata, '$.kind', 'monitor')
        WHEN task_type = 'in_process_teammate' AND json_extract(metadata, '$.team') IS NOT NULL
            THEN json_object('kind', 'team_item', 'team', json_extract(metadata, '$.team'))
        WHEN task_type = 'in_process_teammate'
            THEN json_object('kind', 'teammate', 'team', json_extract(metadata, '$.member_of'),
                'name', json_extract(metadata, '$.name'), 'agent', json(metadata))
        WHEN json_extract(metadata, '$.builtin') = 'dev'
            AND json_type(metadata, '$.dev') = 'object'
            THEN json_set(json_extract(metadata, '$.dev'), '$.kind', 'dev')
        WHEN json_extract(metadata, '$.builtin') = 'follow_pr'
            AND json_type(metadata, '$.follow') = 'object'
            THEN json_set(json_extract(metadata, '$.follow'), '$.kind', 'follow_pull_request')
        WHEN json_extract(metadata, '$.builtin') IS NULL
            THEN json_set(metadata, '$.kind', 'workflow')
    END
WHERE json_valid(metadata);

-- Nobody wrote down what such a task was allowed: the strictest mode that lets it go on by asking,
-- and no rules. Without a session at the top it is a tree of its own, under a fresh id.
UPDATE tasks SET tree = COALESCE(session_id, lower(
    hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) ||
    '-a' || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6))));
UPDATE tasks SET authority = json_object('session', session_id, 'tree', tree, 'mode', 'default',
    'project_root', COALESCE(json_extract(spec, '$.root'),
        json_extract(spec, '$.agent.root'), json_extract(spec, '$.repository.path')))
WHERE spec IS NOT NULL AND COALESCE(json_extract(spec, '$.root'),
    json_extract(spec, '$.agent.root'), json_extract(spec, '$.repository.path')) IS NOT NULL;
UPDATE tasks SET queue = queue || '#' || json_extract(authority, '$.project_root')
WHERE authority IS NOT NULL AND (queue < 'team:' OR queue >= 'team;');

-- Which task each step of a workflow became stands among the steps, where only its runner writes.
INSERT INTO task_steps (task_id, place, step, result)
SELECT id, 1, 'progress', json_extract(spec, '$.steps') FROM tasks
WHERE task_type = 'local_workflow' AND json_type(spec, '$.steps') = 'object';

CREATE TRIGGER tasks_are_sealed
BEFORE UPDATE OF task_type, spec, authority, tree, reserved_for, queue, run_anyway ON tasks
WHEN NEW.task_type IS NOT OLD.task_type OR NEW.spec IS NOT OLD.spec
    OR NEW.authority IS NOT OLD.authority OR NEW.tree IS NOT OLD.tree
    OR NEW.reserved_for IS NOT OLD.reserved_for OR NEW.queue IS NOT OLD.queue
    OR NEW.run_anyway IS NOT OLD.run_anyway
BEGIN
    SELECT RAISE(ABORT, 'what a task runs, and by whose authority, cannot be changed');
END;
