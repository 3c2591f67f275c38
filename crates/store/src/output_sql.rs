//! The SQL of the outputs of tasks.
//!
//! A test runs each statement through the query planner (`sqlite/plans`) and counts the constants
//! of this file.

pub(crate) const OUTPUT: &str = "SELECT epoch, host, file, length, is_cut FROM task_outputs \
     WHERE task_id = $1";

pub(crate) const BEGIN_OUTPUT: &str = "INSERT INTO task_outputs (task_id, epoch, host, file) \
     VALUES ($1, $2, $3, $4) ON CONFLICT (task_id) DO UPDATE \
     SET epoch = excluded.epoch, host = excluded.host, file = excluded.file";

/// Who may write: not locked, so that the task can be changed meanwhile.
pub(crate) const HOLDER: &str = "SELECT lease_epoch, status FROM tasks WHERE id = $1";

pub(crate) const LAST_PIECE: &str = "SELECT at, bytes FROM output_pieces \
     WHERE task_id = $1 ORDER BY at DESC LIMIT 1";

pub(crate) const PUT_PIECE: &str = "INSERT INTO output_pieces (task_id, at, length, bytes, object) \
     VALUES ($1, $2, $3, $4, $5) ON CONFLICT (task_id, at) DO UPDATE \
     SET length = excluded.length, bytes = excluded.bytes";

/// What is added after a cut is what was missing.
pub(crate) const LENGTHEN: &str = "UPDATE task_outputs SET length = $2, is_cut = FALSE, \
     has_objects = has_objects OR $3 WHERE task_id = $1";

pub(crate) const CUT: &str = "UPDATE task_outputs SET is_cut = TRUE WHERE task_id = $1";

/// From the piece that has byte $2 up to byte $3.
pub(crate) const PIECES: &str = "SELECT at, length, bytes, object FROM output_pieces \
     WHERE task_id = $1 AND at < $3 AND at >= COALESCE((SELECT MAX(at) FROM output_pieces \
     WHERE task_id = $1 AND at <= $2), 0) ORDER BY at";

pub(crate) const REMOVED: &str = "SELECT task_id FROM removed_outputs ORDER BY task_id LIMIT 1000";

pub(crate) const FORGET_REMOVED: &str = "DELETE FROM removed_outputs WHERE task_id = $1";
