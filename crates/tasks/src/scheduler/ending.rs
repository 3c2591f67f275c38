//! What is recorded of the end of an attempt.
//!
//! One outcome becomes three things, written in one transaction: the fields of the record, the
//! metadata that tools read later (`result`, `tool_uses`, `duration_ms`), and the notification for
//! the session that made the task.

use codespar_protocol::{TaskEnd, TaskNotification, TaskRecord, TaskStatus, TaskType};
use codespar_store::{Afterwards, TaskEnding};
use serde_json::json;

use crate::runner::{Completeness, TaskOutcome};

/// How many characters of a result go into a notification. The conversation of the parent pays for
/// each of them in every later turn.
const RESULT_CHARS: usize = 2_000;

/// `outcome` has no secrets any more. The status goes to the store as it is: only final ones come
/// here. The notification is made for every task; the store leaves out those that nobody wants.
/// `whole` is where all of a long result is.
pub(super) fn ending(
    record: &TaskRecord,
    outcome: TaskOutcome,
    millis: u64,
    whole: &str,
) -> TaskEnding {
    let end = TaskEnd {
        status: outcome.status,
        error: outcome.error.as_deref(),
        exit_code: outcome.exit_code,
    };
    let result = outcome.result.as_deref().map(|text| shortened(text, whole));
    let notice = TaskNotification {
        task_id: record.task_id.clone(),
        status: outcome.status,
        summary: match outcome.afterwards {
            Afterwards::Over => end.summary(record),
            Afterwards::Again => format!("News: {}", record.subject),
        },
        reason: end.stop_reason(),
        result,
        usage: record.task_type.is_agent().then_some((
            outcome.usage.total_tokens(),
            outcome.tool_uses,
            millis,
        )),
    };
    let mut metadata = outcome.metadata;
    metadata.insert("tool_uses".to_owned(), json!(outcome.tool_uses));
    metadata.insert("duration_ms".to_owned(), json!(millis));
    // A key that is null is taken away: what an earlier attempt left does not speak for this one.
    metadata.insert("result".to_owned(), json!(notice.result));
    let is_partial = outcome.completeness == Completeness::Partial;
    metadata.insert("partial".to_owned(), json!(is_partial.then_some(true)));
    TaskEnding {
        status: outcome.status,
        error: outcome.error,
        exit_code: outcome.exit_code,
        usage: outcome.usage,
        cost: outcome.cost,
        metadata,
        notification: match (record.task_type, outcome.status, &notice.result) {
            // A teammate that only came to wait has nothing to report.
            (TaskType::InProcessTeammate, TaskStatus::Completed, None) => String::new(),
            _ => notice.to_xml(),
        },
        afterwards: outcome.afterwards,
    }
}

/// The beginning of a long text, and where the rest is.
fn shortened(text: &str, whole: &str) -> String {
    match text.char_indices().nth(RESULT_CHARS) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}\n[… the whole is in {whole}]", &text[..at]),
    }
}
