//! The SQL of working trees, in the dialect that both databases share.

pub(crate) const KEEP_TREE: &str = "INSERT INTO task_trees \
     (task_id, base, head, tree, pack, missing) VALUES ($1, $2, $3, $4, $5, $6) \
     ON CONFLICT (task_id) DO UPDATE SET base = excluded.base, head = excluded.head, \
     tree = excluded.tree, pack = excluded.pack, missing = excluded.missing";

pub(crate) const KEPT_TREE: &str =
    "SELECT base, head, tree, pack, missing FROM task_trees WHERE task_id = $1";

pub(crate) const FORGET_TREE: &str = "DELETE FROM task_trees WHERE task_id = $1";
