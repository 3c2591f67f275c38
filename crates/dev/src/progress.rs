//! How far a run of the dev agent is, by its recorded steps: the same in every process, and after a
//! restart.

use std::collections::HashMap;

use codespar_change::verify::TestRun;
use codespar_protocol::{TaskRecord, TaskSpec};
use codespar_tasks::{StoreError, TaskStore};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    DevReport,
    report::REPORT,
    run::PROVEN,
    steps::{Located, Proven, Written},
};

/// What a run has done so far. What it has not come to is absent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DevProgress {
    /// Files that were found.
    pub located: Option<Vec<String>>,
    pub change: Option<DevChange>,
    pub tests: Option<DevTests>,
    pub report: Option<DevReport>,
}

/// The change that a run has settled on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DevChange {
    pub files: usize,
    pub model: String,
    pub is_simulated: bool,
}

/// What the tests have said so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DevTests {
    Run {
        command: String,
        before: Option<String>,
        after: Option<String>,
    },
    NotRun {
        reason: String,
    },
}

/// Reads the steps of a run, and those of failed runs that it goes on from. A step whose record
/// cannot be read counts as not done: this is for display, and must not fail because an older
/// version wrote it.
pub async fn recorded_progress(
    store: &dyn TaskStore,
    record: &TaskRecord,
) -> Result<DevProgress, StoreError> {
    let mut steps: HashMap<String, Value> = HashMap::new();
    if let Some(TaskSpec::Dev(order)) = &record.spec {
        for earlier in &order.resumes {
            steps.extend(store.steps(earlier).await?);
        }
    }
    // What an earlier run came to is not what this one comes to.
    steps.remove(REPORT);
    steps.extend(store.steps(&record.task_id).await?);
    let located: Option<Located> = step(&steps, "locate");
    let proven: Option<(Written, Proven)> = step(&steps, PROVEN);
    Ok(DevProgress {
        located: located.map(|located| located.paths().map(str::to_owned).collect()),
        tests: tests(&steps, proven.as_ref().map(|(_, proven)| proven)),
        change: proven.map(|(written, _)| DevChange {
            files: written.changes.0.len(),
            model: written.model,
            is_simulated: written.is_simulated,
        }),
        report: step(&steps, REPORT),
    })
}

fn step<T: DeserializeOwned>(steps: &HashMap<String, Value>, name: &str) -> Option<T> {
    serde_json::from_value(steps.get(name)?.clone()).ok()
}

/// Before the proof is recorded, what is known is the command and the run before the change. The
/// run with the change appears together with the proof, since it may be followed by repairs.
fn tests(steps: &HashMap<String, Value>, proven: Option<&Proven>) -> Option<DevTests> {
    match proven {
        Some(Proven::By(evidence)) => Some(DevTests::Run {
            command: evidence.command.clone(),
            before: Some(evidence.before.summary()),
            after: Some(evidence.after.summary()),
        }),
        Some(Proven::Not(reason)) => Some(DevTests::NotRun {
            reason: reason.clone(),
        }),
        None => {
            let command: Option<String> = step(steps, "test_command")?;
            let before: Option<TestRun> = step(steps, "before");
            Some(DevTests::Run {
                command: command?,
                before: before.map(|run| run.summary()),
                after: None,
            })
        }
    }
}
