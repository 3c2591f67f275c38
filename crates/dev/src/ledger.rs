//! The steps of a run of the dev agent, with those of failed runs that it goes on from.
//!
//! A resumed run is a new task with the ids of the runs before it, oldest first. Steps of a later
//! one replace those of an earlier one, and its own replace all.

use std::collections::HashMap;

use codespar_protocol::TaskId;
use codespar_tasks::{Control, StepHook, StepLedger};
use serde_json::Value;

use crate::{Failure, run::ANSWER};

/// On record when the answers of a run led to its failure.
pub(crate) const BAD_ANSWERS: &str = "bad_answers";
/// The picker's answer, which no change depends on.
const PICK: &str = "answer-pick";

/// Opens the record of a task as earlier attempts left it, with those of failed runs that it goes
/// on from. Answers that led to a failure are paid for and are not used again.
pub(crate) async fn open(
    control: &Control,
    resumes: &[TaskId],
    hook: Option<StepHook>,
) -> Result<StepLedger, Failure> {
    let mut earlier = HashMap::new();
    for task in resumes {
        let steps = control.store.steps(task).await?.into_iter().collect();
        earlier.extend(usable(task, steps));
    }
    let ledger = StepLedger::open(control).await?;
    Ok(ledger.inheriting(earlier).with_hook(hook))
}

/// What a later run may take over of a run's steps. All of them, unless its answers were bad. Then
/// what those answers led to is left out: test runs with the change, what the agent did, the user's
/// reply. The base, the located files, what was read and the test run before the change do not
/// depend on answers and are kept.
fn usable(task: &TaskId, steps: HashMap<String, Value>) -> HashMap<String, Value> {
    if !steps.contains_key(BAD_ANSWERS) {
        return steps;
    }
    let keep = |(step, value): (String, Value)| match step.strip_prefix(ANSWER) {
        _ if step == PICK => Some((step, value)),
        // Under a name that nobody asks for, it still counts as spent.
        Some(rest) => Some((format!("{ANSWER}{task}-{rest}"), value)),
        None if step.starts_with("after-") => None,
        None if step.starts_with("agent") => None,
        None if matches!(step.as_str(), "reply" | "without") => None,
        None => Some((step, value)),
    };
    steps.into_iter().filter_map(keep).collect()
}
