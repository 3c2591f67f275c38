//! The end of a run: its JSON object, its exit code and how to resume it.
//!
//! The exit code tells a script whether to trust the pull request without reading the report. 3 is
//! not a failure of the run: the pull request exists, and its tests do not pass.

use std::process::ExitCode;

use codespar_dev::{DevReport, RecordedBase, TestVerdict};
use codespar_protocol::{TaskId, TaskRecord, TaskStatus};
use serde_json::{Value, json};

use super::WorkingTree;
use crate::{error::CommandError, signals::Signals};

/// A pull request was opened, and its tests do not pass.
const EXIT_TESTS_FAIL: u8 = 3;

/// A run that is over, or that this process leaves. Read from the store after the end, so a resumed
/// run and one of another process look the same.
pub(crate) struct Conclusion {
    pub(crate) record: TaskRecord,
    /// Of one that has come to its end.
    pub(crate) report: Option<DevReport>,
    pub(crate) base: Option<RecordedBase>,
    pub(crate) working_tree: Option<WorkingTree>,
}

impl Conclusion {
    /// The object of `--json`.
    ///
    /// A run without report has the fields that are known anyway. `resume` is there only if there
    /// is something to resume.
    pub(crate) fn json(&self) -> Value {
        let record = &self.record;
        let mut value = match &self.report {
            Some(report) => {
                let mut value = serde_json::to_value(report).unwrap_or_default();
                value["verified"] = json!(report.verdict() == TestVerdict::Verified);
                value
            }
            None => json!({
                "task_id": record.task_id,
                "error": record.error,
                "cost_usd": record.cost_usd,
                "verified": false,
            }),
        };
        value["status"] = json!(record.status);
        value["base"] = json!(self.base.as_ref().map(|base| &base.branch));
        value["base_commit"] = json!(self.base.as_ref().map(|base| &base.commit));
        value["working_tree"] = json!(self.working_tree);
        if record.status != TaskStatus::Completed {
            value["resume"] = json!(resume_command(&record.task_id));
        }
        value
    }

    /// The exit code, with the command to resume on stderr where there is something to resume. A
    /// run that completed has its own code even if a signal came meanwhile.
    pub(crate) fn exit(&self, signals: &Signals) -> Result<ExitCode, CommandError> {
        let id = &self.record.task_id;
        match (self.record.status, signals.exit_code()) {
            (TaskStatus::Completed, _) => {
                let verdict = self.report.as_ref().map(DevReport::verdict);
                Ok(match verdict {
                    Some(TestVerdict::TestsFail) => ExitCode::from(EXIT_TESTS_FAIL),
                    _ => ExitCode::SUCCESS,
                })
            }
            (TaskStatus::Pending | TaskStatus::Running, code) => {
                hint(id, "not finished");
                Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
            }
            (_, Some(code)) => {
                hint(id, "stopped");
                Ok(ExitCode::from(code))
            }
            (_, None) => {
                hint(id, "failed");
                let error = self.record.error.clone();
                Err(CommandError::Failed(
                    error.unwrap_or_else(|| "it failed".to_owned()),
                ))
            }
        }
    }
}

/// The id of a run and how to resume it, on stderr.
pub(crate) fn hint(id: &TaskId, state: &str) {
    let text = format!(
        "codespar: task {id}: {state}. Resume with: {}",
        resume_command(id)
    );
    crate::printer::err(format_args!("{}", crate::style::faint(text)));
}

fn resume_command(id: &TaskId) -> String {
    format!("codespar dev --resume {id}")
}
