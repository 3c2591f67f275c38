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
    pub(crate) run: EndedRun,
    /// Of one that has come to its end.
    pub(crate) report: Option<DevReport>,
    pub(crate) base: Option<RecordedBase>,
    pub(crate) working_tree: Option<WorkingTree>,
}

/// A run as it stands, wherever it ran.
pub(crate) struct EndedRun {
    pub(crate) id: TaskId,
    pub(crate) status: TaskStatus,
    pub(crate) error: Option<String>,
    /// Null where it is not known.
    pub(crate) cost_usd: Value,
    /// The command that goes on with it.
    pub(crate) resume: String,
}

impl From<&TaskRecord> for EndedRun {
    fn from(record: &TaskRecord) -> Self {
        Self {
            id: record.task_id.clone(),
            status: record.status,
            error: record.error.clone(),
            cost_usd: json!(record.cost_usd),
            resume: resume_command(&record.task_id),
        }
    }
}

impl Conclusion {
    /// The object of `--json`.
    ///
    /// A run without report has the fields that are known anyway. `resume` is there only if there
    /// is something to resume.
    pub(crate) fn json(&self) -> Value {
        let run = &self.run;
        let mut value = match &self.report {
            Some(report) => {
                let mut value = serde_json::to_value(report).unwrap_or_default();
                value["verified"] = json!(report.verdict() == TestVerdict::Verified);
                value
            }
            None => json!({
                "task_id": run.id,
                "error": run.error,
                "cost_usd": run.cost_usd,
                "verified": false,
            }),
        };
        value["status"] = json!(run.status);
        value["base"] = json!(self.base.as_ref().map(|base| &base.branch));
        value["base_commit"] = json!(self.base.as_ref().map(|base| &base.commit));
        value["working_tree"] = json!(self.working_tree);
        if run.status != TaskStatus::Completed {
            value["resume"] = json!(run.resume);
        }
        value
    }

    /// The exit code, with the command to resume on stderr where there is something to resume. A
    /// run that completed has its own code even if a signal came meanwhile.
    pub(crate) fn exit(&self, signals: &Signals) -> Result<ExitCode, CommandError> {
        match (self.run.status, signals.exit_code()) {
            (TaskStatus::Completed, _) => {
                let verdict = self.report.as_ref().map(DevReport::verdict);
                Ok(match verdict {
                    Some(TestVerdict::TestsFail) => ExitCode::from(EXIT_TESTS_FAIL),
                    _ => ExitCode::SUCCESS,
                })
            }
            (TaskStatus::Pending | TaskStatus::Running, code) => {
                self.hint("not finished");
                Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
            }
            (_, Some(code)) => {
                self.hint("stopped");
                Ok(ExitCode::from(code))
            }
            (_, None) => {
                self.hint("failed");
                let error = self.run.error.clone();
                Err(CommandError::Failed(
                    error.unwrap_or_else(|| "it failed".to_owned()),
                ))
            }
        }
    }

    fn hint(&self, state: &str) {
        say_how_to_resume(&self.run.id, state, &self.run.resume);
    }
}

/// The id of a run and how to resume it, on stderr.
pub(crate) fn hint(id: &TaskId, state: &str) {
    say_how_to_resume(id, state, &resume_command(id));
}

fn say_how_to_resume(id: &TaskId, state: &str, command: &str) {
    let text = format!("codespar: task {id}: {state}. Resume with: {command}");
    crate::printer::err(format_args!("{}", crate::style::faint(text)));
}

fn resume_command(id: &TaskId) -> String {
    format!("codespar dev --resume {id}")
}
