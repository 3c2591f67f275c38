//! A task as people read it: one line in a list, a few lines on its own.
//!
//! The commands, the sessions and what is printed about rewinding show tasks by these functions, so
//! that a task looks the same everywhere. Programs read the JSON of `TaskRecord::view` instead; these
//! lines may change.

use codespar_protocol::{TaskId, TaskRecord, TaskStatus};

use crate::style;

/// Id, status, type, subject and error, without a line end.
pub(crate) fn line(task: &TaskRecord) -> String {
    let status = match task.status {
        TaskStatus::Completed => style::good(task.status),
        TaskStatus::Failed | TaskStatus::Killed => style::error(task.status),
        _ => style::strong(task.status),
    };
    let mut line = format!(
        "{}  {status}  {}  {}",
        task.task_id, task.task_type, task.subject
    );
    if let Some(error) = &task.error {
        line.push_str(&style::faint(format!("  ({error})")));
    }
    line
}

/// A task in a few lines: what its record says and is not empty. An attempt is always shown, since
/// a number above one means that the task was taken over or tried again.
pub(crate) fn details(task: &TaskRecord) -> String {
    let mut lines = vec![line(task)];
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            lines.push(format!("  {name:<10} {value}"));
        }
    };
    let ids = |ids: &[TaskId]| {
        let names: Vec<&str> = ids.iter().map(TaskId::as_str).collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    let about = Some(task.description.clone());
    add("about", about.filter(|text| !text.is_empty()));
    add("doing", task.active_form.clone());
    add("owner", task.owner.clone());
    add("after", ids(&task.blocked_by));
    add("before", ids(&task.blocks));
    add("attempt", Some(task.attempt.to_string()));
    add("began", task.started_at.map(|at| at.to_string()));
    add("ended", task.ended_at.map(|at| at.to_string()));
    add("exit code", task.exit_code.map(|code| code.to_string()));
    add(
        "cost",
        (task.usage.total_tokens() > 0).then(|| task.cost_usd.to_string()),
    );
    add("output", task.output_file.clone());
    lines.join("\n")
}
